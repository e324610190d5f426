"""SVC as its user sees it: what it answers, beside scikit-learn's SVC at tight tolerance."""

import pickle

import numpy as np
import pytest
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_blobs
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel
from sklearn.preprocessing import scale

from widemargin import SVC
from widemargin._base.options import kernel_options, smo_options
from widemargin.kernels import KernelFunction
from widemargin.svm.reduction import pair_weights

TIGHT = {"tol": 1e-9}

KERNELS = {
    "linear": {},
    "rbf": {},
    "poly": {"coef0": 1.0, "gamma": 0.1},
    "sigmoid": {"gamma": 0.01},
}


@pytest.fixture(scope="module")
def three_classes():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:200, :8], y[:200]


@pytest.fixture(scope="module")
def ten_classes():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


def both(**parameters):
    """Return an SVC of ours and one of scikit-learn's."""
    return SVC(**(TIGHT | parameters)), sklearn.svm.SVC(**(TIGHT | parameters))


def assert_same_scores(ours, theirs, X):
    expected = theirs.decision_function(X)
    assert ours.decision_function(X).shape == expected.shape
    # scikit-learn's solver reads kernel values in single precision, which C magnifies.
    precision = 1e-6 * max(1.0, ours.C)
    assert_allclose(ours.decision_function(X), expected, atol=precision * np.abs(expected).max())
    assert_array_equal(ours.predict(X), theirs.predict(X))


class TestScores:
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("shape", ["ovo", "ovr"])
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
    def test_equal_those_of_scikit_learn(self, three_classes, kernel, shape, container):
        X, y = three_classes
        X = container(X)
        parameters = {"kernel": kernel, "decision_function_shape": shape, **KERNELS[kernel]}
        ours, theirs = (model.fit(X, y) for model in both(**parameters))
        assert_same_scores(ours, theirs, X)

    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
    def test_of_two_classes_equal_those_of_scikit_learn(self, two_classes, kernel, C):
        X, y = two_classes
        ours, theirs = (m.fit(X, y) for m in both(kernel=kernel, C=C, **KERNELS[kernel]))
        assert_same_scores(ours, theirs, X)
        assert_array_equal(ours.decision_function(X) > 0, ours.predict(X) == ours.classes_[1])

    def test_of_many_classes_equal_those_of_scikit_learn(self, ten_classes):
        X, y = ten_classes
        for shape, width in [("ovo", 45), ("ovr", 10)]:
            ours, theirs = (m.fit(X, y) for m in both(C=5.0, decision_function_shape=shape))
            assert ours.decision_function(X).shape == (300, width)
            assert_same_scores(ours, theirs, X)

    def test_with_weights_equal_those_of_scikit_learn(self, three_classes):
        X, y = three_classes
        weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
        weights[::10] = 0.0
        # "scale" counts rows by their weights here and once each in scikit-learn.
        ours, theirs = both(gamma=0.2, class_weight={0: 3.0, 2: 0.5})
        for model in (ours, theirs):
            model.fit(X, y, sample_weight=weights)
        assert_same_scores(ours, theirs, X)
        assert_array_equal(ours.class_weight_, theirs.class_weight_)

    def test_of_imbalanced_classes_equal_those_of_scikit_learn(self):
        X, y = make_blobs([180, 8, 12], random_state=0, cluster_std=3.0)
        ours, theirs = (m.fit(X, y) for m in both(class_weight="balanced"))
        assert_same_scores(ours, theirs, X)
        assert_allclose(ours.class_weight_, theirs.class_weight_)
        explicit = SVC(**TIGHT, class_weight=dict(enumerate(200 / (3 * np.bincount(y)))))
        assert_allclose(ours.decision_function(X), explicit.fit(X, y).decision_function(X))

    def test_of_laplacian_kernel_equal_those_of_the_precomputed(self, three_classes):
        X, y = three_classes
        ours = SVC(**TIGHT, kernel="laplacian", gamma=0.3).fit(X, y)
        theirs = sklearn.svm.SVC(**TIGHT, kernel=lambda A, B: laplacian_kernel(A, B, gamma=0.3))
        assert_same_scores(ours, theirs.fit(X, y), X)
        rows = sparse.csr_array(X)
        on_sparse = SVC(**TIGHT, kernel="laplacian", gamma=0.3).fit(rows, y)
        assert_allclose(on_sparse.decision_function(rows), ours.decision_function(X), atol=1e-6)

    def test_of_precomputed_kernel_equal_those_of_the_kernel(self, three_classes):
        X, y = three_classes
        train, test = slice(None, None, 2), slice(1, None, 2)
        plain = SVC(**TIGHT, gamma=0.5).fit(X[train], y[train])
        gram = rbf_kernel(X, X[train], gamma=0.5)
        precomputed = SVC(**TIGHT, kernel="precomputed").fit(gram[train], y[train])
        assert_allclose(
            precomputed.decision_function(gram[test]), plain.decision_function(X[test]), atol=1e-7
        )
        assert_array_equal(precomputed.support_, plain.support_)
        assert precomputed.support_vectors_.shape == (0, 0)

    def test_of_precomputed_kernel_need_it_symmetric(self, two_classes):
        X, y = two_classes
        gram = X @ X.T
        with pytest.raises(ValueError, match=r"X must be symmetric, got .*K \+ K\.T"):
            SVC(kernel="precomputed").fit(gram + np.tri(len(y)), y)
        # What rounding in float32 leaves of symmetry is enough.
        noise = 1.0 + 1e-7 * np.random.default_rng(0).standard_normal(gram.shape)
        rounded = SVC(kernel="precomputed").fit(gram * noise, y)
        expected = SVC(kernel="precomputed").fit(gram, y).decision_function(gram)
        assert_allclose(rounded.decision_function(gram), expected, atol=0.01)

    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
    def test_of_callable_kernel_equal_those_of_the_kernel(self, three_classes, container):
        X, y = three_classes
        X = container(X)
        plain = SVC(**TIGHT, gamma=0.5).fit(X, y)
        called = SVC(**TIGHT, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5)).fit(X, y)
        assert_allclose(called.decision_function(X), plain.decision_function(X), atol=1e-7)
        assert_array_equal(called.support_, plain.support_)

    @settings(max_examples=40)
    @given(
        seed=st.integers(0, 2**32 - 1),
        n_samples=st.integers(6, 60),
        n_features=st.integers(1, 6),
        n_classes=st.integers(2, 4),
        C=st.sampled_from([0.01, 1.0, 30.0]),
        gamma=st.sampled_from(["scale", "auto", 0.05, 2.0]),
        whole=st.booleans(),
    )
    def test_of_any_data_equal_those_of_scikit_learn(
        self, seed, n_samples, n_features, n_classes, C, gamma, whole
    ):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n_samples, n_features))
        X = np.round(X) if whole else X
        y = np.append(np.arange(n_classes), rng.integers(0, n_classes, n_samples - n_classes))
        ours, theirs = (m.fit(X, y) for m in both(C=C, gamma=gamma))
        assert_same_scores(ours, theirs, X)


