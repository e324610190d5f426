"""scikit-learn's own tests of a class pass with our class in its place.

Of each test file the functions that use the class are run, but for those that use an option our
class does not have (`probability`, the l1 penalty) or private modules beside the class. Those that
cannot pass are listed with the reason; at least nine of ten must pass, and a listed one that passes
has to leave the list.
"""

import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest
import sklearn


@dataclass(frozen=True)
class Adopted:
    """One class that stands in for another, the test files, and what need not pass."""

    theirs: str
    ours: str
    modules: tuple[str, ...]
    # Tests whose source has one of these words are out.
    without: tuple[str, ...]
    exceptions: dict[str, str] = field(default_factory=dict)


SVM_TESTS = ("sklearn.svm.tests.test_svm", "sklearn.svm.tests.test_sparse")

SVC_EXCEPTIONS = {
    "sklearn.svm.tests.test_svm::test_tweak_params": (
        "sets the private _dual_coef_, in libsvm's sign, and expects predictions to follow"
    ),
    "sklearn.svm.tests.test_svm::test_svc_nusvc_probA_probB_deprecated": (
        "probA_ and probB_ belong to probability"
    ),
    "sklearn.svm.tests.test_svm::test_negative_weights_svc_leave_two_labels": (
        "a negative weight is refused, not taken for zero"
    ),
    "sklearn.svm.tests.test_svm::test_negative_weight_equal_coeffs": (
        "a negative weight is refused, not taken for zero"
    ),
}

# The second is a test with the l1 penalty that another one calls.
WITHOUT_L1 = ('"l1"', "test_dense_liblinear_intercept_handling")

LINEAR_EXCEPTIONS = {
    "sklearn.svm.tests.test_svm::test_linear_svm_convergence_warnings": (
        "wants a warning after two iterations where ours has converged"
    ),
}

DISCRIMINANT_TESTS = ("sklearn.tests.test_discriminant_analysis",)

ADOPTED = [
    Adopted(
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "widemargin.LinearDiscriminantAnalysis",
        DISCRIMINANT_TESTS,
        without=(),
    ),
    Adopted(
        "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
        "widemargin.QuadraticDiscriminantAnalysis",
        DISCRIMINANT_TESTS,
        without=(),
    ),
    Adopted(
        "sklearn.svm.LinearSVC", "widemargin.LinearSVC", SVM_TESTS, WITHOUT_L1, LINEAR_EXCEPTIONS
    ),
    Adopted("sklearn.svm.SVC", "widemargin.SVC", SVM_TESTS, ("probability",), SVC_EXCEPTIONS),
]


@pytest.mark.parametrize("adopted", ADOPTED, ids=lambda adopted: adopted.theirs)
def test_scikit_learn_accepts_our_class_for_its_own(adopted, tmp_path):
    functions = [
        name
        for module in adopted.modules
        for name in using(adopted.theirs, module, adopted.without)
    ]
    failures = run(functions, adopted, tmp_path)
    passed = len(functions) - len(failures)
    print(f"{adopted.ours} passes {passed} of {len(functions)} tests of {adopted.theirs}")

    unexpected = {name: why for name, why in failures.items() if name not in adopted.exceptions}
    assert not unexpected, "\n\n".join(f"{name}:\n{why}" for name, why in unexpected.items())
    stale = sorted(set(adopted.exceptions) - set(failures))
    assert not stale, f"listed as exceptions but not failing: {stale}"
    assert passed >= 0.9 * len(functions)


def test_functions_are_chosen_by_what_they_use():
    chosen = set(using("sklearn.svm.SVC", "sklearn.svm.tests.test_svm", ["probability"]))
    prefix = "sklearn.svm.tests.test_svm::"
    assert prefix + "test_precomputed" in chosen  # constructs it
    assert prefix + "test_custom_kernel_not_array_input" in chosen  # is parametrised with it
    assert prefix + "test_oneclass" not in chosen  # another class
    assert prefix + "test_libsvm_iris" not in chosen  # uses a private module
    assert prefix + "test_probability" not in chosen  # uses probability


def using(theirs, module, without):
    """Return "module::function" of the tests in `module` that are to run with our class."""
    package, name = theirs.rsplit(".", 1)
    text = Path(find_spec(module).origin).read_text(encoding="utf-8")
    tree = ast.parse(text)
    private = _private_names(tree, package)
    chosen = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            used = _names(node)
            source = _source(node, text)
            if name in used and not used & private and not any(word in source for word in without):
                chosen.append(f"{module}::{node.name}")
    return chosen


def run(functions, adopted, folder):
    """Run the tests in a process of their own; return {function: message} of those that fail."""
    home = Path(sklearn.__file__).parent
    configuration, report = folder / "pytest.ini", folder / "report.xml"
    configuration.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-p", "tests.adopted.swap", "--swap", f"{adopted.theirs}={adopted.ours}"]
    command += ["-c", str(configuration), "--rootdir", str(home.parent), "--confcutdir", str(home)]
    command += ["--junit-xml", str(report), "--pyargs", *functions]
    outcome = subprocess.run(
        command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False
    )
    assert report.exists(), outcome.stdout + outcome.stderr

    passed, failures = set(), {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name').split('[')[0]}"
        messages = [part.text for kind in ("failure", "error") for part in case.iter(kind)]
        if messages:
            failures.setdefault(name, f"{case.get('name')}\n{messages[0]}")
        elif case.find("skipped") is None:
            passed.add(name)
    for name in set(functions) - passed - set(failures):
        failures[name] = f"did not run\n{outcome.stdout[-2000:]}"
    return failures


def _environment():
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


def _names(node):
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def _private_names(tree, package):
    """Names that the module imports from private modules of the package."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
            for alias in node.names:
                path = f"{node.module}.{alias.name}".removeprefix(package)
                if any(part.startswith("_") for part in path.split(".")):
                    names.add(alias.asname or alias.name)
    return names


def _source(node, text):
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
