"""The documentation tells the truth: examples run, docstrings are complete, versions agree."""

import doctest
import pkgutil
import re
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import pytest
from numpydoc.validate import validate

import widemargin

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.rst"))]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(widemargin.__path__, "widemargin.")
)
# What numpydoc asks beyond the house's rules.
EXCUSED = {
    "ES01": "one sentence may say it all",
    "EX01": "methods are shown in the example of their class",
    "GL01": "the summary stands on the line of the quotes",
    "SA01": "a See Also section is for things that are easily mistaken for each other",
    "SA04": "so is a description there",
    "RT03": "a summary that says what is returned need not be repeated",
    "SS05": "an attribute-like summary such as `The class of every row.` is no verb",
    "PR01": "the parameters of a property's class are told by the class",
}


def public_objects():
    """Dotted names of all public classes and functions, and of the methods of the classes."""
    homes = [widemargin, *(getattr(widemargin, room) for room in widemargin._ROOMS)]
    for home in homes:
        for name in home.__all__:
            thing = getattr(home, name)
            if not isinstance(thing, type) and not isfunction(thing):
                continue
            yield f"{home.__name__}.{name}"
            if isinstance(thing, type):
                own = [
                    method for method, value in vars(thing).items() if not method.startswith("_")
                ]
                yield from (f"{home.__name__}.{name}.{method}" for method in own)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page):
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_run(module):
    failed, _ = doctest.testmod(import_module(module))
    assert failed == 0


@pytest.mark.parametrize("name", list(public_objects()))
def test_public_docstrings_are_complete(name):
    errors = [error for error in validate(name)["errors"] if error[0] not in EXCUSED]
    assert errors == []


def test_every_public_name_has_a_place_in_the_reference():
    listed = re.findall(r"^   (\w+)$", (ROOT / "docs/api.rst").read_text(), flags=re.MULTILINE)
    names = {name.split(".")[-1] for name in public_objects() if name.count(".") < 3}
    assert names <= set(listed)


def test_the_citation_names_the_version():
    assert f"version: {widemargin.__version__}\n" in (ROOT / "CITATION.cff").read_text()
