"""The documentation tells the truth: examples run, docstrings are complete, versions agree."""

import doctest
import re
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from pkgutil import resolve_name, walk_packages

import pytest
from numpydoc.validate import validate

import widemargin

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.rst"))]
MODULES = sorted(module.name for module in walk_packages(widemargin.__path__, "widemargin."))
# What numpydoc asks beyond the house's rules.
EXCUSED = {
    "ES01": "one sentence may say it all",
    "EX01": "methods are shown in the example of their class",
    "RT02": "a result may have a name, as in scikit-learn",
    "SA01": "See Also is for things that are easily mistaken for each other",
    "SS05": "a noun that ends in s is no verb",
}


def public_things():
    """Dotted names of all public classes and functions."""
    homes = [widemargin, *(getattr(widemargin, package) for package in widemargin._SUBPACKAGES)]
    names = [(home, name) for home in homes for name in home.__all__]
    return [
        f"{home.__name__}.{name}"
        for home, name in names
        if isclass(getattr(home, name)) or isfunction(getattr(home, name))
    ]


def public_methods():
    """Dotted names of their methods and properties, but for those that scikit-learn generates.

    Fields of dataclasses are parameters, which the docstring of the class describes.
    """
    return [
        f"{name}.{method}"
        for name in public_things()
        for method in vars(resolve_name(name))
        if not method.startswith("_")
        and not re.fullmatch("set_.*_request", method)
        and method not in getattr(resolve_name(name), "__dataclass_fields__", {})
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page):
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_run(module):
    failed, _ = doctest.testmod(import_module(module))
    assert failed == 0


@pytest.mark.parametrize("name", public_things() + public_methods())
def test_public_docstrings_are_complete(name):
    errors = [error for error in validate(name)["errors"] if error[0] not in EXCUSED]
    assert errors == []


def test_every_public_name_has_a_place_in_the_reference():
    listed = re.findall(r"^   (\w+)$", (ROOT / "docs/api.rst").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == sorted(name.split(".")[-1] for name in public_things())


def test_the_citation_names_the_version():
    assert f"version: {widemargin.__version__}\n" in (ROOT / "CITATION.cff").read_text()
