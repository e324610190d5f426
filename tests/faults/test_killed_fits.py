"""Fits that are killed at any instant resume from their checkpoint to the same bits."""

import os
import signal
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from tests.labeltree.cases import documents
from tests.suites.callbacks import Recorder

from widemargin import (
    SVC,
    SVCCV,
    CodeMatrixClassifier,
    CrammerSingerSVC,
    GatedStudents,
    GatedSVC,
    LabelTreeClassifier,
    LinearSVC,
    LinearSVCCV,
    PreferenceSVC,
    PrivilegedSVC,
    PrivilegedSVCCV,
    TransductiveSVC,
    TwoViewSVC,
)
from widemargin._base import checkpoint
from widemargin._base.checkpoint import CheckpointError
from widemargin._base.options import (
    checkpoint_options,
    coordinate_descent_options,
    crammer_singer_options,
    smo_options,
)
from widemargin.structured import (
    ChainCRF,
    CoulombSSVM,
    DiverseMultipleChoiceSSVM,
    FrankWolfeSSVM,
    LatentGraphCRF,
    LatentSSVM,
    MultipleChoiceSSVM,
    NSlackSSVM,
    OneSlackSSVM,
    PerturbedSSVM,
    StructuredPerceptron,
    SubgradientSSVM,
)

# Instants at which every fit is killed by a signal: `WIDEMARGIN_KILLS=5 pytest -m slow ...`.
KILLS = int(os.environ.get("WIDEMARGIN_KILLS", "100"))

# Fitted attributes that must have the same bits.
COMPARED = (
    "coef_", "dual_coef_", "intercept_", "objective_", "dual_gap_", "n_iter_", "scores_", "W",
    "threshold_", "transduction_", "n_solves_", "w", "theta_", "C_", "gate_strength_",
)  # fmt: skip


def samples(n_samples=250, n_classes=3):
    return make_classification(
        n_samples=n_samples, n_classes=n_classes, n_features=6, n_informative=4, flip_y=0.2,
        random_state=0,
    )  # fmt: skip


def with_privileged(n_samples=100):
    X, y = samples(n_samples, 2)
    return X, y, np.abs(X[:, :2])


def partly_labeled():
    X, y = samples(200, 2)
    y[60:] = -1
    return X, y


def students(**parameters):
    teacher = CrammerSingerSVC(kernel="rbf", C=10.0)
    return GatedStudents(teacher, **parameters), samples(120)


def chains():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 4)) for _ in range(30)]
    return X, [rng.integers(0, 3, 5) for _ in X]


def graphs():
    rng = np.random.default_rng(0)
    edges = np.array([[0, 1], [1, 2]])
    X = [(rng.normal(size=(3, 4)), edges) for _ in range(20)]
    return X, [rng.integers(0, 2, 3) for _ in X]


ENSEMBLE = {"n_estimators": 3, "tol": 0.05, "max_iter": 30}

FITS = {
    "SVC": lambda: (SVC(C=100.0, tol=1e-6), samples()),
    "SVC gap_tol": lambda: (SVC(C=10.0, gap_tol=1e-6), samples()),
    "LinearSVC": lambda: (LinearSVC(C=10.0), samples()),
    "LinearSVC dual": lambda: (LinearSVC(C=10.0, loss="hinge", max_iter=100), samples()),
    "LinearSVC joint": lambda: (LinearSVC(multi_class="crammer_singer"), samples()),
    "CrammerSingerSVC": lambda: (CrammerSingerSVC(kernel="rbf", C=10.0), samples()),
    "SVCCV": lambda: (SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], cv=3), samples(150)),
    "LinearSVCCV": lambda: (LinearSVCCV(Cs=[0.1, 1.0], loss="hinge", cv=3), samples(150)),
    "PrivilegedSVC": lambda: (PrivilegedSVC(), with_privileged()),
    "PrivilegedSVC hinge": lambda: (
        PrivilegedSVC(loss="hinge", privileged_kernel="rbf"), with_privileged(),
    ),
    "TwoViewSVC": lambda: (TwoViewSVC(privileged_kernel="rbf"), with_privileged()),
    "PrivilegedSVCCV": lambda: (
        PrivilegedSVCCV(Cs=[0.1, 1.0], privileged_penalties=[0.1, 1.0], cv=2), with_privileged(),
    ),
    "GatedSVC": lambda: (
        GatedSVC(1, CrammerSingerSVC(), kernel="rbf", C=100.0, tol=1e-9), samples(),
    ),
    "GatedStudents": lambda: students(C=10.0, tol=1e-9),
    "GatedStudents distilled": lambda: students(gate="distilled", features=20),
    "PreferenceSVC": lambda: (PreferenceSVC(precision=0.8, random_state=0), partly_labeled()),
    "FrankWolfeSSVM": lambda: (FrankWolfeSSVM(ChainCRF(), max_iter=20), chains()),
    "OneSlackSSVM": lambda: (OneSlackSSVM(ChainCRF(), max_iter=30), chains()),
    "NSlackSSVM": lambda: (NSlackSSVM(ChainCRF(), max_iter=10), chains()),
    "StructuredPerceptron": lambda: (StructuredPerceptron(ChainCRF(), max_iter=20), chains()),
    "LatentSSVM": lambda: (
        LatentSSVM(FrankWolfeSSVM(LatentGraphCRF(n_states_per_label=2), max_iter=20)), graphs(),
    ),
    "CoulombSSVM": lambda: (CoulombSSVM(ChainCRF(), n_steps=30, **ENSEMBLE), chains()),
    "CoulombSSVM anchored": lambda: (
        CoulombSSVM(ChainCRF(), solver="anchored", assignment="sampled", n_steps=4, **ENSEMBLE),
        chains(),
    ),
    "MultipleChoiceSSVM": lambda: (MultipleChoiceSSVM(ChainCRF(), **ENSEMBLE), chains()),
    "DiverseMultipleChoiceSSVM": lambda: (
        DiverseMultipleChoiceSSVM(ChainCRF(), n_rounds=4, **ENSEMBLE), chains(),
    ),
    "PerturbedSSVM": lambda: (PerturbedSSVM(ChainCRF(), **ENSEMBLE), chains()),
    "TransductiveSVC": lambda: (TransductiveSVC(C=10.0), partly_labeled()),
    "CodeMatrixClassifier": lambda: (CodeMatrixClassifier(SVC(tol=1e-6), code="ovo"), samples()),
    "CodeMatrixClassifier linear": lambda: (
        CodeMatrixClassifier(LinearSVC(loss="hinge"), code="ovo"), samples(),
    ),
    "SubgradientSSVM": lambda: (SubgradientSSVM(ChainCRF(), max_iter=50), chains()),
}  # fmt: skip

