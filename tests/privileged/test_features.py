"""Privileged features with extreme values: named, clipped, and no method stalls on them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

from widemargin import PrivilegedSVC, PrivilegedSVCCV, TwoViewSVC
from widemargin.privileged.features import PrivilegedFeatures, PrivilegedInput

METHODS = {
    "SVM2+": lambda **named: PrivilegedSVC(slack_ridge=0.0, **named),
    "SVM1+": lambda **named: PrivilegedSVC(loss="hinge", **named),
    "SVM-2K": lambda **named: TwoViewSVC(**named),
}


def descriptors(n, seed=0):
    """Fingerprints, and descriptors in all units of which one reaches 1e72."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 20)) < 0.3).astype(float)
    y = (X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(n) > 1.5).astype(int)
    units = np.logspace(-2, 5, 8)
    Z = np.abs(rng.standard_normal((n, 8)) + y[:, np.newaxis]) * units
    Z[:, 6] = 10.0 ** (72.0 * rng.random(n) ** 2)
    Z[0, 6] = 1e72
    names = [f"d{k}" for k in range(6)] + ["paths", "weight"]
    return X, pd.DataFrame(Z, columns=names), y


def learned(Z):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        features, validated = PrivilegedFeatures(), PrivilegedInput.validate(Z, "linear", None)
        return features, features.fit_transform(validated, None, np.arange(Z.shape[0]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("privileged_kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_feature_that_reaches_1e72_is_named_and_does_no_harm(
    method, kernel, privileged_kernel, C
):
    X, Z, y = descriptors(40)
    model = METHODS[method](kernel=kernel, privileged_kernel=privileged_kernel, C=C)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, privileged=Z)
    assert any("features 'paths'." in str(warning.message) for warning in caught)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.objective_).all()
    if C == 1.0:
        assert model.fit_status_ == 0
        assert model.dual_gap_[0] < 1e-3
    if method == "SVM-2K":
        assert np.isfinite(model.decision_function(X, privileged=Z)).all()
    else:
        assert np.isfinite(model.slack(Z)).all()