class TestOneVsRest:
    def test_scores_equal_those_of_one_machine_for_each_class(self, three_classes):
        X, y = three_classes
        weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
        of_class = {0: 1.0, 1: 2.0, 2: 0.5}
        model = SVC(**TIGHT, gamma=0.2, multi_class="ovr", class_weight=of_class)
        model.fit(X, y, sample_weight=weights)
        scores = model.decision_function(X)
        assert scores.shape == (len(y), 3)
        for label in range(3):
            by_hand = sklearn.svm.SVC(**TIGHT, gamma=0.2)
            by_hand.fit(X, y == label, sample_weight=weights * np.take([1.0, 2.0, 0.5], y))
            assert_allclose(scores[:, label], by_hand.decision_function(X), atol=1e-6)
        assert_array_equal(model.predict(X), scores.argmax(axis=1))

    def test_attributes_have_a_row_for_each_class(self, three_classes):
        X, y = three_classes
        model = SVC(**TIGHT, kernel="linear", multi_class="ovr").fit(X, y)
        assert model.dual_coef_.shape == (3, len(model.support_))
        assert model.intercept_.shape == model.objective_.shape == model.dual_gap_.shape == (3,)
        assert model.n_iter_.shape == (3,)
        assert_allclose(
            X @ model.coef_.T + model.intercept_, model.decision_function(X), atol=1e-10
        )
        assert_array_equal(np.bincount(y[model.support_]), model.n_support_)
        # Positive for the class itself, negative for the rest.
        own = y[model.support_] == np.arange(3)[:, None]
        assert (model.dual_coef_[own] >= 0).all()
        assert (model.dual_coef_[~own] <= 0).all()

    def test_two_classes_are_the_same_machine_either_way(self, two_classes):
        X, y = two_classes
        one, other = (SVC(multi_class=way).fit(X, y) for way in ("ovo", "ovr"))
        assert_array_equal(one.decision_function(X), other.decision_function(X))

    @pytest.mark.parametrize(("way", "other"), [("ovr", "ovo"), ("ovo", "ovr")])
    def test_machines_answer_as_they_were_trained(self, three_classes, way, other):
        X, y = three_classes
        model = SVC(kernel="linear", multi_class=way).fit(X, y)
        expected = model.predict(X), model.decision_function(X), model.coef_
        model.set_params(multi_class=other)
        found = model.predict(X), model.decision_function(X), model.coef_
        for one, another in zip(expected, found, strict=True):
            assert_array_equal(one, another)
        fresh = SVC(kernel="linear", multi_class=other).fit(X, y)
        assert_array_equal(model.fit(X, y).dual_coef_, fresh.dual_coef_)

    @pytest.mark.large
    @pytest.mark.parametrize("cache_size", [3, 200])
    def test_many_rows_give_the_same_bits_on_any_number_of_jobs(self, cache_size):
        X, y = make_blobs(smo_options.dense_size + 400, 6, random_state=0, cluster_std=5.0)
        one, two, three = (
            SVC(multi_class="ovr", tol=0.01, cache_size=cache_size, n_jobs=n_jobs).fit(X, y)
            for n_jobs in (1, 2, 3)
        )
        for other in (two, three):
            for name in ("support_", "dual_coef_", "intercept_", "n_iter_", "dual_gap_"):
                assert_array_equal(getattr(other, name), getattr(one, name), err_msg=name)

    def test_scores_of_pairs_are_refused(self, three_classes):
        with pytest.raises(ValueError, match="decision_function_shape"):
            SVC(multi_class="ovr", decision_function_shape="ovo").fit(*three_classes)


