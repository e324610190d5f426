"""Write inventories of the names of other projects that the documentation refers to.

Sphinx resolves references to other projects by their inventories, usually fetched from the network.
These are made from the names that occur in the pages and docstrings, so that a build needs no
network and links all the same.
"""

import re
import zlib
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
FOLDER = DOCS / "_inventories"
# Where a project's classes and functions are documented; $ is the name.
PROJECTS = {
    "sklearn": ("https://scikit-learn.org/stable/", "modules/generated/$.html#$"),
    "numpy": ("https://numpy.org/doc/stable/", "reference/generated/$.html#$"),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "reference/generated/$.html#$"),
    "imblearn": ("https://imbalanced-learn.org/stable/", "references/generated/$.html#$"),
}
# Labels and terms in docstrings that are inherited from scikit-learn.
LABELS = {
    "sklearn": {
        "accuracy_score": "modules/model_evaluation.html#accuracy-score",
        "df_output_transform": "auto_examples/miscellaneous/plot_set_output.html",
        "metadata_routing": "metadata_routing.html#metadata-routing",
        "sphx_glr_auto_examples_miscellaneous_plot_set_output.py": (
            "auto_examples/miscellaneous/plot_set_output.html"
        ),
    }
}
TERMS = {"sklearn": ("meta-estimator",)}


def write(folder=FOLDER):
    """Write one inventory for each project; return Sphinx's ``intersphinx_mapping``."""
    folder.mkdir(exist_ok=True)
    text = "\n".join(path.read_text(encoding="utf-8") for path in _sources())
    for project, (_, page) in PROJECTS.items():
        names = sorted(set(re.findall(rf"(?<![\w.]){project}(?:\.[a-z_]\w*)*\.\w+", text)))
        entries = [f"{name} py:{_kind(name)} 1 {page} -\n" for name in names]
        entries += [
            f"{label} std:label -1 {target} {label}\n"
            for label, target in LABELS.get(project, {}).items()
        ]
        entries += [
            f"{term} std:term -1 glossary.html#term-$ -\n" for term in TERMS.get(project, ())
        ]
        (folder / f"{project}.inv").write_bytes(_inventory(project, "".join(entries)))
    return {
        project: (address, str(folder / f"{project}.inv"))
        for project, (address, _) in PROJECTS.items()
    }


def _sources():
    return [
        *sorted((ROOT / "src").rglob("*.py")),
        *sorted(DOCS.glob("*.rst")),
        *sorted((ROOT / "examples").glob("*.py")),
    ]


def _kind(name):
    return "class" if name.rsplit(".", 1)[1][:1].isupper() else "function"


def _inventory(project, entries):
    header = (
        f"# Sphinx inventory version 2\n# Project: {project}\n# Version: stable\n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    return header.encode() + zlib.compress(entries.encode())
