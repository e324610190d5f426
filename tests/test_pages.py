"""The pages that lead new users: their code names what exists, their figures are measured."""

import ast
import re
import runpy
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[1]
PERFORMANCE = runpy.run_path(str(ROOT / "docs" / "performance.py"))
BLOCK = re.compile(r"(?m)^( *)\.\. code-block:: python\n\n((?:\1 +[^\n]*\n|\n)+)")


def code_blocks(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [dedent(match[2]) for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", ["choose.rst", "migration.rst"])
def test_code_of_pages_imports_what_exists(page):
    blocks = code_blocks(page)
    assert blocks
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                module = import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)


@pytest.mark.parametrize("page", ["choose.rst", "migration.rst"])
def test_code_of_pages_uses_parameters_that_exist(page):
    for block in code_blocks(page):
        tree = ast.parse(block)
        names = {
            alias.name: getattr(import_module(node.module), alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                known = getattr(names.get(call.func.id), "_get_param_names", list)()
                assert {keyword.arg for keyword in call.keywords} <= set(known)


def test_the_speed_in_the_readme_is_measured():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    start, end = (text.index(mark) for mark in PERFORMANCE["README_MARKS"])
    assert text[start:end] == PERFORMANCE["readme_table"](), "run: python docs/performance.py"


def test_every_figure_of_the_summary_is_found():
    assert len(PERFORMANCE["summary"]()) == len(PERFORMANCE["_SUMMARY"])


def test_the_readme_fits_one_screen_of_text():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 80
