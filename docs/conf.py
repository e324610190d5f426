"""How Sphinx builds the documentation."""

import runpy
from pathlib import Path

import matplotlib

import widemargin
from widemargin._base.options import smo_options

matplotlib.use("Agg")
runpy.run_path("performance.py")["write"]()
runpy.run_path("clients.py")["write"]()
runpy.run_path("changes.py")["write"]()
intersphinx_mapping = runpy.run_path("inventories.py")["write"]()

project = "widemargin"
author = "the widemargin developers"
copyright = "2026, the widemargin developers"  # noqa: A001 (the name Sphinx reads)
version = release = widemargin.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_inventories"]
rst_epilog = f".. |full_matrix_rows| replace:: {smo_options.dense_size:,}"
templates_path = ["_templates"]
# A name in single backticks links to what it names, if that is documented.
default_role = "obj"

autosummary_generate = True
setup = runpy.run_path("formulas.py")["setup"]
html_math_renderer = "mathml"

numpydoc_show_class_members = True
numpydoc_show_inherited_class_members = True
numpydoc_class_members_toctree = False

plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "doc_module": ("widemargin",),
    "backreferences_dir": "gallery/backreferences",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 60,
    "download_all_examples": False,
    "write_computation_times": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "widemargin"
html_static_path = ["_static"]
html_css_files = ["widemargin.css"]
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 3,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
# The pages of the guide have no pages below them that a sidebar would list.
html_sidebars = {page.stem: [] for page in Path().resolve().glob("*.rst") if page.stem != "api"}
html_show_sourcelink = False