class TestPrediction:
    def test_votes_may_tie_and_break_ties_settles_by_scores(self):
        X, y = make_blobs(n_samples=20, random_state=42)
        grid = np.random.default_rng(0).uniform(X.min(), X.max(), (2000, 2))
        voting = SVC(gamma=1e6).fit(X, y)
        settled = SVC(gamma=1e6, break_ties=True).fit(X, y)
        scores = voting.decision_function(grid)
        assert (voting.predict(grid) != scores.argmax(axis=1)).any()
        assert_array_equal(settled.predict(grid), scores.argmax(axis=1))

    def test_break_ties_is_refused_with_scores_of_pairs(self, three_classes):
        X, y = three_classes
        model = SVC(break_ties=True, decision_function_shape="ovo").fit(X, y)
        with pytest.raises(ValueError, match="break_ties must be False"):
            model.predict(X)

    def test_scores_for_classes_keep_the_order_of_the_votes(self, ten_classes):
        X, y = ten_classes
        model = SVC(decision_function_shape="ovr").fit(X, y)
        pairs = SVC(decision_function_shape="ovo").fit(X, y).decision_function(X)
        votes = np.zeros((len(X), 10))
        for score, (i, j) in zip(pairs.T, zip(*np.triu_indices(10, 1), strict=True), strict=True):
            votes[:, i] += score > 0
            votes[:, j] += score <= 0
        assert_array_equal(np.round(model.decision_function(X)), votes)

    def test_many_rows_are_answered_in_blocks(self, two_classes):
        X, y = two_classes
        model = SVC().fit(X, y)
        many = np.repeat(X, 300, axis=0)
        assert_array_equal(
            model.decision_function(many), np.repeat(model.decision_function(X), 300)
        )

    def test_no_rows_of_a_sparse_matrix_need_be_set(self, three_classes):
        X, y = three_classes
        model = SVC().fit(sparse.csr_array(X), y)
        empty = model.decision_function(sparse.csr_array((2, X.shape[1])))
        assert_allclose(empty, model.decision_function(np.zeros((2, X.shape[1]))))


