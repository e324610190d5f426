"""Nystroem features are not multiplied out in prediction, which does not change it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import CrammerSingerSVC, GatedStudents
from widemargin.gated.landmarks import LandmarkFeatures, feature_array, landmark_features

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = np.argmax(X[:, :3] ** 2 + 0.3 * RNG.normal(size=(120, 3)), axis=1)


def cosine(a, b, power=1):
    return (a @ b / np.sqrt(1.0 + (a @ a) * (b @ b))) ** power


@pytest.mark.parametrize(
    "nystroem",
    [
        Nystroem(gamma=0.3, n_components=20, random_state=0),
        Nystroem(n_components=20, random_state=0),
        Nystroem(kernel="poly", degree=2, coef0=1.0, n_components=10, random_state=0),
        Nystroem(kernel="linear", n_components=4, random_state=0),
        Nystroem(kernel=cosine, kernel_params={"power": 2}, n_components=10, random_state=0),
    ],
)
@pytest.mark.parametrize("scaled", [False, True])
def test_landmarks_multiplied_out_are_the_features(nystroem, scaled):
    features = make_pipeline(StandardScaler(), nystroem) if scaled else nystroem
    features = clone(features).fit(X)
    found = landmark_features(features, X[:7])
    assert isinstance(found, LandmarkFeatures)
    assert_allclose(feature_array(found), features.transform(X[:7]), atol=1e-9)


def test_other_maps_have_none():
    assert landmark_features(StandardScaler().fit(X), X) is None
    gram = X[:5] @ X[:5].T
    given = Nystroem(kernel="precomputed", n_components=5).fit(gram)
    assert landmark_features(given, gram) is None


@pytest.mark.parametrize("merged", [True, False])
def test_students_predict_from_kernel_values_alone(merged, monkeypatch):
    teacher = make_pipeline(
        Nystroem(gamma=0.3, n_components=20, random_state=0), CrammerSingerSVC()
    ).fit(X, Y)
    features = "teacher" if merged else Nystroem(gamma=0.1, n_components=15, random_state=1)
    students = GatedStudents(teacher, features=features, C=0.1).fit(X, Y)
    assert students.merged_ is merged
    phi = students._features.transform(X)
    expected = teacher.decision_function(X) - phi @ students.theta_.T - students.theta_intercept_
    if merged:
        # The matrix is multiplied with the coefficients only.
        monkeypatch.setattr(Nystroem, "transform", None)
    assert_allclose(students.decision_function(X), expected, atol=1e-8)
    one = students.students_[1]
    assert_allclose(one.decision_function(X), expected[:, 1], atol=1e-8)
