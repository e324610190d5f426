"""The displays of ensembles."""

import numpy as np
import pandas
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_multilabel_classification
from tests.structured.cases import MODELS, samples

from widemargin.plotting import (
    BestMemberDisplay,
    LossHistogramDisplay,
    PickBestDisplay,
    ProposalsDisplay,
)
from widemargin.structured import GridCRF, MultiLabelClf, PerturbedSSVM

LOSSES = np.array([[1.0, 0.0, 4.0], [2.0, 3.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 2.0]])


@pytest.fixture(scope="module")
def fitted():
    X, Y = samples(MODELS["grid"][1], 4)
    return PerturbedSSVM(GridCRF(), 3, spread=2.0, C=0.1, tol=0.1).fit(X, Y), X, Y


def test_the_best_the_second_and_the_third_loss_fall_with_the_number_of_proposals():
    display = PickBestDisplay.from_losses(LOSSES)
    best, second, third = display.lines_
    assert_array_equal(best.get_xdata(), [1, 2, 3, 4])
    assert_allclose(best.get_ydata(), [5 / 3, 1 / 3, 0, 0])
    assert_allclose(second.get_ydata(), [9 / 3, 4 / 3, 3 / 3])
    assert_array_equal(third.get_xdata(), [3, 4])
    assert_allclose(third.get_ydata(), [9 / 3, 5 / 3])


def test_one_proposal_has_no_second():
    assert len(PickBestDisplay.from_losses(LOSSES[:1]).lines_) == 1


def test_members_that_are_equally_good_share_a_sample():
    display = BestMemberDisplay.from_losses(LOSSES)
    assert_allclose(display.shares_, [1 / 3, 1 / 3, 1 / 6, 1 / 6])
    assert_allclose([bar.get_height() for bar in display.ax_.patches], display.shares_)


def test_histograms_count_all_proposals_and_the_best():
    display = LossHistogramDisplay.from_losses(LOSSES).plot(bins=4)
    everything, best = display.counts_
    assert_allclose(everything, np.array([4, 2, 4, 2]) / 12)
    assert_allclose(best, [1, 0, 0, 0])


@pytest.mark.parametrize("kind", [PickBestDisplay, BestMemberDisplay, LossHistogramDisplay])
def test_an_ensemble_is_measured_in_shares_of_the_largest_loss(fitted, kind):
    ensemble, X, Y = fitted
    figure, ax = pyplot.subplots()
    display = kind.from_estimator(ensemble, X, Y, ax=ax)
    assert display.figure_ is figure
    assert_allclose(display.losses, ensemble.member_losses(X, Y) / [y.size for y in Y])


def test_rows_of_a_frame_are_outputs():
    X, Y = make_multilabel_classification(20, 5, n_classes=3, random_state=0)
    ensemble = PerturbedSSVM(MultiLabelClf(), 3, spread=2.0, C=0.1, tol=0.1).fit(X, Y)
    display = PickBestDisplay.from_estimator(ensemble, X, pandas.DataFrame(Y))
    assert_allclose(display.losses, ensemble.member_losses(X, Y) / 3)


def test_losses_must_be_a_table():
    with pytest.raises(ValueError, match=r"losses must have shape \(n_members, n_samples\)"):
        PickBestDisplay.from_losses([1.0, 2.0])


def test_the_best_proposal_is_framed(fitted):
    ensemble, X, Y = fitted
    display = ProposalsDisplay.from_estimator(ensemble, X, Y)
    assert display.axes_.shape == (4, 5)
    errors = ensemble.member_losses(X, Y).T
    assert_array_equal(display.best_, errors.argmin(axis=1))
    for row, best, truth in zip(display.axes_, display.best_, Y, strict=True):
        widths = [ax.spines["left"].get_linewidth() for ax in row]
        assert int(np.argmax(widths)) == best + 2
        assert row[1].get_title() == "truth"
        assert_array_equal(row[1].images[0].get_array(), truth)


def test_the_framed_proposal_has_the_least_loss_of_the_model():
    X = [np.zeros((1, 4, 2))]
    Y = [np.array([[0, 0, 0, 1]])]
    model = GridCRF(n_states=2, n_features=2, class_weight=[1.0, 9.0])
    ensemble = PerturbedSSVM(model, 2, tol=0.1).fit(X, Y)
    proposals = [[np.array([[0, 0, 0, 0]]), np.array([[0, 1, 1, 1]])]]
    ensemble.predict_all = lambda X: proposals
    display = ProposalsDisplay.from_estimator(ensemble, X, Y)
    assert display.best_ == [1]
    assert [ax.get_title() for ax in display.axes_[0, 2:]] == ["75.0%", "16.7%"]
    assert ProposalsDisplay.from_proposals(Y, Y, proposals).best_ == [0]
    with pytest.raises(ValueError, match=r"losses must have shape \(1, 2\), got \(2,\)"):
        ProposalsDisplay.from_proposals(Y, Y, proposals, losses=[0.1, 0.2])


def test_proposals_must_fit_together():
    truth = np.eye(2, dtype=int)
    with pytest.raises(ValueError, match="equal lengths, got 1, 2 and 1"):
        ProposalsDisplay.from_proposals([truth], [truth, truth], [[truth]])