class TestAttributes:
    @pytest.mark.parametrize("data", ["two_classes", "three_classes", "ten_classes"])
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
    def test_are_those_of_scikit_learn(self, data, container, request):
        X, y = request.getfixturevalue(data)
        ours, theirs = (m.fit(container(X), y) for m in both(gamma=0.5))
        for name in ("support_", "n_support_", "classes_", "class_weight_", "n_features_in_"):
            assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
        assert ours.shape_fit_ == theirs.shape_fit_
        assert ours.fit_status_ == theirs.fit_status_ == 0
        assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
        for name in ("support_vectors_", "dual_coef_"):
            mine, other = getattr(ours, name), getattr(theirs, name)
            assert sparse.issparse(mine) == sparse.issparse(other)
            if sparse.issparse(mine):
                mine, other = mine.toarray(), other.toarray()
            assert_allclose(mine, other, atol=1e-5, err_msg=name)

    @pytest.mark.parametrize("data", ["two_classes", "three_classes"])
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
    def test_coef_is_that_of_scikit_learn(self, data, container, request):
        X, y = request.getfixturevalue(data)
        ours, theirs = (m.fit(container(X), y) for m in both(kernel="linear"))
        mine, other = ours.coef_, theirs.coef_
        assert sparse.issparse(mine) == sparse.issparse(other)
        assert mine.shape == other.shape
        assert abs(mine - other).max() < 1e-6

    def test_coef_is_for_linear_kernels_only(self, three_classes):
        assert not hasattr(SVC().fit(*three_classes), "coef_")

    def test_dual_variables_lie_between_zero_and_their_cost(self, two_classes):
        X, y = two_classes
        weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
        model = SVC(C=0.7).fit(X, y, sample_weight=weights)
        sign = np.where(y[model.support_] == model.classes_[1], 1.0, -1.0)
        alpha = sign * model.dual_coef_[0]
        assert (alpha > 0).all()
        assert (alpha <= 0.7 * weights[model.support_]).all()
        assert abs(model.dual_coef_.sum()) < 1e-9

    def test_rows_of_zero_weight_keep_their_place_in_the_count(self, two_classes):
        X, y = two_classes
        weights = (np.arange(len(y)) % 2).astype(float)
        weighted = SVC(**TIGHT).fit(X, y, sample_weight=weights)
        half = SVC(**TIGHT).fit(X[1::2], y[1::2])
        assert_array_equal(weighted.support_, 2 * half.support_ + 1)
        assert weighted.shape_fit_ == X.shape


class TestGamma:
    def test_scale_is_the_inverse_of_features_times_variance(self, three_classes):
        X, y = three_classes
        X = 3.0 * X + 1.0
        for rows in (X, sparse.csr_array(X)):
            named = SVC(**TIGHT).fit(rows, y)
            explicit = SVC(**TIGHT, gamma=1 / (X.shape[1] * X.var())).fit(rows, y)
            assert_allclose(
                named.decision_function(rows), explicit.decision_function(rows), atol=1e-7
            )

    def test_scale_does_not_notice_equal_weights_however_far_the_origin(self, three_classes):
        X, y = three_classes
        for offset in (0.0, 1e8):
            plain = SVC(**TIGHT).fit(X + offset, y)
            weighted = SVC(**TIGHT).fit(X + offset, y, sample_weight=np.ones(len(y)))
            assert_allclose(
                weighted.decision_function(X + offset),
                plain.decision_function(X + offset),
                atol=1e-7,
            )

    @pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
    def test_scale_refuses_numbers_that_have_no_variance(self, three_classes, kernel):
        X, y = three_classes
        with pytest.raises(ValueError, match="gamma='scale'"):
            SVC(kernel=kernel).fit(1e200 * X, y)

    def test_auto_is_the_inverse_of_features(self, three_classes):
        X, y = three_classes
        named, explicit = (SVC(gamma=gamma).fit(X, y) for gamma in ("auto", 0.25))
        assert_array_equal(named.decision_function(X), explicit.decision_function(X))

    def test_zero_makes_all_rows_equal(self, two_classes):
        X, y = two_classes
        scores = SVC(gamma=0.0).fit(X, y).decision_function(X)
        assert np.ptp(scores) == 0.0

    def test_equal_rows_do_not_break_scale(self):
        model = SVC().fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
        assert_array_equal(model.predict(np.ones((1, 2))), [0])


