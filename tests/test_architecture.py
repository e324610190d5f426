"""docs/architecture.rst is true: the listed functions exist and run, in the listed order."""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.structured.cases import MODELS, samples
from tests.suites.registry import classification, two_classes

import widemargin
from widemargin.structured import CoulombSSVM

PACKAGE = Path(widemargin.__file__).parent
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.rst").read_text(encoding="utf-8")
FITS = {
    "SVC": lambda: widemargin.SVC().fit(*classification()),
    "LinearSVC": lambda: widemargin.LinearSVC().fit(*classification()),
    "GatedStudents": lambda: widemargin.GatedStudents(LogisticRegression()).fit(*classification()),
    "PreferenceSVC": lambda: fit_preference(),
    "PrivilegedSVC": lambda: fit_privileged(),
    "LabelTreeClassifier": lambda: widemargin.LabelTreeClassifier().fit(*classification()),
    "CoulombSSVM": lambda: fit_coulomb(),
}


def fit_preference():
    X, y = two_classes()
    widemargin.PreferenceSVC(precision=0.8, random_state=0).fit(X[:60], y[:60], X_unlabeled=X[60:])


def fit_privileged():
    X, y = two_classes()
    widemargin.PrivilegedSVC(privileged_kernel="rbf").fit(X, y, privileged=np.abs(X))


def fit_coulomb():
    model, draw = MODELS["chain"]
    CoulombSSVM(model, 3, n_steps=3, max_iter=3, random_state=0).fit(*samples(draw, 10))


def steps(name):
    """Return the files and functions that the page lists for an estimator."""
    section = re.search(rf"(?ms)^{name}\n~+\n(.*?)(?=^[^\n]+\n[~-]+\n)", PAGE)
    assert section, f"the page has no section {name}"
    return re.findall(r"^\d+\. ``([\w/.]+)``: ``([\w.]+)``", section[1], re.MULTILINE)


def called_functions(run):
    """Return the functions of the package in the order of their first calls, by file and name."""
    found = {}

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            path = Path(code.co_filename).relative_to(PACKAGE).as_posix()
            found.setdefault((path, code.co_qualname), len(found))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()  # compile first: what compiled code calls is seen when it is compiled
        sys.setprofile(profile)
        try:
            run()
        finally:
            sys.setprofile(None)
    return found


@pytest.mark.parametrize("name", FITS)
def test_the_path_of_the_data_is_the_one_on_the_page(name):
    listed = steps(name)
    assert len(listed) >= 4
    found = called_functions(FITS[name])
    missing = [step for step in listed if step not in found]
    assert missing == [], f"not called: {missing}"
    order = [found[step] for step in listed]
    assert order == sorted(order)


def test_what_to_add_names_files_and_tests_that_exist():
    table = PAGE[PAGE.index("I want to add") :]
    files = re.findall(r"``(src/widemargin/[\w/]+\.py)``", table)
    tests = re.findall(r"``(tests/[\w/]+\.py)``", table)
    assert len(files) >= 5
    assert len(tests) >= 4
    assert [path for path in files + tests if not (ROOT / path).is_file()] == []
