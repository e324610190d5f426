"""Rules for compiled code, read from the source: where it may live and what it may use."""

import ast
import builtins
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import widemargin

PACKAGE = Path(widemargin.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
PACKAGES = ("solvers/", "kernels/", "structured/inference/", "structured/oracles/", "labeltree/")


def test_compiled_code_lives_in_the_packages_made_for_it():
    found = [name(path) for path in FILES if compiled_functions(parse(path))]
    assert found
    assert [path for path in found if not path.startswith(PACKAGES)] == []


def test_compiled_code_uses_compiled_functions_constants_and_numpy_only():
    assert {name(path): foreign_names(parse(path)) for path in FILES if uses_other(path)} == {}


def test_only_the_wrapper_and_its_cache_import_numba():
    importing = [name(path) for path in FILES if "numba" in imported_packages(parse(path))]
    assert importing == ["_base/code_cache.py", "_base/jit.py"]


@pytest.mark.parametrize(
    ("line", "foreign"),
    [
        ("return helper(x)", []),
        ("return np.sqrt(x) + math.exp(x) + exp(x)", []),
        ("return len(x) + abs(min(x)) + x.sum()", []),
        ("y = x.copy()\n    return y.sum()", []),
        ("return sum(CONSTANT * value + FIRST for value in x)", []),
        ("return dot(x, x) * PASSES", []),
        ("return plain(x)", ["plain"]),
        ("return load_checkpoint(x)", ["load_checkpoint"]),
        ("return elsewhere.function(x)", ["elsewhere"]),
    ],
)
def test_the_check_finds_what_it_looks_for(line, foreign):
    module = ast.parse(f"""
import math
from math import exp
import numpy as np
from widemargin._base.jit import compiled
from widemargin._base.checkpoint import load_checkpoint
from widemargin.solvers.structured.problem import dot
from widemargin.solvers.states import PASSES
from widemargin import elsewhere

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


def name(path):
    return path.relative_to(PACKAGE).as_posix()


def uses_other(path):
    return bool(foreign_names(parse(path)))


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def compiled_functions(module):
    return [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
        and any(is_compiled(decorator) for decorator in node.decorator_list)
    ]


def is_compiled(decorator):
    """Return whether a decorator is ``compiled`` or a call of it."""
    decorator = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(decorator, ast.Name) and decorator.id == "compiled"


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
            allowed |= numeric_imports(node) | compiled_imports(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            allowed |= stored_names(node)
    foreign = set()
    for function in functions:
        statements = (ast.walk(statement) for statement in function.body)
        used = {node.id for nodes in statements for node in nodes if isinstance(node, ast.Name)}
        foreign |= used - allowed - local_names(function)
    return sorted(foreign)


def numeric_imports(node):
    names = set()
    for alias in node.names:
        origin = alias.name if isinstance(node, ast.Import) else node.module or ""
        if origin.split(".")[0] in ("math", "numpy"):
            names.add(alias.asname or alias.name.split(".")[0])
    return names


def compiled_imports(node):
    """Return the compiled functions and the numbers that are imported from the package."""
    if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("widemargin."):
        return set()
    try:
        module = import_module(node.module)
    except ModuleNotFoundError:
        return set()
    values = {alias.asname or alias.name: getattr(module, alias.name, None) for alias in node.names}
    return {
        key
        for key, value in values.items()
        if isinstance(value, int | float | np.number) or hasattr(value, "dispatcher")
    }


def local_names(function):
    arguments = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    return arguments | stored_names(function)


def stored_names(node):
    names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}