@pytest.mark.large
@pytest.mark.parametrize("method", ["SVM1+", "SVM-2K"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_more_rows_than_an_active_set_takes_are_solved_too(method, kernel):
    X, Z, y = descriptors(600)
    model = METHODS[method](kernel=kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y, privileged=Z)
    assert model.fit_status_ == 0
    assert model.dual_gap_[0] < 1e-3


def test_a_search_names_the_feature_once():
    X, Z, y = descriptors(40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivilegedSVCCV(Cs=[1.0], privileged_penalties=[1.0], cv=3).fit(X, y, privileged=Z)
    assert sum("features 'paths'." in str(warning.message) for warning in caught) == 1


ABSURD = {
    "one entry": [0.0] * 19 + [1e72],
    "one entry beside others": [0.0] * 10 + [1.0] * 9 + [1e72],
    "all entries": 1e200 * np.linspace(1.0, 2.0, 20),
    "both ends": [-1.7e308] * 5 + [0.0] * 10 + [1.7e308] * 5,
}


@pytest.mark.parametrize("kind", ABSURD)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_extreme_values_are_clipped(kind, container):
    Z = np.column_stack([np.linspace(-1.0, 1.0, 20), ABSURD[kind]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        columns, values = learned(container(Z))
    values = values.toarray() if sparse.issparse(values) else values
    assert list(columns.extreme) == [1]
    np.testing.assert_array_equal(values[:, 0], Z[:, 0])
    assert np.abs(values[:, 1]).max() <= 10.0
    assert values[-1, 1] == values[:, 1].max() > 0.0


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e6])
def test_columns_of_any_ordinary_unit_are_left_alone(unit):
    Z = unit * np.random.default_rng(0).standard_cauchy((50, 3))
    columns, values = learned(Z)
    assert not len(columns.extreme)
    np.testing.assert_array_equal(values, Z)


@pytest.mark.parametrize("value", [1e20, -1e72, 1.7e308])
def test_a_huge_constant_does_not_drown_the_other_columns(value):
    X, Z, y = descriptors(40)
    Z = Z.drop(columns="paths") / np.logspace(-2, 5, 8)[[0, 1, 2, 3, 4, 5, 7]]
    plain = PrivilegedSVC().fit(X, y, privileged=Z)
    with pytest.warns(UserWarning, match="features 'unit'"):
        model = PrivilegedSVC().fit(X, y, privileged=Z.assign(unit=value))
    np.testing.assert_allclose(model.slack_, plain.slack_, atol=1e-6)


def test_the_warning_points_to_the_call_of_fit():
    X, Z, y = descriptors(40)
    with pytest.warns(UserWarning, match="features 'paths'") as caught:
        PrivilegedSVC().fit(X, y, privileged=Z)
    assert [w.filename for w in caught if "paths" in str(w.message)] == [__file__]


def labels(container):
    """Rows with two categories, of which fog goes with labels that are put off."""
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((60, 2)), rng.standard_normal(60)
    y = (X[:, 0] + noise > 0).astype(int)
    off = y != (X[:, 0] > 0)
    values = {"weather": np.where(off, "fog", "sun"), "grade": np.where(noise > 0, "a", "b")}
    return X, container(values), y, np.column_stack(list(values.values())).astype(object)


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "objects": lambda values: np.column_stack(list(values.values())).astype(object),
}


@pytest.mark.parametrize("container", FRAMES)
@pytest.mark.parametrize("method", METHODS)
def test_a_transformer_makes_numbers_of_categories(container, method):
    X, Z, y, values = labels(FRAMES[container])
    numbers = OneHotEncoder(sparse_output=False).fit_transform(values)
    expected = METHODS[method]().fit(X, y, privileged=numbers)
    model = METHODS[method](privileged_transformer=OneHotEncoder(sparse_output=False))
    model.fit(X, y, privileged=Z)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    if method != "SVM-2K":
        np.testing.assert_array_equal(model.slack(Z), expected.slack(numbers))


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_a_transformer_finds_columns_by_their_names(container):
    X, Z, y, values = labels(FRAMES[container])
    by_name = make_column_transformer((OneHotEncoder(sparse_output=False), ["weather"]))
    model = PrivilegedSVC(privileged_transformer=by_name).fit(X, y, privileged=Z)
    numbers = OneHotEncoder(sparse_output=False).fit_transform(values[:, :1])
    expected = PrivilegedSVC().fit(X, y, privileged=numbers)
    np.testing.assert_array_equal(model.slack(Z), expected.slack(numbers))


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
@pytest.mark.filterwarnings("ignore:privileged has extreme")
def test_names_are_kept_where_a_feature_is_clipped(container):
    X, Z, y = descriptors(40)
    by_name = make_column_transformer((StandardScaler(), ["d1", "paths"]))
    frame = container({name: Z[name].to_numpy() for name in Z})
    model = PrivilegedSVC(privileged_transformer=by_name).fit(X, y, privileged=frame)
    expected = PrivilegedSVC(privileged_transformer=StandardScaler())
    expected.fit(X, y, privileged=Z[["d1", "paths"]])
    slack = expected.slack(Z[["d1", "paths"]])
    np.testing.assert_allclose(model.slack(frame), slack, rtol=1e-12)


def test_a_transformer_makes_numbers_of_texts_and_fills_gaps():
    X, _, y, values = labels(FRAMES["objects"])
    texts = [f"seen in {weather}, grade {grade}" for weather, grade in values]
    model = PrivilegedSVC(privileged_transformer=TfidfVectorizer()).fit(X, y, privileged=texts)
    assert model.slack(["seen in fog"])[0] > model.slack(["seen in sun"])[0]
    gaps = np.where(values[:, :1] == "fog", 1.0, np.nan)
    fill = SimpleImputer(strategy="constant", fill_value=0.0)
    filled = PrivilegedSVC(privileged_transformer=fill).fit(X, y, privileged=gaps)
    expected = PrivilegedSVC().fit(X, y, privileged=np.nan_to_num(gaps))
    np.testing.assert_array_equal(filled.slack_, expected.slack_)


@pytest.mark.parametrize("container", FRAMES)
def test_folds_learn_categories_from_their_own_rows(container):
    X, Z, y, _ = labels(FRAMES[container])
    encoder = OneHotEncoder(handle_unknown="ignore")
    machine = PrivilegedSVC(privileged_transformer=encoder)
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_validate(machine, X, y, params={"privileged": Z}, cv=3)["test_score"]
    search = PrivilegedSVCCV(
        Cs=[1.0],
        privileged_penalties=[1.0],
        slack_ridges=[1.0],
        cv=3,
        privileged_transformer=encoder,
    ).fit(X, y, privileged=Z)
    np.testing.assert_array_equal(search.scores_[0, 0, 0], scores)


def test_what_is_no_number_needs_a_transformer():
    X, Z, y, _ = labels(pd.DataFrame)
    with pytest.raises(ValueError, match=r"must contain numbers.*privileged_transformer"):
        PrivilegedSVC().fit(X, y, privileged=Z)
    with pytest.raises(ValueError, match="privileged contains NaN"):
        PrivilegedSVC(privileged_transformer=StandardScaler()).fit(
            X, y, privileged=np.where(X > 1.0, np.nan, X)
        )


def test_the_warning_points_to_the_transformer_which_takes_the_values_as_they_are():
    X, Z, y = descriptors(40)
    with pytest.warns(UserWarning, match=r"'paths'.*privileged_transformer"):
        PrivilegedSVC().fit(X, y, privileged=Z)
    ranks = QuantileTransformer(n_quantiles=40)
    model = PrivilegedSVC(privileged_transformer=ranks).fit(X, y, privileged=Z)
    expected = PrivilegedSVC().fit(X, y, privileged=ranks.fit_transform(Z))
    np.testing.assert_array_equal(model.slack_, expected.slack_)
    identity = FunctionTransformer()
    with pytest.warns(UserWarning, match="after privileged_transformer has extreme values"):
        PrivilegedSVC(privileged_transformer=identity).fit(X, y, privileged=Z)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_weights_of_privileged_features_have_names(container):
    X, Z, y, _ = labels(FRAMES[container])
    model = PrivilegedSVC(privileged_transformer=OneHotEncoder()).fit(X, y, privileged=Z)
    names = ["weather_fog", "weather_sun", "grade_a", "grade_b"]
    assert model.privileged_feature_names_.tolist() == names
    weights = dict(zip(names, model.privileged_coef_[0], strict=True))
    assert weights["weather_fog"] > weights["weather_sun"]
    numbers = FRAMES[container]({"r": X[:, 0], "s": X[:, 1]})
    search = PrivilegedSVCCV(Cs=[1.0], privileged_penalties=[1.0], slack_ridges=[0.0], cv=3)
    search.fit(X, y, privileged=numbers)
    assert search.privileged_feature_names_.tolist() == ["r", "s"]
    for unnamed in (X, None):
        with pytest.raises(AttributeError, match="privileged_feature_names_ is only available"):
            _ = PrivilegedSVC(slack_ridge=1.0).fit(X, y, unnamed).privileged_feature_names_


def test_constant_columns_are_left_alone():
    Z = np.ones((10, 2)) * [3.0, 0.0]
    columns, values = learned(Z)
    assert not len(columns.extreme)
    np.testing.assert_array_equal(values, Z)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("kind", [PrivilegedSVC, TwoViewSVC])
def test_privileged_features_may_be_named_columns_of_one_frame(frame, kind):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((60, 2)), rng.standard_normal((60, 2))
    y = (X[:, 0] + Z[:, 1] > 0).astype(int)
    both = frame({"r": Z[:, 0], "a": X[:, 0], "b": X[:, 1], "s": Z[:, 1]})
    named = kind(privileged_columns=["r", "s"]).fit(both, y)
    apart = kind().fit(X, y, privileged=Z)
    assert named.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(named.predict(both[["a", "b"]]), apart.predict(X))
    np.testing.assert_array_equal(named.predict(both), apart.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(both[["r", "a"]])
    np.testing.assert_allclose(named.dual_coef_, apart.dual_coef_)
    for bad in ([], ["r", "t"], ["r", "a", "b", "s"], ["r", "r"]):
        with pytest.raises(ValueError, match="privileged_columns must name some of the columns"):
            kind(privileged_columns=bad).fit(both, y)
    with pytest.raises(ValueError, match="X must be a DataFrame with the columns"):
        kind(privileged_columns=["r"]).fit(X, y)
    with pytest.raises(ValueError, match="got both"):
        kind(privileged_columns=["r"]).fit(both, y, privileged=Z)


def test_a_search_works_on_a_frame_with_privileged_columns():
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((60, 2)), rng.standard_normal((60, 1))
    y = (X[:, 0] + Z[:, 0] > 0).astype(int)
    both = pd.DataFrame({"a": X[:, 0], "z": Z[:, 0], "b": X[:, 1]})
    search = GridSearchCV(PrivilegedSVC(privileged_columns=["z"]), {"C": [0.1, 1.0]}, cv=3)
    apart = GridSearchCV(PrivilegedSVC(), {"C": [0.1, 1.0]}, cv=3)
    expected = apart.fit(X, y, privileged=Z).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(search.fit(both, y).cv_results_["mean_test_score"], expected)
    # A refit without names forgets them.
    model = search.best_estimator_.set_params(privileged_columns=None)
    model.fit(both, y, privileged=Z)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(both[["a", "b"]])


def test_frames_with_different_indices_are_refused():
    rng = np.random.default_rng(0)
    X, Z = pd.DataFrame(rng.standard_normal((40, 2))), pd.DataFrame(rng.standard_normal((40, 2)))
    y = (X[0] + Z[0] > 0).astype(int)
    with pytest.raises(ValueError, match="X and privileged must have the same index"):
        PrivilegedSVC().fit(X, y, privileged=Z.iloc[::-1])
    X.columns, Z.columns = ["a", "b"], ["r", "s"]
    PrivilegedSVC(slack_ridge=1.0).fit(X, y, privileged=Z)


def three_features(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, 4)), rng.standard_normal((n, 3))
    return X, Z, (X[:, 0] + Z[:, 0] > 0).astype(int)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_slack_of_features_in_another_order_is_refused(frame):
    X, Z, y = three_features()
    Z = frame({name: Z[:, k] for k, name in enumerate("uvw")})
    model = PrivilegedSVC().fit(X, y, privileged=Z)
    with pytest.raises(ValueError, match=r"privileged must have the features of fit in the same"):
        model.slack(Z[["w", "v", "u"]])
    np.testing.assert_allclose(model.slack(Z.to_numpy()), model.slack(Z))


def test_frames_with_different_indices_are_refused_in_prediction():
    X, Z, y = three_features()
    X, Z = pd.DataFrame(X), pd.DataFrame(Z)
    model = TwoViewSVC().fit(X, y, privileged=Z)
    with pytest.raises(ValueError, match="X and privileged must have the same index"):
        model.predict(X, Z[::-1])


@pytest.mark.parametrize("container", [sparse.coo_array, sparse.coo_matrix, sparse.csc_array])
@pytest.mark.parametrize("transformer", [None, StandardScaler(with_mean=False)])
def test_a_search_selects_samples_of_any_sparse_matrix(container, transformer):
    X, Z, y = three_features()
    models = [
        PrivilegedSVCCV(Cs=[1.0], cv=3, slack_ridges=[0.0, 1.0], privileged_transformer=transformer)
        for _ in range(2)
    ]
    dense, other = (
        model.fit(X, y, privileged=given)
        for model, given in zip(models, (sparse.csr_array(Z), container(Z)), strict=True)
    )
    np.testing.assert_array_equal(dense.scores_, other.scores_)


@pytest.mark.parametrize("container", [np.asarray, pd.Series])
def test_a_single_feature_is_a_column(container):
    X, Z, y = three_features()
    with pytest.raises(ValueError, match=r"privileged must be 2-dimensional, got shape \(60,\)"):
        PrivilegedSVC().fit(X, y, privileged=container(Z[:, 0]))