# Fits that append to a journal are killed by signals only: it is not replaced as a whole.
SIGNALED = {
    **FITS,
    "LabelTreeClassifier": lambda: (
        LabelTreeClassifier(n_trees=2, branching=3, max_leaf_size=5), documents(),
    ),
}  # fmt: skip

LONG = {"LinearSVC joint", "LinearSVCCV", "SVCCV", "TwoViewSVC"}
LONG |= {"PrivilegedSVC hinge", "PrivilegedSVCCV", "CoulombSSVM anchored", "PerturbedSSVM"}
LONG |= {"DiverseMultipleChoiceSSVM", "CodeMatrixClassifier linear", "NSlackSSVM"}


class Killed(BaseException):
    """Ends a fit where a signal would end its process."""


@pytest.fixture(autouse=True)
def short_slices(monkeypatch):
    """Save a checkpoint after every slice, and make slices short."""
    monkeypatch.setattr(checkpoint_options, "seconds_between_checkpoints", -1.0)
    monkeypatch.setattr(checkpoint_options, "pause_per_write", 0.0)
    for options in (coordinate_descent_options, crammer_singer_options):
        monkeypatch.setattr(options, "slice_work", 20_000)


@pytest.fixture(params=["dense", pytest.param("working sets", marks=pytest.mark.slow)])
def solver_path(request, monkeypatch):
    if request.param == "working sets":
        monkeypatch.setattr(smo_options, "dense_size", 50)
        monkeypatch.setattr(smo_options, "working_set_size", 30)


