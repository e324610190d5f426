"""Input that is odd but easy to pass: the right answer, or an error that names the argument."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import widemargin as wm
from widemargin.structured import (
    ChainCRF,
    EdgeFeatureGraphCRF,
    FrankWolfeSSVM,
    OneSlackSSVM,
    SubgradientSSVM,
)
from widemargin.structured.inference.dispatch import METHODS, Potentials, infer

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 4)), RNG.integers(0, 3, 60)
BINARY = (Y > 0).astype(int)
CHAINS = [RNG.standard_normal((5, 4)) for _ in range(12)]
LABELS = [RNG.integers(0, 3, 5) for _ in CHAINS]

each_learner = pytest.mark.parametrize("learner", [FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM])


def with_duplicates(X):
    """Return a CSR matrix in which every value is the sum of two entries."""
    n, d = X.shape
    values = np.hstack([0.25 * X, 0.75 * X])
    columns = np.tile(np.arange(d), (n, 2))
    matrix = sparse.csr_array((values.ravel(), columns.ravel(), 2 * d * np.arange(n + 1)), X.shape)
    assert not matrix.has_canonical_format
    return matrix


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_duplicate_entries_of_sparse_samples_are_summed(kernel):
    dense = wm.KernelDiscriminantAnalysis(kernel=kernel).fit(X, Y)
    rows = wm.KernelDiscriminantAnalysis(kernel=kernel).fit(with_duplicates(X), Y)
    assert_array_equal(dense.predict(X), rows.predict(with_duplicates(X)))
    assert_array_equal(dense.predict(X), dense.predict(with_duplicates(X)))


@pytest.mark.parametrize("weight", [np.inf, np.nan, -1.0])
@pytest.mark.parametrize("name", ["SVC", "LinearSVC", "CrammerSingerSVC", "SVCCV", "PreferenceSVC"])
def test_class_weights_must_be_finite(name, weight):
    labels = np.where(np.arange(60) < 40, BINARY, -1) if name == "PreferenceSVC" else BINARY
    model = getattr(wm, name)(class_weight={0: weight})
    with pytest.raises(ValueError, match="class_weight must contain finite, non-negative numbers"):
        model.fit(X, labels)


@pytest.mark.parametrize("name", ["PrivilegedSVC", "TwoViewSVC"])
def test_class_weights_with_privileged_features_must_be_finite(name):
    with pytest.raises(ValueError, match="class_weight must contain finite"):
        getattr(wm, name)(class_weight={0: np.inf}).fit(X, BINARY, X[:, :2])


@pytest.mark.parametrize("name", ["SVC", "LinearSVC", "CrammerSingerSVC"])
@pytest.mark.parametrize(("C", "weight"), [(1e10, 1e300), (1e160, 1.0)])
def test_costs_whose_squares_overflow_are_refused(name, C, weight):
    model = getattr(wm, name)(C=C, class_weight={0: weight})
    with pytest.raises(ValueError, match=r"C \* class_weight \* sample_weight must be at most"):
        model.fit(X, BINARY)


@pytest.mark.parametrize(
    "parameters", [{}, {"dual": True}, {"loss": "hinge"}, {"multi_class": "crammer_singer"}]
)
def test_overflows_of_linear_fits_show_in_the_duality_gap(parameters):
    # NumPy's warnings would be errors here.
    with pytest.warns(ConvergenceWarning, match="limited by floating-point precision"):
        model = wm.LinearSVC(C=1e100, **parameters).fit(1e100 * X, BINARY)
    assert model.dual_gap_.max() >= 1.0
    assert np.isfinite(model.coef_).all()
    model.predict(1e100 * X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [0, 1])
@pytest.mark.parametrize("name", ["SVCCV", "LinearSVCCV", "PrivilegedSVCCV"])
def test_searches_accept_few_iterations(name, max_iter):
    more = (X[:, :2],) if name == "PrivilegedSVCCV" else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = getattr(wm, name)(max_iter=max_iter).fit(X, BINARY, *more)
    assert set(model.predict(X)) <= {0, 1}


DISCRIMINANTS = ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]


@pytest.mark.parametrize("name", DISCRIMINANTS)
def test_discriminants_refuse_values_whose_squares_overflow(name):
    outlier = X.copy()
    outlier[3, 1] = 1e200
    for rows in (outlier, sparse.csr_array(outlier)):
        with pytest.raises(ValueError, match=r"X must contain values of magnitude up to 1e\+150"):
            getattr(wm, name)().fit(rows, Y)


@pytest.mark.parametrize("size", [1e-200, 1e100, 1e149])
@pytest.mark.parametrize("name", DISCRIMINANTS)
def test_discriminants_have_finite_scores_far_from_all_classes(name, size):
    model = getattr(wm, name)().fit(X, Y)
    far = size * np.sign(X)
    assert np.isfinite(model.decision_function(far)).all()
    assert np.isfinite(model.predict_proba(far)).all()


@each_learner
def test_structured_learners_do_not_read_none_as_0(learner):
    missing = [x.astype(object) for x in CHAINS]
    missing[0][0, 0] = None
    with pytest.raises(ValueError, match="x must contain numbers, got None"):
        learner(ChainCRF(), max_iter=2).fit(missing, LABELS)
    with pytest.raises(ValueError, match="x must contain numbers, got None"):
        learner(ChainCRF(), max_iter=2).fit([x.tolist() for x in missing], LABELS)


@each_learner
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_structured_learners_refuse_complex_numbers(learner):
    imaginary = [x + 1j for x in CHAINS]
    with pytest.raises(ValueError, match="x must contain real numbers, got complex"):
        learner(ChainCRF(), max_iter=2).fit(imaginary, LABELS)
    model = learner(ChainCRF(), max_iter=2).fit(CHAINS, LABELS)
    with pytest.raises(ValueError, match="x must contain real numbers, got complex"):
        model.predict(imaginary)


@pytest.mark.parametrize("odd", [1j, None])
def test_edge_features_are_real_numbers(odd):
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    features = np.ones((4, 1), dtype=object)
    features[0, 0] = odd
    features = features.astype(complex) if odd == 1j else features
    graphs = [(x, edges, features) for x in CHAINS]
    with pytest.raises(ValueError, match="edge_features must contain"):
        FrankWolfeSSVM(EdgeFeatureGraphCRF(), max_iter=2).fit(graphs, LABELS)


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e-9, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("max-product", "graph-cut")])
def test_inference_is_the_same_at_all_scales(method, size):
    edges = np.array([(i, j) for i in range(6) for j in range(i)])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        unary = rng.standard_normal((6, 2 + seed % 2))
        pairwise = rng.standard_normal((len(edges), *2 * unary.shape[1:]))
        potentials = Potentials(size * unary, edges, size * pairwise)
        found, best = infer(potentials, method), infer(potentials, "enumerate")
        assert found.score <= best.score * (1.0 + 1e-9)
        assert not found.exact or found.score >= best.score * (1.0 - 1e-9)
        assert found.bound >= best.score * (1.0 - 1e-9)
        assert_array_equal(found.labels, infer(Potentials(unary, edges, pairwise), method).labels)


def test_one_slack_ends_on_unscaled_features():
    model = OneSlackSSVM(ChainCRF()).fit([1e4 * x for x in CHAINS], LABELS)
    assert model.dual_gap_ <= model.tol


@pytest.mark.parametrize("constant", [1e6, -1e5])
def test_crammer_and_singer_end_with_a_large_constant_feature(constant):
    samples = np.hstack([X, np.full((60, 1), constant)])
    model = wm.CrammerSingerSVC().fit(samples, Y)
    assert np.max(model.dual_gap_) <= 1e-3
