"""The pages that lead new users: their code names what exists, their figures are measured."""

import ast
import re
import runpy
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

import widemargin

ROOT = Path(__file__).parents[1]
PERFORMANCE = runpy.run_path(str(ROOT / "docs" / "performance.py"))
DOCS = ROOT / "docs"
FORMULAS = runpy.run_path(str(DOCS / "formulas.py"))
CHANGES = runpy.run_path(str(DOCS / "changes.py"))
TOCTREE = re.compile(r"(?m)^\.\. toctree::\n((?:   .*\n|\n)+)")
BLOCK_FORMULA = re.compile(r"(?m)^( *)\.\. math::[^\n]*\n((?:\1 +[^\n]*\n|\n)+)")
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


def test_pages_have_different_titles():
    titles = [page.read_text(encoding="utf-8").splitlines()[0] for page in DOCS.glob("*.rst")]
    assert len(set(titles)) == len(titles)
    assert all(titles)


def test_every_page_is_in_the_navigation_once():
    listed = []
    for page in DOCS.glob("*.rst"):
        for tree in TOCTREE.finditer(page.read_text(encoding="utf-8")):
            listed += [re.sub(r".*<(.+)>", r"\1", line.strip()) for line in tree[1].splitlines()]
    listed = [name for name in listed if name and not name.startswith(":")]
    pages = {page.stem for page in DOCS.glob("*.rst")} - {"index"}
    assert sorted(name for name in listed if name != "gallery/index") == sorted(pages)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.rst")), ids=lambda page: page.stem)
def test_pages_refer_to_pages_and_examples_that_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r":doc:`(?:[^`<]+<)?([^`>]+)>?`", text):
        assert (DOCS / f"{name}.rst").exists() or name == "gallery/index", name
    for name in re.findall(r"sphx_glr_gallery_(\w+\.py)", text):
        assert (ROOT / "examples" / name).exists(), name


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.rst")), ids=lambda page: page.stem)
def test_names_of_classes_are_links(page):
    homes = {"widemargin": widemargin, "widemargin.structured": widemargin.structured}
    homes |= {f"widemargin.{name}": getattr(widemargin, name) for name in widemargin._SUBPACKAGES}
    full = {f"{home}.{name}" for home, module in homes.items() for name in module.__all__}
    short = {name.rpartition(".")[2] for name in full}
    text = page.read_text(encoding="utf-8")
    home = (re.findall(r"(?m)^\.\. currentmodule:: (\S+)", text) or [""])[0]
    names = re.findall(r"(?<![`:\w])`([A-Za-z_][\w.]*)`(?!`)", text)
    for name in set(names):
        if name[0].isupper() and name in short:
            assert f"{home}.{name}" in full, f"set currentmodule, or write the module of {name}"


def test_links_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_formulas_can_be_drawn_without_a_network():
    sources = [
        *DOCS.glob("*.rst"),
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "examples").glob("*.py"),
    ]
    count = 0
    for path in sources:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r":math:`([^`]+)`", text):
            assert FORMULAS["mathml"](match[1].replace("\\\\", "\\")).startswith("<math")
            count += 1
        for match in BLOCK_FORMULA.finditer(text):
            assert "<math" in FORMULAS["mathml"](match[2], block=True)
            count += 1
    assert count > 100
    half = FORMULAS["mathml"](r"\tfrac12 x")
    assert half == FORMULAS["mathml"](r"\tfrac{1}{2} x")
    assert half != FORMULAS["mathml"](r"\tfrac{12}{x}")


def test_the_changelog_becomes_a_page():
    page = CHANGES["converted"](
        "# Changelog\n\n## 1.0\n\n- `SVC(C=1)`, `fit`, ``a*b``: [x](http://y), 2*3\n"
    )
    assert page == (
        "1.0\n---\n\n- :obj:`SVC(C=1) <widemargin.SVC>`, ``fit``, ``a*b``: "
        "`x <http://y>`__, 2\\*3\n"
    )


def test_every_figure_of_the_summary_is_found():
    assert len(PERFORMANCE["summary"]()) == len(PERFORMANCE["_SUMMARY"])


def test_the_readme_fits_one_screen_of_text():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 80
