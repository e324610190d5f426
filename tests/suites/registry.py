"""The estimators that the shared suites run over: a new one joins by one line in `CASES`.

What a suite needs to know (does it take sparse rows, weights, jobs?) it reads off the estimator.
An estimator whose fit takes more than (X, y) joins through a subclass made here, for tests only,
that supplies the missing input from X.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from tests.suites.privileged import PrivilegedFromRows, SearchFromRows, TwoViewFromRows
from tests.suites.unlabeled import ClassifierOfTwins, PreferenceOfTwins, TransductiveOfTwins

from widemargin import (
    SVC,
    SVCCV,
    CodeMatrixClassifier,
    CrammerSingerSVC,
    GatedStudents,
    KernelDiscriminantAnalysis,
    LabelTreeClassifier,
    LinearDiscriminantAnalysis,
    LinearSVC,
    LinearSVCCV,
    PreferenceClassifier,
    PreferenceSVC,
    PrivilegedSVC,
    QuadraticDiscriminantAnalysis,
    RescaledClassifier,
    TransductiveSVC,
)


def classification(n_samples=90, n_classes=3, n_features=5, random_state=0):
    """Overlapping classes in standard units."""
    X, y = make_classification(
        n_samples=n_samples,
        n_classes=n_classes,
        n_features=n_features,
        n_informative=n_features - 1,
        n_redundant=0,
        class_sep=0.8,
        flip_y=0.05,
        random_state=random_state,
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), y


two_classes = partial(classification, n_classes=2)


def half(n_samples=90, **parameters):
    """Two classes, and not too many rows for each of them to come twice."""
    return two_classes(min(n_samples, 1050), **parameters)


def fewer(n_samples=90, **parameters):
    """The same for methods that have no other way for many rows than for few."""
    return classification(min(n_samples, 600), **parameters)


@dataclass(frozen=True)
class Case:
    """An estimator and what the suites cannot read off it."""

    estimator: BaseEstimator
    data: Callable = classification
    # Relative to the largest score: how near two ways to the same optimum come.
    precision: float = 1e-6
    # Checks of scikit-learn that contradict the method: {name: one sentence}.
    excluded_checks: dict[str, str] = field(default_factory=dict)

    def __str__(self):
        return repr(self.estimator).replace("\n", "")

    def new(self, **parameters):
        """Return an unfitted copy; parameters that the estimator has not are left out."""
        known = {name: value for name, value in parameters.items() if self.has(name)}
        return clone(self.estimator).set_params(**known)

    def precise(self):
        """Return an unfitted copy that solves its problem nearly exactly."""
        return self.new(tol=1e-8)

    def has(self, parameter):
        return parameter in self.estimator.get_params(deep=False)

    @cached_property
    def pairwise(self):
        return get_tags(self.estimator).input_tags.pairwise

    @cached_property
    def sparse(self):
        return get_tags(self.estimator).input_tags.sparse and not self.pairwise

    @cached_property
    def weighted(self):
        return has_fit_parameter(self.estimator, "sample_weight") and not self.pairwise


@dataclass(frozen=True)
class FoldsByContent:
    """Three folds, each row's told by its first number, wherever it stands in the data."""

    def split(self, X, y=None, groups=None):
        first = X[:, [0]].toarray() if sparse.issparse(X) else X[:, [0]]
        fold = np.floor(100.0 * first.ravel()) % 3
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


TOO_FEW_STEPS = {
    "check_class_weight_classifiers": "weights that differ 10^7 times take more than 1,000 steps"
}

FEW_OF_THE_LIGHT = {
    "check_class_weight_classifiers": "the optimum itself gives a quarter to the light class"
}
MARK = {"check_classifiers_classes": "-1 means unlabeled"}
BY_CONSTRAINT = {
    "check_class_weight_classifiers": "the threshold follows the constraints, whatever the weights"
}
FLOAT32_WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "nodes stop at a loose tolerance, and weights are rounded to float32"
    )
    for kind in ("dense", "sparse")
}