class TestRobustness:
    def test_entries_stored_in_two_parts_are_one(self, two_classes):
        X, y = two_classes
        X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
        halves = (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr)
        parts = sparse.csr_array(halves, shape=X.shape)
        assert not parts.has_canonical_format
        expected = SVC().fit(X, y).decision_function(X)
        assert_array_equal(SVC().fit(parts, y).decision_function(parts), expected)
        assert parts.nnz == 2 * X.nnz

    def test_scores_do_not_depend_on_the_unit_of_the_data(self, three_classes):
        X, y = three_classes
        expected = SVC(**TIGHT).fit(X, y).decision_function(X)
        for unit in (1e-6, 1e6):
            scores = SVC(**TIGHT).fit(unit * X, y).decision_function(unit * X)
            assert_allclose(scores, expected, atol=1e-6)

    def test_linear_kernel_bears_large_and_small_units(self, two_classes):
        X, y = two_classes
        expected = SVC(**TIGHT, kernel="linear").fit(X, y).decision_function(X)
        for unit in (1e-3, 1e3):
            model = SVC(tol=1e-9, kernel="linear", C=1 / unit**2).fit(unit * X, y)
            assert_allclose(model.decision_function(unit * X), expected, atol=1e-5)

    def test_a_far_away_origin_does_not_matter(self, three_classes):
        X, y = three_classes
        expected = SVC(**TIGHT).fit(X, y).decision_function(X)
        scores = SVC(**TIGHT).fit(X + 1e4, y).decision_function(X + 1e4)
        assert_allclose(scores, expected, atol=1e-4)

    @pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, of the overflow
    def test_numbers_too_large_for_the_kernel_are_refused(self):
        X = np.finfo(float).max * np.random.default_rng(0).uniform(size=(10, 2))
        with pytest.raises(ValueError, match="finite"):
            SVC().fit(X, np.arange(10) % 2)

    def test_contradicting_duplicates_are_undecided(self):
        X = np.repeat([[0.0], [1.0]], 4, axis=0)
        model = SVC(kernel="linear").fit(X, [0, 0, 1, 1, 0, 0, 1, 1])
        assert_allclose(model.decision_function(X), 0.0, atol=1e-9)

    def test_duplicates_do_not_break_the_solver(self, three_classes):
        X, y = three_classes
        X, y = np.repeat(np.round(X), 3, axis=0), np.repeat(y, 3)
        for kernel in ("linear", "rbf"):
            ours, theirs = (m.fit(X, y) for m in both(kernel=kernel))
            expected = theirs.decision_function(X)
            assert_allclose(ours.decision_function(X), expected, atol=1e-6)

    def test_constant_and_empty_columns_do_not_matter_to_a_linear_machine(self, two_classes):
        X, y = two_classes
        expected = SVC(**TIGHT, kernel="linear").fit(X, y).decision_function(X)
        wider = np.column_stack([X, np.full(len(X), 5.0), np.zeros(len(X))])
        scores = SVC(**TIGHT, kernel="linear").fit(wider, y).decision_function(wider)
        assert_allclose(scores, expected, atol=1e-6)

    @pytest.mark.parametrize("parameters", [{"shrinking": False}, {"cache_size": 0.01}])
    def test_ways_of_solving_do_not_change_the_answer(self, parameters, ten_classes):
        X, y = ten_classes
        expected = SVC(**TIGHT).fit(X, y).decision_function(X)
        scores = SVC(**TIGHT, **parameters).fit(X, y).decision_function(X)
        assert_allclose(scores, expected, atol=1e-6)

    def test_two_rows_are_enough(self):
        model = SVC(kernel="linear", C=np.inf).fit([[0.0], [2.0]], ["low", "high"])
        assert_allclose(model.decision_function([[0.0], [1.0], [2.0]]), [1, 0, -1], atol=1e-9)

    def test_infinite_cost_separates(self):
        X, y = make_blobs(60, centers=2, random_state=0, cluster_std=0.6)
        hard = SVC(kernel="linear", C=np.inf, tol=1e-6).fit(X, y)
        margins = np.where(y == 1, 1, -1) * hard.decision_function(X)
        assert margins.min() == pytest.approx(1.0, abs=1e-4)
        large = SVC(kernel="linear", C=1e6, tol=1e-6).fit(X, y)
        assert_allclose(hard.coef_, large.coef_, rtol=1e-3)

    def test_infinite_cost_on_what_cannot_be_separated_is_refused(self):
        with pytest.raises(ValueError, match="separable"):
            SVC(kernel="linear", C=np.inf).fit([[0.0], [0.0], [1.0]], [0, 1, 1])

    def test_random_state_has_no_effect(self, three_classes):
        X, y = three_classes
        one, other = (SVC(random_state=seed).fit(X, y) for seed in (0, 1))
        assert_array_equal(one.dual_coef_, other.dual_coef_)


