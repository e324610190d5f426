"""Checkpoints and callbacks of label trees: a fit that is stopped resumes to the same bits."""

import io
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.labeltree.cases import classes, documents
from tests.suites.callbacks import Recorder

from widemargin import LabelTreeClassifier
from widemargin._base import checkpoint
from widemargin._base.checkpoint import CheckpointError
from widemargin.labeltree.node import NodeSolver

pytestmark = pytest.mark.large

SMALL = {"branching": 3, "max_leaf_size": 5, "n_trees": 2}


def assert_same_model(one, other):
    for first, second in zip(one.weights_, other.weights_, strict=True):
        for a, b in zip(first.arrays(), second.arrays(), strict=True):
            np.testing.assert_array_equal(a, b)


def fail_after(monkeypatch, n_nodes):
    """Let training fail after this many nodes."""
    train, trained = NodeSolver.train, []

    def limited(*arguments):
        if len(trained) == n_nodes:
            raise MemoryError
        trained.append(arguments[-1])
        return train(*arguments)

    monkeypatch.setattr(NodeSolver, "train", limited)
    monkeypatch.setattr("widemargin._base.threads.effective_threads", lambda: 1)
    return trained


def test_a_fit_resumes_after_the_last_node(tmp_path, monkeypatch):
    X, Y = documents()
    expected = LabelTreeClassifier(**SMALL).fit(X, Y)
    path = tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch:
        fail_after(patch, 10)
        with pytest.raises(MemoryError):
            LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y)
    with monkeypatch.context() as patch:
        trained = fail_after(patch, 1000)
        model = LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y)
        n_nodes = sum(len(tree.inner_nodes()) for tree in model.trees_)
        assert len(trained) == n_nodes - 10
        assert_same_model(model, expected)
        LabelTreeClassifier(checkpoint=path, beam_width=3, **SMALL).fit(X, Y)
        assert len(trained) == n_nodes - 10


def test_an_incomplete_record_is_trained_again(tmp_path):
    X, Y = documents()
    path = tmp_path / "fit.checkpoint"
    expected = LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y)
    content = path.read_bytes()
    for cut in (1, 50, 1000, len(content) // 2):
        path.write_bytes(content[:-cut])
        assert_same_model(LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y), expected)
        assert len(path.read_bytes()) == len(content)


def test_files_that_do_not_belong_to_the_fit_are_refused(tmp_path):
    X, Y = documents()
    path = tmp_path / "fit.checkpoint"
    LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y)
    for other in ({"C": 2.0}, {"random_state": 5}, {"loss": "hinge"}):
        with pytest.raises(CheckpointError, match="written for other data"):
            LabelTreeClassifier(checkpoint=path, **SMALL, **other).fit(X, Y)
    with pytest.raises(CheckpointError, match="written for other data"):
        LabelTreeClassifier(checkpoint=path, **SMALL).fit(X[:-1], Y[:-1])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y)
    with pytest.raises(CheckpointError, match="cannot be written"):
        LabelTreeClassifier(checkpoint=tmp_path / "none" / "fit", **SMALL).fit(X, Y)


def test_a_full_disk_loses_the_checkpoint_and_not_the_fit(tmp_path, monkeypatch):
    X, Y = documents()
    expected = LabelTreeClassifier(**SMALL).fit(X, Y)
    path, opened = tmp_path / "fit.checkpoint", []

    class Full(io.FileIO):
        def write(self, content):
            opened.append(1)
            if len(opened) < 6:
                return super().write(content)
            super().write(content[: len(content) // 2])
            raise OSError(28, "No space left on device")

    def open_full(name, mode="r", **arguments):
        return Full(name, mode) if mode == "ab" else open(name, mode, **arguments)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "open", open_full, raising=False)
        with pytest.warns(RuntimeWarning, match="could not be written.*No space left"):
            model = LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y)
    assert_same_model(model, expected)
    assert len(opened) == 6
    trained = fail_after(monkeypatch, 1000)
    assert_same_model(LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y), expected)
    assert len(trained) == sum(len(tree.inner_nodes()) for tree in model.trees_) - 5


def test_a_disk_that_is_full_from_the_start_does_not_stop_the_fit(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    X, Y = documents()
    with pytest.warns(RuntimeWarning, match="could not be written.*No space left"):
        model = LabelTreeClassifier(checkpoint=tmp_path / "fit", **SMALL).fit(X, Y)
    assert_same_model(model, LabelTreeClassifier(**SMALL).fit(X, Y))
    assert list(tmp_path.iterdir()) == []


def test_files_of_another_version_are_refused(tmp_path, monkeypatch):
    X, Y = documents()
    LabelTreeClassifier(checkpoint=tmp_path / "fit", **SMALL).fit(X, Y)
    monkeypatch.setattr(checkpoint, "__version__", "0.0")
    with pytest.raises(CheckpointError, match="by another version"):
        LabelTreeClassifier(checkpoint=tmp_path / "fit", **SMALL).fit(X, Y)


@pytest.mark.slow
def test_a_killed_process_loses_only_the_nodes_under_way(tmp_path):
    path = tmp_path / "fit.checkpoint"
    code = """
    import os, sys
    from tests.labeltree.cases import documents
    from widemargin import LabelTreeClassifier
    from widemargin.labeltree.node import NodeSolver
    train, count = NodeSolver.train, []

    def killed(*arguments):
        count.append(1)
        if len(count) == 8:
            os.kill(os.getpid(), 9)
        return train(*arguments)

    NodeSolver.train = killed
    model = LabelTreeClassifier(branching=3, max_leaf_size=5, n_trees=2, checkpoint=sys.argv[1])
    model.fit(*documents())
    """
    done = subprocess.run([sys.executable, "-c", dedent(code), path], check=False)
    assert done.returncode == -9
    size = path.stat().st_size
    assert size > 1000
    X, Y = documents()
    model = LabelTreeClassifier(checkpoint=path, **SMALL).fit(X, Y)
    assert_same_model(model, LabelTreeClassifier(**SMALL).fit(X, Y))


def test_callbacks_see_every_node_and_can_stop_the_fit(monkeypatch):
    monkeypatch.setattr("widemargin._base.threads.effective_threads", lambda: 1)
    X, y = classes()
    callback = Recorder()
    model = LabelTreeClassifier(**SMALL).set_callbacks(callback).fit(X, y)
    n_nodes = sum(len(tree.inner_nodes()) for tree in model.trees_)
    assert sorted(number for name, number in callback.ended if name == "node") == [*range(n_nodes)]
    assert callback.fitted[-1] == model.score(X, y)
    callback = Recorder(lambda context: context.task_name == "node" and context.task_id == 4)
    with pytest.warns(ConvergenceWarning, match="A callback stopped the fit"):
        stopped = LabelTreeClassifier(**SMALL).set_callbacks(callback).fit(X, y)
    assert 0 < len(stopped.weights_[0].value) < len(model.weights_[0].value)
    assert len(stopped.weights_[1].value) == 0
    assert stopped.predict(X).shape == y.shape