CASES = [
    Case(SVC()),
    Case(SVC(kernel="linear")),
    Case(SVC(kernel="poly", degree=2, coef0=1.0)),
    Case(SVC(kernel="laplacian", class_weight="balanced")),
    Case(SVC(multi_class="ovr")),
    Case(SVC(kernel="precomputed")),
    Case(
        SVC(probability=True),
        excluded_checks={
            f"check_sample_weight_equivalence_on_{kind}_data": (
                "folds consist of samples, whatever their weights; one class has a single sample"
            )
            for kind in ("dense", "sparse")
        },
    ),
    Case(LinearSVC()),
    Case(LinearSVC(dual=True, class_weight="balanced", max_iter=100_000)),
    # Other data: a row on the margins of two machines has equal scores, settled by rounding.
    Case(
        LinearSVC(loss="hinge", max_iter=100_000),
        data=partial(classification, random_state=2),
    ),
    Case(LinearSVC(multi_class="crammer_singer", max_iter=100_000)),
    # Costs far apart: a row on the margins of two machines may not decide which one is better.
    Case(
        LinearSVCCV(Cs=[1e-4, 0.1], loss="hinge", max_iter=100_000, cv=FoldsByContent()),
        data=partial(classification, random_state=2),
        excluded_checks={
            "check_sparsify_coefficients": "its few rows of whole numbers leave a fold empty"
        },
    ),
    Case(
        LinearSVCCV(Cs=[0.1, 1.0], cv=FoldsByContent()),
        excluded_checks={
            "check_sparsify_coefficients": "its few rows of whole numbers leave a fold empty"
        },
    ),
    Case(CrammerSingerSVC()),
    Case(CrammerSingerSVC(kernel="rbf", C=10.0)),
    Case(CrammerSingerSVC(kernel="precomputed")),
    # Other data, as above: a sample on the margins of two students.
    Case(GatedStudents(), data=partial(classification, random_state=2)),
    Case(GatedStudents(kernel="rbf", difficulty="relative-margin")),
    Case(LinearDiscriminantAnalysis()),
    Case(LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")),
    Case(LinearDiscriminantAnalysis(solver="svd")),
    Case(QuadraticDiscriminantAnalysis(shrinkage="oas", reg_param=0.1)),
    Case(KernelDiscriminantAnalysis()),
    Case(
        KernelDiscriminantAnalysis(kernel="precomputed"),
        excluded_checks={
            "check_decision_proba_consistency": "it gives rows where a kernel matrix is due",
            "check_estimators_dtypes": "its matrix is no kernel's: it has negative eigenvalues",
        },
    ),
    Case(CodeMatrixClassifier(SVC(), code="ovo")),
    Case(CodeMatrixClassifier(SVC(), code="sparse", decoding="hamming"), precision=1e-5),
    Case(CodeMatrixClassifier(LinearSVC(tol=1e-8), code="dense")),
    Case(RescaledClassifier(LinearDiscriminantAnalysis())),
    Case(
        LabelTreeClassifier(prune=0.0, max_iter=100_000),
        precision=1e-5,
        excluded_checks=FLOAT32_WEIGHTS,
    ),
    Case(LabelTreeClassifier(loss="crammer_singer", prune=0.0, max_iter=100_000), precision=1e-5),
    Case(
        LabelTreeClassifier(loss="log", prune=0.0, max_iter=100_000),
        precision=1e-5,
        excluded_checks=FLOAT32_WEIGHTS,
    ),
    Case(PrivilegedSVC()),
    # Other data, as above: a row on the margins of two machines.
    Case(
        PrivilegedFromRows(privileged_kernel="rbf", privileged_penalty=0.01),
        data=partial(classification, random_state=3),
        excluded_checks=FEW_OF_THE_LIGHT,
    ),
    Case(
        PrivilegedFromRows(loss="hinge", privileged_kernel="rbf", privileged_penalty=0.01),
        data=partial(fewer, random_state=3),
        excluded_checks=TOO_FEW_STEPS,
    ),
    Case(TwoViewFromRows(D=0.1), data=partial(fewer, random_state=3)),
    Case(
        SearchFromRows(
            Cs=[0.1, 1.0],
            privileged_penalties=[0.01, 0.1],
            slack_ridges=[0.0],
            privileged_kernel="rbf",
            cv=FoldsByContent(),
        ),
        data=partial(fewer, random_state=3),
        excluded_checks=FEW_OF_THE_LIGHT,
    ),
    Case(SVCCV(Cs=[0.1, 1.0], gammas=["scale", 0.5], cv=FoldsByContent())),
    # Halves drawn at random would not keep copies, or rows in another order, together.
    Case(
        PreferenceSVC(split="resubstitution", precision=0.7, margin=None),
        data=two_classes,
        excluded_checks={**MARK, **BY_CONSTRAINT},
    ),
    Case(
        PreferenceSVC(split="resubstitution", update="recompute", recall=0.9, margin=None),
        data=two_classes,
        excluded_checks={**MARK, **BY_CONSTRAINT},
    ),
    Case(
        PreferenceClassifier(SVC(tol=1e-8), split="resubstitution"),
        data=two_classes,
        excluded_checks=MARK,
    ),
    Case(TransductiveSVC(), data=two_classes, excluded_checks=MARK),
    Case(
        PreferenceOfTwins(split="resubstitution", precision=0.7, margin=None),
        data=half,
        excluded_checks=BY_CONSTRAINT,
    ),
    Case(ClassifierOfTwins(SVC(tol=1e-8), split="resubstitution", update="recompute"), data=half),
    Case(TransductiveOfTwins(), data=half),
]


def each_case(condition=lambda case: not case.pairwise):
    """Parametrise a test with the cases that meet the condition."""
    return pytest.mark.parametrize("case", [c for c in CASES if condition(c)], ids=str)


def answers(estimator, X):
    """Return what the estimator says about rows: its scores if it gives any."""
    for method in ("decision_function", "predict_proba", "predict"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    raise TypeError(f"{estimator} answers nothing")


def assert_close(actual, expected, precision):
    """Compare to a precision relative to the largest entry."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=precision * np.abs(expected).max(initial=1e-300)
    )
