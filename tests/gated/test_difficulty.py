"""Degrees of difficulty are those of the paper's table of cases."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.oracles import gated as oracle

from widemargin import difficulty_degrees

# Few values, so that zeros and ties are common.
score_matrices = arrays(
    float,
    st.tuples(st.integers(1, 12), st.integers(2, 4)),
    elements=st.sampled_from([-2, -1, 0, 1, 3]),
)


@given(scores=score_matrices, decay=st.sampled_from([0.1, 0.3, 0.9]), seed=st.integers(0, 99))
def test_degrees_follow_the_table_of_cases(scores, decay, seed):
    classes = list("abcd")[: scores.shape[1]]
    y = np.random.default_rng(seed).choice(classes, len(scores))
    for target in classes:
        expected = oracle.degrees(scores, y, target, decay, classes)
        found = difficulty_degrees(scores, y, target, decay, classes)
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_degrees_lie_between_decay_and_one_and_rise_as_the_teacher_errs():
    lead = np.linspace(-3.0, 3.0, 61)
    scores = np.column_stack([np.ones(61), 1.0 - lead])
    degrees = difficulty_degrees(scores, np.zeros(61), 0, 0.2, classes=[0, 1])
    assert degrees[0] == 1.0
    assert degrees[-1] == pytest.approx(0.2)
    assert (np.diff(degrees) <= 0).all()
    assert degrees[30] == pytest.approx(0.6)


def test_classes_are_the_labels_by_default():
    scores = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = difficulty_degrees(scores, ["x", "y"], "y")
    np.testing.assert_array_equal(
        found, difficulty_degrees(scores, ["x", "y"], "y", 0.3, ["x", "y"])
    )


def test_booleans_are_as_good_as_labels():
    scores, y = np.array([[1.0, 0.5], [0.2, 1.0], [2.0, 1.5]]), np.array(["a", "b", "b"])
    for target in ("a", "b"):
        found = difficulty_degrees(scores, y == target, target, classes=["a", "b"])
        np.testing.assert_array_equal(found, difficulty_degrees(scores, y, target))
    with pytest.raises(ValueError, match=r"target 'a' is unknown .* \[False, True\]"):
        difficulty_degrees(scores, y == "a", "a")
    with pytest.raises(ValueError, match="ambiguous with classes 0 and 1 and target 0"):
        difficulty_degrees(scores, y == "a", 0, classes=[0, 1])


def test_labels_that_are_none_of_the_classes_are_refused():
    with pytest.raises(
        ValueError, match=r"unknown to the teacher: \['c'\]. Its classes are \['a', 'b'\]"
    ):
        difficulty_degrees([[1.0, 0.0], [0.0, 1.0]], ["a", "c"], "a", classes=["a", "b"])


def test_columns_of_a_frame_are_found_by_their_names():
    scores, y = np.array([[1.0, 0.5], [0.2, 1.0]]), ["a", "b"]
    found = difficulty_degrees(pd.DataFrame(scores[:, ::-1], columns=["b", "a"]), y, "a")
    np.testing.assert_array_equal(found, difficulty_degrees(scores, y, "a"))
    with pytest.raises(ValueError, match="columns of scores must be named by the classes"):
        difficulty_degrees(pd.DataFrame(scores, columns=["b", "c"]), y, "a")


@pytest.mark.parametrize("decay", [0.0, 1.0, -0.1, np.nan])
def test_a_decay_outside_its_range_is_refused(decay):
    with pytest.raises(ValueError, match=r"decay must be in \(0, 1\)"):
        difficulty_degrees([[1.0, 0.0]], [0], 0, decay, [0, 1])


def test_bad_scores_are_refused():
    with pytest.raises(ValueError, match="target 7 is unknown"):
        difficulty_degrees([[1.0, 0.0]], [0], 7, 0.3, [0, 1])
    with pytest.raises(ValueError, match="2 columns but there are 3 classes"):
        difficulty_degrees([[1.0, 0.0]], [0], 0, 0.3, [0, 1, 2])
    with pytest.raises(ValueError, match="minimum of 2"):
        difficulty_degrees([[1.0]], [0], 0, 0.3, [0])
    with pytest.raises(ValueError, match="scores contains NaN"):
        difficulty_degrees([[1.0, np.nan]], [0], 0, 0.3, [0, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        difficulty_degrees([[1.0, 0.0]], [0, 1], 0, 0.3, [0, 1])
