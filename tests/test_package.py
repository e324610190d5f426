"""The public face: lazy, flat, and told to type checkers as it is."""

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.resources import files
from inspect import isclass, isfunction, ismodule
from pathlib import Path

import pytest

import widemargin

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", widemargin.__all__)
def test_every_public_name_resolves(name):
    assert getattr(widemargin, name) is not None


def test_classes_and_functions_know_their_home():
    for name, home in widemargin._HOMES.items():
        assert getattr(widemargin, name).__module__.startswith(f"widemargin.{home}")


def test_the_namespace_is_flat():
    for name in set(widemargin.__all__) - {"__version__", *widemargin._SUBPACKAGES}:
        value = getattr(widemargin, name)
        assert isclass(value) or isfunction(value)
    assert all(ismodule(getattr(widemargin, package)) for package in widemargin._SUBPACKAGES)


def test_dir_lists_the_public_names():
    assert dir(widemargin) == sorted(widemargin.__all__)


def test_the_stub_agrees_with_the_package():
    stub = ast.parse((files(widemargin) / "__init__.pyi").read_text())
    homes = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    expected = {name: f"widemargin.{home}" for name, home in widemargin._HOMES.items()}
    assert homes == expected | dict.fromkeys(widemargin._SUBPACKAGES, "widemargin")
    told = next(node.value for node in stub.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(told) == sorted(widemargin.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'SVM'"):
        widemargin.SVM  # noqa: B018


def test_the_version_is_the_installed_one():
    assert widemargin.__version__ == version("widemargin")


def test_the_package_is_typed():
    assert (files(widemargin) / "py.typed").is_file()


def test_importing_the_package_imports_nothing_else():
    check = "import widemargin, sys; sys.exit(any(m in sys.modules for m in ('numpy', 'sklearn')))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_the_oldest_lane_tries_the_lower_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    bounds = project["dependencies"] + extras["plot"] + extras["export"]
    tried = (ROOT / "constraints-oldest.txt").read_text().split()
    assert {bound.replace(">=", "==") for bound in bounds} <= set(tried)


def test_threads_may_import_lazy_names_at_once():
    code = """
import threading
import widemargin
names, barrier, failed = widemargin.__all__, threading.Barrier(12), []

def get_all(first):
    barrier.wait()
    for name in names[first:] + names[:first]:
        try:
            getattr(widemargin, name)
        except Exception as error:
            failed.append(f"{name}: {error!r}")

threads = [threading.Thread(target=get_all, args=[2 * k]) for k in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*failed, sep="\\n", end="")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.returncode) == ("", 0), result.stderr
