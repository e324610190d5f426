"""Run the reproductions, and write the page and the JSON file."""

import json
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import sklearn

import widemargin
from widemargin._base.checkpoint import atomic_write
from widemargin.cli.main import CommandError
from widemargin.cli.reproduction import (
    coulomb,
    discriminant,
    gated,
    labeltree,
    preference,
    privileged,
)
from widemargin.cli.reproduction.comparison import Paper
from widemargin.report import Report, Section
from widemargin.report.markup import Markup, note, paragraph, table

PAPERS: dict[str, tuple[str, str, Callable[..., Iterable]]] = {
    "gated": (
        "Gated SVMs: one teacher, a fast binary student for every class",
        "The gSVM paper (single teacher, multi student), table 3.",
        gated.compare,
    ),
    "privileged": (
        "Learning using privileged information: SVM2+",
        "The SVM2+ paper (Caltech101 and WebQueries), tables of accuracy and training time.",
        privileged.compare,
    ),
    "preference": (
        "Semi-supervised SVMs with a precision or recall preference: PSVM",
        "The PSVM paper, F1 on Adult, IJCNN1, MNIST and Protein.",
        preference.compare,
    ),
    "coulomb": (
        "Diverse structured SVMs: Coulomb ensembles",
        "The CSSVM paper, PASCAL VOC 2010 and iCoseg.",
        coulomb.compare,
    ),
    "discriminant": (
        "Discriminant analysis",
        "T. Hastie, R. Tibshirani, J. Friedman: The Elements of Statistical Learning, table 4.1; "
        "closed forms for Gaussian classes.",
        discriminant.compare,
    ),
    "labeltree": (
        "Extreme classification with label trees",
        "Parabel and omikuji, P@k on EURLex-4K; growth with the number of labels.",
        labeltree.compare,
    ),
}


# Papers whose data sets may be in a folder of the user.
_WITH_DATA = ("gated", "preference")


def reproduce(names: list[str], quick: bool, folder: Path, data: Path | None = None) -> list[Paper]:
    """Reproduce papers, and write ``reproduction.html`` and ``reproduction.json``.

    Parameters
    ----------
    names : list of str
        Papers, of `PAPERS`; 'all' is all of them.
    quick : bool
        Whether to use the data that are part of the package only, with few parameters to choose
        from. Otherwise, data sets of the papers are downloaded.
    folder : Path
        Where to write; created if needed.
    data : Path, optional
        Folder with copies of data sets as NAME.npz, which are not downloaded then.

    Returns
    -------
    papers : list of Paper
    """
    unknown = [name for name in names if name not in (*PAPERS, "all")]
    if unknown:
        raise CommandError(f"There is no paper {unknown[0]!r}.", f"Use {', '.join(PAPERS)} or all.")
    folder.mkdir(parents=True, exist_ok=True)
    chosen = list(PAPERS) if "all" in names else [name for name in PAPERS if name in names]
    papers = []
    for name in chosen:
        print(f"{PAPERS[name][0]} ...", flush=True)
        papers.append(_run(name, quick, data))
        counts = _counts(papers[-1])
        shown = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        print(f"  {papers[-1].seconds:.0f} s. {shown or 'statements only'}", flush=True)
        _write(papers, quick, folder)
    return papers


def _run(name: str, quick: bool, data: Path | None) -> Paper:
    title, reference, compare = PAPERS[name]
    if data is not None and name in _WITH_DATA:
        compare = partial(compare, folder=data)
    paper, start = Paper(name, title, reference), perf_counter()
    with warnings.catch_warnings():
        # Settings of the papers, on small data: constant students, fits that stop at their limit.
        warnings.simplefilter("ignore")
        paper.comparisons = list(compare(quick))
    paper.seconds = perf_counter() - start
    return paper


def _counts(paper: Paper) -> dict[str, int]:
    total: dict[str, int] = {}
    for comparison in paper.comparisons:
        for verdict, count in comparison.counts().items():
            total[verdict] = total.get(verdict, 0) + count
    return total


def _write(papers: list[Paper], quick: bool, folder: Path) -> None:
    versions = {
        "widemargin": widemargin.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }
    content: dict[str, Any] = {
        "quick": quick,
        "versions": versions,
        "papers": {
            paper.name: {
                "title": paper.title,
                "reference": paper.reference,
                "seconds": round(paper.seconds, 1),
                "comparisons": [comparison.to_dict() for comparison in paper.comparisons],
            }
            for paper in papers
        },
    }
    with atomic_write(folder / "reproduction.json") as file:
        file.write(json.dumps(content, indent=1).encode())
    report = Report("Reproduction: the papers' figures beside ours")
    report.sections.append(Section("Summary", _summary(papers, quick)))
    for paper in papers:
        body = "".join(comparison.to_html() for comparison in paper.comparisons)
        report.sections.append(Section(paper.title, f"{note(paper.reference)}{body}"))
    report.save(folder / "reproduction.html")


def _summary(papers: list[Paper], quick: bool) -> Markup:
    mode = (
        "This is the quick mode: data that are part of the package, and few parameters to choose "
        "from. Figures of data sets that are larger or have to be downloaded are not run; leave "
        "out --quick."
        if quick
        else "Data sets that are public were downloaded, or found in the cache or the folder of "
        "--data; cells of those that could not be are empty."
    )
    legend = Markup(
        '<p class="legend-compared">In each cell, ours is above and the figure of the paper below. '
        '<span class="same">similar</span> <span class="good">better</span> '
        '<span class="bad">worse</span> <span class="other">different, neither is better</span> '
        '<span class="none">only one of the two</span></p>'
    )
    verdicts = ("similar", "better", "worse", "different", "ours only", "not run")
    rows = []
    for paper in papers:
        counts = _counts(paper)
        rows.append([paper.title, *(counts.get(v, 0) for v in verdicts), f"{paper.seconds:.0f}"])
    header = ["paper", *verdicts, "seconds"]
    return Markup(f"{paragraph(mode)}{legend}{table(header, rows)}")