class TestCallableKernels:
    def test_may_take_what_is_not_numbers(self):
        words = ["aa", "a", "b", "bb", "ab", "abb"]
        counts = np.array([[word.count("a"), word.count("b")] for word in words], dtype=float)

        def shared_letters(left, right):
            assert isinstance(left[0], str)
            rows, columns = (
                np.array([[word.count("a"), word.count("b")] for word in side], dtype=float)
                for side in (left, right)
            )
            return rows @ columns.T

        y = [1, 1, 2, 2, 1, 2]
        on_words = SVC(**TIGHT, kernel=shared_letters).fit(words, y)
        on_counts = SVC(**TIGHT, kernel="linear").fit(counts, y)
        assert_allclose(
            on_words.decision_function(words), on_counts.decision_function(counts), atol=1e-8
        )

    def test_need_a_row_to_answer(self, three_classes):
        X, y = three_classes
        model = SVC(kernel=linear_kernel).fit(X, y)
        with pytest.raises(ValueError, match="at least one sample"):
            model.predict(X[:0])

    @pytest.mark.parametrize("value", [np.nan, np.inf, 1j])
    def test_that_return_no_real_numbers_are_refused(self, three_classes, value):
        X, y = three_classes
        with pytest.raises(ValueError, match=r"kernel must return (finite|real)"):
            SVC(kernel=lambda A, B: np.full((len(A), len(B)), value)).fit(X, y)

    def test_that_are_not_symmetric_are_refused(self, three_classes):
        X, y = three_classes
        with pytest.raises(ValueError, match="kernel's matrix must be symmetric"):
            SVC(kernel=lambda A, B: A @ B.T + A[:, :1]).fit(X, y)

    def test_of_wrong_shape_are_refused(self, three_classes):
        X, y = three_classes
        with pytest.raises(ValueError, match="kernel"):
            SVC(kernel=lambda A, B: A).fit(X, y)

    def test_may_be_sums_of_kernels(self, three_classes):
        X, y = three_classes

        def mixed(A, B):
            return linear_kernel(A, B) + 2.0 * rbf_kernel(A, B, gamma=1.0)

        ours, theirs = (m.fit(X, y) for m in both(kernel=mixed))
        assert_same_scores(ours, theirs, X)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_kernel_matrices_that_are_read_only_are_taken(multi_class, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    gram = X @ X.T
    model = SVC(kernel="precomputed", multi_class=multi_class)
    expected = model.fit(gram, y).decision_function(gram)
    gram.flags.writeable = False
    assert_array_equal(model.fit(gram, y).decision_function(gram), expected)


def test_a_refused_fit_leaves_the_kind_of_machines_as_it_was():
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X, y)
    expected = model.predict(X)
    model.set_params(multi_class="ovr")
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X, np.zeros(len(y)))
    assert_array_equal(model.predict(X), expected)


@pytest.mark.large
def test_machines_of_many_classes_compute_kernel_values_once(monkeypatch):
    rng, n = np.random.default_rng(0), 800
    X, y = rng.normal(size=(n, 8)), rng.integers(0, 13, n)
    X += 1.5 * rng.normal(size=(13, 8))[y]
    values, matrix = [0], KernelFunction.matrix

    def counted(self, A, B, *rest, **options):
        values[0] += A.shape[0] * B.shape[0]
        return matrix(self, A, B, *rest, **options)

    monkeypatch.setattr(KernelFunction, "matrix", counted)
    SVC(multi_class="ovr", gamma=0.05).fit(X, y)
    assert 0 < values[0] <= n * n


def test_weights_with_twice_the_digits_sum_the_vectors_of_each_pair_only(monkeypatch):
    generator = np.random.default_rng(0)
    y = np.arange(120) % 6
    X = generator.normal(size=(120, 3)) + y[:, np.newaxis]
    X[:, 0] += 1e4
    model = SVC(kernel="linear").fit(X, y)
    weights = model._expansion.weights
    assert weights.shape == (3, 15)
    vectors = model.support_vectors_.astype(np.longdouble)
    exact = pair_weights(model.dual_coef_.astype(np.longdouble), vectors, model._n_support)
    assert_allclose(weights.T, exact.astype(float), rtol=1e-13, atol=1e-13)
    # Every vector is in 5 of the 15 functions at most.
    monkeypatch.setattr(kernel_options, "exact_sum_work", 5 * vectors.size)
    assert pickle.loads(pickle.dumps(model))._expansion.weights is not None
    monkeypatch.setattr(kernel_options, "exact_sum_work", 3)
    assert pickle.loads(pickle.dumps(model))._expansion.weights is None
