"""House rules for compiled code, read off the source: where it may live and what it may use."""

import ast
import builtins
from pathlib import Path

import pytest

import widemargin

PACKAGE = Path(widemargin.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = ("solvers/", "kernels/", "structured/inference/", "labeltree/")


def each_file():
    return pytest.mark.parametrize(
        "path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix()
    )


@each_file()
def test_compiled_code_lives_in_the_rooms_made_for_it(path):
    if compiled_functions(parse(path)):
        assert path.relative_to(PACKAGE).as_posix().startswith(ROOMS)


@each_file()
def test_compiled_code_uses_nothing_from_other_files(path):
    assert foreign_names(parse(path)) == []


@each_file()
def test_only_the_wrapper_imports_numba(path):
    if path != PACKAGE / "_core" / "compiled.py":
        assert "numba" not in imported_packages(parse(path))


def test_there_is_compiled_code_to_check():
    assert any(compiled_functions(parse(path)) for path in FILES)


@pytest.mark.parametrize(
    ("line", "foreign"),
    [
        ("return helper(x)", []),
        ("return np.sqrt(x) + math.exp(x) + exp(x)", []),
        ("return len(x) + abs(min(x)) + x.sum()", []),
        ("y = x.copy()\n    return y.sum()", []),
        ("return sum(CONSTANT * value + FIRST for value in x)", []),
        ("return plain(x)", ["plain"]),
        ("return other(x)", ["other"]),
        ("return elsewhere.function(x)", ["elsewhere"]),
        ("return x * ELSEWHERE", ["ELSEWHERE"]),
    ],
)
def test_the_check_finds_what_it_looks_for(line, foreign):
    module = ast.parse(f"""
import math
from math import exp
import numpy as np
from widemargin._core.compiled import compiled
from widemargin import elsewhere
from widemargin.elsewhere import ELSEWHERE, other

CONSTANT = 1
FIRST, SECOND = range(2)

def plain(x):
    return x

@compiled
def helper(x):
    return x

@compiled
def function(x):
    {line}
""")
    assert foreign_names(module) == foreign


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def compiled_functions(module):
    return [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(d, ast.Name) and d.id == "compiled" for d in node.decorator_list)
    ]


def imported_packages(module):
    packages = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            packages.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            packages.add(node.module.split(".")[0])
    return packages


def foreign_names(module):
    """Names in compiled functions other than local, builtin, numeric, constant or compiled."""
    functions = compiled_functions(module)
    allowed = set(dir(builtins)) | {function.name for function in functions}
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            allowed |= numeric_imports(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            allowed |= stored_names(node)
    return sorted(
        {
            name.id
            for function in functions
            for statement in function.body
            for name in ast.walk(statement)
            if isinstance(name, ast.Name) and name.id not in allowed | local_names(function)
        }
    )


def numeric_imports(node):
    names = set()
    for alias in node.names:
        origin = alias.name if isinstance(node, ast.Import) else node.module or ""
        if origin.split(".")[0] in ("math", "numpy"):
            names.add(alias.asname or alias.name.split(".")[0])
    return names


def local_names(function):
    arguments = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    return arguments | stored_names(function)


def stored_names(node):
    names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}
