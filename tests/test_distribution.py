"""The source distribution and the wheel contain what they need, and nothing else."""

import email
import os
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import widemargin

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build both; return the names in each, and the metadata of the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    wheel, sdist = sorted(folder.iterdir(), key=lambda path: path.suffix != ".whl")
    with tarfile.open(sdist) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames()]
    with zipfile.ZipFile(wheel) as archive:
        members = archive.namelist()
        info = f"widemargin-{widemargin.__version__}.dist-info"
        metadata = email.message_from_string(archive.read(f"{info}/METADATA").decode())
        scripts = archive.read(f"{info}/entry_points.txt").decode()
    return {
        "sdist": names,
        "wheel": members,
        "metadata": metadata,
        "scripts": scripts,
        "archive": sdist,
    }


def source_files():
    package = ROOT / "src" / "widemargin"
    files = [path for path in package.rglob("*") if path.is_file()]
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in files
        if "__pycache__" not in path.parts
    }


def test_the_wheel_contains_the_package_and_nothing_else(built):
    code = {name for name in built["wheel"] if not name.split("/")[0].endswith(".dist-info")}
    assert code == source_files()
    assert {"widemargin/py.typed", "widemargin/__init__.pyi"} <= code
    assert any(name.endswith("licenses/LICENSE") for name in built["wheel"])


def test_the_source_distribution_contains_what_the_tests_need(built):
    expected = {
        "Makefile", "constraints.txt", "constraints-oldest.txt", "pyproject.toml", "README.md",
        "LICENSE", "CHANGELOG.md", "CITATION.cff", "tests/conftest.py", "tests/suites/registry.py",
        "docs/conf.py", "examples/GALLERY_HEADER.rst", "tools/count_code.py", "conda/meta.yaml",
    }  # fmt: skip
    names = set(built["sdist"])
    assert expected <= names
    assert {f"src/{name}" for name in source_files()} <= names
    assert {f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")} <= names


def test_the_source_distribution_contains_no_built_files(built):
    built_parts = {"__pycache__", "_build", "generated", ".venv", ".git", ".hypothesis"}
    assert [name for name in built["sdist"] if built_parts & set(name.split("/"))] == []


def test_a_release_shows_the_images_of_its_readme_on_the_package_index(built):
    hook = runpy.run_path(str(ROOT / "tools" / "release_metadata.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    # Elsewhere than on a server that builds releases, the links stay as they are.
    assert built["metadata"].get_payload() == readme or os.environ.get("GITHUB_REPOSITORY")
    server = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "a/b"}
    assert hook["repository_url"]({}) is None
    repository = hook["repository_url"](server)
    assert hook["project_urls"](repository)["Source"] == "https://git.example/a/b"
    text = hook["absolute_links"](readme, repository, "v1")
    assert "](https://git.example/a/b/raw/v1/docs/_static/margins.png)" in text
    assert "](https://git.example/a/b/blob/v1/docs/start.rst)" in text
    assert hook["LINK"].findall(text) == []
    for _, _, path in hook["LINK"].findall(readme):
        assert (ROOT / path).exists()


@pytest.mark.slow
def test_tests_run_from_the_source_distribution(built, tmp_path):
    with tarfile.open(built["archive"]) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    environment = {**os.environ, "PYTHONPATH": str(unpacked / "src")}
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("tests/test_package.py", "tests/test_source.py", "tests/svm/test_scores.py"),
        ],
        cwd=unpacked, env=environment, check=True,
    )  # fmt: skip


def test_the_metadata_is_complete(built):
    metadata = built["metadata"]
    assert metadata["Version"] == widemargin.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert {"plot", "export", "cli"} <= set(metadata.get_all("Provides-Extra"))
    assert built["scripts"].split() == [
        "[console_scripts]", "widemargin", "=", "widemargin.cli.main:main",
    ]  # fmt: skip


def test_extras_that_users_install_need_no_development_tools(built):
    required = built["metadata"].get_all("Requires-Dist")
    plain = {line.split(">")[0].split(";")[0].strip() for line in required if "extra" not in line}
    assert plain == {"numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "numba"}


def test_the_conda_recipe_has_the_version_and_the_requirements_of_the_package():
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f'version: "{widemargin.__version__}"' in recipe
    run = recipe.partition("  run:\n")[2].partition("  run_constrained:")[0]
    listed = {line.strip().removeprefix("- ").replace(" ", "") for line in run.splitlines()}
    expected = {name.replace(" ", "") for name in project["dependencies"]}
    assert listed == expected | {f"python{project['requires-python']}"}
    assert f"{next(iter(project['scripts']))} = {project['scripts']['widemargin']}" in recipe
    assert project["description"] in recipe