def fit(name, path=None, **parameters):
    estimator, arguments = SIGNALED[name]()
    if isinstance(estimator, CodeMatrixClassifier):
        parameters["estimator__checkpoint"] = path
    else:
        parameters["checkpoint"] = path
    estimator.set_params(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        return estimator.fit(*arguments)


def assert_same_bits(one, other):
    if isinstance(one, CodeMatrixClassifier):
        for own, others in zip(one.estimators_, other.estimators_, strict=True):
            assert_same_bits(own, others)
        return
    if isinstance(one, LabelTreeClassifier):
        for own, others in zip(one.weights_, other.weights_, strict=True):
            for first, second in zip(own.arrays(), others.arrays(), strict=True):
                assert_array_equal(first, second)
        return
    names = [name for name in COMPARED if hasattr(one, name)]
    assert len(names) >= 3
    for name in names:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def count_files(monkeypatch, kill_after=np.inf):
    """Count the checkpoints that are written; kill the fit in place of a further one."""
    save, written = checkpoint.save_checkpoint, []

    def save_or_kill(*arguments):
        if len(written) >= kill_after:
            raise Killed
        save(*arguments)
        written.append(1)

    monkeypatch.setattr(checkpoint, "save_checkpoint", save_or_kill)
    return written


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=pytest.mark.slow) if k in LONG else k for k in FITS]
)
def test_a_killed_fit_resumes_to_the_bits_of_an_uninterrupted_one(
    name, solver_path, tmp_path, monkeypatch
):
    plain = fit(name)
    with monkeypatch.context() as patch:
        written = count_files(patch)
        assert_same_bits(fit(name, tmp_path / "whole"), plain)
    assert len(written) >= 1
    for kill_after in {1, len(written) // 2, len(written) - 1} - {0}:
        path = tmp_path / str(kill_after)
        with monkeypatch.context() as patch:
            count_files(patch, kill_after)
            with pytest.raises(Killed):
                fit(name, path)
        assert_same_bits(fit(name, path), plain)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", SIGNALED)
def test_fits_killed_by_a_signal_at_random_instants(name, tmp_path):
    plain = fit(name, tmp_path / "first")
    started = time.perf_counter()
    fit(name, tmp_path / "second")
    duration, rng = time.perf_counter() - started, np.random.default_rng(0)
    killed = 0
    for trial in range(KILLS):
        path = tmp_path / str(trial)
        child = os.fork()
        if child == 0:
            fit(name, path)
            os._exit(0)
        time.sleep(rng.uniform(0.0, duration))
        os.kill(child, signal.SIGKILL)
        killed += os.waitpid(child, 0)[1] == signal.SIGKILL
        assert_same_bits(fit(name, path), plain)
        for file in tmp_path.glob(f"{trial}*"):
            file.unlink()
    assert killed >= KILLS // 2
    left = {file.name.split(".")[0] for file in tmp_path.iterdir()}
    assert left == {"first", "second"}


def test_a_finished_fit_is_loaded_and_not_solved_again(tmp_path, monkeypatch):
    first = fit("LinearSVC dual", tmp_path / "state")
    monkeypatch.setattr("widemargin.svm.linear_svc.LinearTraining.solve", None)
    assert_same_bits(fit("LinearSVC dual", tmp_path / "state"), first)


def test_the_number_of_jobs_may_change(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        count_files(patch, 3)
        with pytest.raises(Killed):
            fit("LinearSVC dual", tmp_path / "state", n_jobs=2)
    assert_same_bits(fit("LinearSVC dual", tmp_path / "state", n_jobs=1), fit("LinearSVC dual"))


@pytest.mark.parametrize("change", [{"C": 2.0}, {"tol": 1e-2}, {"class_weight": "balanced"}])
def test_files_of_other_parameters_are_refused(change, tmp_path):
    fit("SVC", tmp_path / "state")
    with pytest.raises(CheckpointError, match="written for other data"):
        fit("SVC", tmp_path / "state", **change)


def test_files_of_other_data_folds_and_estimators_are_refused(tmp_path):
    X, y = samples()
    SVC(checkpoint=tmp_path / "state").fit(X, y)
    with pytest.raises(CheckpointError, match="written for other data"):
        SVC(checkpoint=tmp_path / "state").fit(X, y, np.full(len(y), 2.0))
    with pytest.raises(CheckpointError, match="is of kind 'SVC'"):
        LinearSVC(checkpoint=tmp_path / "state").fit(X, y)
    fit("SVCCV", tmp_path / "search", cv=StratifiedKFold(3, shuffle=True, random_state=0))
    with pytest.raises(CheckpointError, match="written for other data"):
        fit("SVCCV", tmp_path / "search", cv=StratifiedKFold(3, shuffle=True, random_state=1))


def test_files_of_another_version_are_refused(tmp_path, monkeypatch):
    fit("SVC", tmp_path / "state")
    monkeypatch.setattr(checkpoint, "__version__", "0.0")
    with pytest.raises(CheckpointError, match="by another version"):
        fit("SVC", tmp_path / "state")


def test_parameters_that_cannot_be_compared_are_refused(tmp_path):
    X, y = samples(60, 2)
    with pytest.raises(CheckpointError, match="can be pickled"):
        SVC(kernel=lambda A, B: A @ B.T, checkpoint=tmp_path / "state").fit(X, y)


def test_a_warm_start_is_refused(tmp_path):
    with pytest.raises(ValueError, match="warm_start=True"):
        fit("LinearSVC", tmp_path / "state", warm_start=True)


@pytest.mark.slow
def test_the_best_estimator_of_a_search_has_no_checkpoint(tmp_path):
    search = fit("SVCCV", tmp_path / "state")
    assert search.best_estimator_.checkpoint is None


def test_a_fit_stopped_by_a_callback_continues(tmp_path):
    X, y = samples()
    stop = Recorder(lambda context: context.task_name == "slice")
    model = LinearSVC(loss="hinge", C=10.0, checkpoint=tmp_path / "state")
    with pytest.warns(ConvergenceWarning, match="requested by a callback"):
        model.set_callbacks(stop).fit(X, y)
    whole = LinearSVC(loss="hinge", C=10.0).set_callbacks(Recorder()).fit(X, y)
    again = LinearSVC(loss="hinge", C=10.0, checkpoint=tmp_path / "state")
    assert_same_bits(again.set_callbacks(Recorder()).fit(X, y), whole)


def test_a_full_disk_loses_the_checkpoint_and_not_the_fit(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    plain = fit("SVC")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match="could not be written.*No space left"):
        model = SVC(C=100.0, tol=1e-6, checkpoint=tmp_path / "state").fit(*samples())
    assert_same_bits(model, plain)
    assert list(tmp_path.iterdir()) == []
