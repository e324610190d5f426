"""Checkpoints that were forged, killed or cannot be written: a message, never a wrong fit."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from widemargin import PreferenceClassifier, PreferenceSVC
from widemargin._base import checkpoint
from widemargin._base.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from widemargin.structured import ChainCRF, FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def chains():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 4)) for _ in range(12)]
    return X, [rng.integers(0, 3, 5) for _ in X]


def partly_labeled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    y[80:] = -1
    return X, y


def new(name, **parameters):
    """Return an estimator and data of a fit that the checkpoint leaves unfinished."""
    if name in (FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM):
        return name(ChainCRF(), **{"max_iter": 4, **parameters}), chains()
    parameters = {"max_rounds": 2, "random_state": 0, **parameters}
    if name is PreferenceClassifier:
        parameters["estimator"] = LogisticRegression()
    return name(**parameters), partly_labeled()


ESTIMATORS = [FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM, PreferenceSVC, PreferenceClassifier]
each = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


def leaves(state, path=()):
    """Yield the path of every entry of nested dicts."""
    for name, value in state.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))


def forgeries(value):
    """Yield values of the wrong type, dtype, shape or range."""
    yield "text"
    yield {"foreign": 1}
    yield np.array(["text"])
    yield -(10**9)
    if isinstance(value, np.ndarray):
        yield np.zeros((*value.shape, 2), value.dtype)
        yield value[:-1] if value.ndim else value[np.newaxis]
        yield np.concatenate([value, value]) if value.ndim else 1
        yield np.zeros(value.shape, np.float32 if value.dtype.kind in "fi" else np.int64)
        if value.dtype.kind == "i":
            yield np.full_like(value, -100)
    elif isinstance(value, float):
        yield np.nan
        yield 1
    elif isinstance(value, int) and not isinstance(value, bool):
        yield -1
        yield 2**80
        yield 0.5


def forged_states(state):
    for path in list(leaves(state)):
        *parents, name = path
        inner = state
        for parent in parents:
            inner = inner[parent]
        original = inner[name]
        for value in forgeries(original):
            if value is not original:
                inner[name] = value
                yield path, value, state
        del inner[name]
        yield path, "missing", state
        inner[name] = original
        inner["foreign"] = original
        yield path, "foreign", state
        del inner["foreign"]


# A random generator may be in another state, and a gap may be unknown.
HARMLESS = {"state", "has_uint32", "gap"}


@each
def test_every_forged_entry_is_refused(kind, tmp_path, record_property):
    file = tmp_path / "state"
    estimator, data = new(kind, checkpoint=file)
    estimator.fit(*data)
    content = load_checkpoint(file, kind.__name__)
    tried, accepted = 0, []
    for path, value, state in forged_states(content["state"]):
        save_checkpoint(file, kind.__name__, {**content, "state": state})
        again, _ = new(kind, checkpoint=file)
        tried += 1
        refused = pytest.raises(CheckpointError, match=r"^checkpoint=.* is damaged")
        with contextlib.suppress(pytest.fail.Exception), refused:
            again.fit(*data)
        if hasattr(again, "n_iter_") and path[-1] not in HARMLESS:
            accepted.append((path, value))
        assert not hasattr(again, "foreign")
    record_property("faults: forged checkpoints", tried)
    assert tried > 50
    assert accepted == []


@pytest.mark.parametrize("content", [b"", b"x", b"PK" * 500, bytes(2000)])
@each
def test_other_files_are_refused(kind, content, tmp_path):
    file = tmp_path / "state"
    file.write_bytes(content + checkpoint._checksum(content))
    estimator, data = new(kind, checkpoint=file)
    with pytest.raises(CheckpointError, match="checkpoint="):
        estimator.fit(*data)


def test_a_compressed_archive_is_refused_before_it_fills_the_memory(tmp_path):
    file = tmp_path / "state"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(10**8))
        archive.comment = b"0" * checkpoint._CHECKSUM_LENGTH
    content = file.read_bytes()[: -checkpoint._CHECKSUM_LENGTH]
    file.write_bytes(content + checkpoint._checksum(content))
    with pytest.raises(CheckpointError, match="compressed"):
        load_checkpoint(file, "kind")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
@each
def test_a_path_that_is_no_file_is_refused_before_training(kind, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "missing" / "state")
    (tmp_path / "text").write_text("text")
    for name in ("fifo", "folder", "missing/state", "text/state", "dangling", "x" * 300):
        estimator, data = new(kind, checkpoint=tmp_path / name)
        with pytest.raises(CheckpointError, match=r"checkpoint=.* cannot be written"):
            estimator.fit(*data)


@pytest.mark.skipif(os.name == "nt", reason="permissions are different on Windows")
@each
def test_a_folder_without_write_permission_is_refused_before_training(kind, tmp_path, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("builtins.open", refuse)  # permissions do not bind the superuser
    with pytest.raises(CheckpointError, match=r"checkpoint=.* cannot be written: .*denied"):
        checkpoint.CheckpointKeeper(tmp_path / "state", kind.__name__)


@each
def test_a_full_disk_loses_the_checkpoint_and_not_the_fit(kind, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    estimator, data = new(kind, checkpoint=tmp_path / "state")
    plain = new(kind)[0].fit(*data)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match="could not be written.*No space left") as caught:
        estimator.fit(*data)
    assert sum(issubclass(warning.category, RuntimeWarning) for warning in caught) == 1
    assert list(tmp_path.iterdir()) == []
    for own, other in zip(estimator.predict(data[0]), plain.predict(data[0]), strict=True):
        assert_array_equal(own, other)


@each
def test_more_work_resumes_where_less_has_ended(kind, tmp_path):
    limit = "max_rounds" if kind in (PreferenceSVC, PreferenceClassifier) else "max_iter"
    few, data = new(kind, checkpoint=tmp_path / "state", **{limit: 1})
    few.fit(*data)
    assert few.n_iter_ == 1
    more = new(kind, checkpoint=tmp_path / "state", **{limit: 3})[0].fit(*data)
    whole = new(kind, **{limit: 3})[0].fit(*data)
    assert more.n_iter_ == whole.n_iter_ == 3
    if limit == "max_rounds":  # learners check the gap at the end of a fit, which rounds
        assert_array_equal(more.decision_function(data[0]), whole.decision_function(data[0]))


FIT_FOREVER = """
import sys
from tests.faults.test_checkpoints import FrankWolfeSSVM, checkpoint, new
from widemargin._base.options import checkpoint_options

checkpoint_options.seconds_between_checkpoints = -1.0
estimator, data = new(FrankWolfeSSVM, checkpoint=sys.argv[1], max_iter=10**6, tol=1e-300)
save = checkpoint.save_checkpoint


def save_and_print(*arguments):
    save(*arguments)
    print(flush=True)


checkpoint.save_checkpoint = save_and_print
estimator.fit(*data)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill")
def test_killed_fits_leave_no_files_behind(tmp_path, record_property):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    file, most, rng = tmp_path / "state", 0, np.random.default_rng(0)
    for _ in range(8):
        command = [sys.executable, "-c", FIT_FOREVER, str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as fit:
            fit.stdout.readline()  # it has written a checkpoint
            with pytest.raises(subprocess.TimeoutExpired):
                fit.wait(rng.uniform(0.0, 0.1))
            fit.kill()
        most = max(most, len(list(Path(tmp_path).iterdir())))
    record_property("faults: killed fits", 8)
    assert most <= 2  # the checkpoint, and what the last fit has left
    estimator, data = new(FrankWolfeSSVM, checkpoint=file, max_iter=1)
    estimator.fit(*data)
    assert list(tmp_path.iterdir()) == [file]
    assert estimator.n_iter_ > 1
