"""Checkpoints come back as they were saved, or not at all."""

import errno
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from widemargin._base import checkpoint
from widemargin._base.checkpoint import (
    CheckpointError,
    CheckpointKeeper,
    atomic_write,
    check_state,
    load_checkpoint,
    save_checkpoint,
)

dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
    hnp.unicode_string_dtypes(max_len=5),
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
scalars = dtypes.flatmap(lambda dtype: hnp.arrays(dtype, ())).map(lambda array: array[()])
simple = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
names = st.text(max_size=8)
states = st.dictionaries(
    names,
    st.recursive(
        st.one_of(arrays, scalars, simple),
        lambda values: st.dictionaries(names, values, max_size=3),
        max_leaves=8,
    ),
    max_size=5,
)


def assert_same(loaded, saved):
    assert type(loaded) is type(saved)
    if isinstance(saved, dict):
        assert list(loaded) == list(saved)
        for name in saved:
            assert_same(loaded[name], saved[name])
    elif isinstance(saved, np.ndarray | np.generic):
        assert loaded.dtype == saved.dtype
        assert loaded.shape == saved.shape
        assert loaded.tobytes() == saved.tobytes()
    else:
        assert loaded == saved or (loaded != loaded and saved != saved)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints") / "checkpoint"


@given(state=states)
@settings(max_examples=100)
def test_a_state_comes_back_as_it_was(path, state):
    save_checkpoint(path, "kind", state)
    assert_same(load_checkpoint(path, "kind"), state)


@pytest.mark.parametrize("bit_generator", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_a_random_generator_goes_on_where_it_was(path, bit_generator):
    generator = np.random.Generator(getattr(np.random, bit_generator)(0))
    generator.random(5)
    save_checkpoint(path, "kind", {"random": generator.bit_generator.state})
    expected = generator.random(5)
    generator.bit_generator.state = load_checkpoint(path, "kind")["random"]
    np.testing.assert_array_equal(generator.random(5), expected)


def test_arrays_keep_their_order_in_memory(path):
    save_checkpoint(path, "kind", {"a": np.ones((3, 4), order="F")})
    assert load_checkpoint(path, "kind")["a"].flags.f_contiguous


def test_numpy_can_open_a_checkpoint_without_pickles(path):
    save_checkpoint(path, "kind", {"alpha": np.arange(3.0)})
    with np.load(path, allow_pickle=False) as members:
        header = json.loads(members["header"].tobytes())
        assert header["kind"] == "kind"
        assert sorted(members) == ["0", "header"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([None, 1]), r"state\['x'\] has dtype object"),
        (np.zeros(2, dtype=[("a", object)]), "objects cannot be saved"),
        ([1, 2], "is of type list"),
        ({1: 2}, "is of type dict"),
        ({"inner": {1, 2}}, r"state\['x'\]\['inner'\] is of type set"),
        (np.ma.masked_array([1, 2]), "MaskedArray"),
        (lambda: 0, "function"),
    ],
)
def test_what_cannot_come_back_is_refused_and_the_old_file_kept(path, value, words):
    save_checkpoint(path, "kind", {"x": 1})
    with pytest.raises(CheckpointError, match=words):
        save_checkpoint(path, "kind", {"x": value})
    assert load_checkpoint(path, "kind") == {"x": 1}


def test_another_kind_is_refused(path):
    save_checkpoint(path, "smo", {})
    with pytest.raises(CheckpointError, match="of kind 'smo', but kind='forest' is needed"):
        load_checkpoint(path, "forest")


@pytest.mark.parametrize("version", [1, 3])
def test_another_format_is_refused(path, monkeypatch, version):
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_VERSION", version)
        save_checkpoint(path, "kind", {})
    with pytest.raises(CheckpointError, match=f"has format {version}; .* reads format 2. Resume"):
        load_checkpoint(path, "kind")


@given(data=st.data())
@settings(max_examples=200)
def test_any_changed_byte_is_noticed(path, data):
    save_checkpoint(path, "kind", {"alpha": np.arange(20.0), "iterations": 7})
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(path, "kind")


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 500])
def test_a_file_cut_short_is_noticed(path, length):
    save_checkpoint(path, "kind", {"alpha": np.arange(20.0)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(path, "kind")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "missing", "kind")


def test_a_keeper_loads_the_state_it_saved(tmp_path):
    keeper = CheckpointKeeper(tmp_path / "fit", "Model", {"C": 1.0}, np.arange(3.0))
    assert keeper.load(dict) is None
    keeper.save(lambda: {"iterations": 7, "alpha": np.arange(2.0)})
    again = CheckpointKeeper(tmp_path / "fit", "Model", {"C": 1.0}, np.arange(3.0))
    assert_same(again.load(dict), {"iterations": 7, "alpha": np.arange(2.0)})


@pytest.mark.parametrize("identity", [({"C": 2.0}, np.arange(3.0)), ({"C": 1.0}, np.arange(4.0))])
def test_a_keeper_refuses_the_file_of_other_data_or_parameters(tmp_path, identity):
    CheckpointKeeper(tmp_path / "fit", "Model", {"C": 1.0}, np.arange(3.0)).save(dict)
    with pytest.raises(CheckpointError, match="was written for other data"):
        CheckpointKeeper(tmp_path / "fit", "Model", *identity).load(dict)


@pytest.mark.parametrize("name", ["missing/fit", "."])
def test_a_keeper_refuses_a_path_that_cannot_be_written(tmp_path, name):
    with pytest.raises(CheckpointError, match=r"checkpoint=.* cannot be written"):
        CheckpointKeeper(tmp_path / name, "Model")


def test_a_keeper_without_a_path_does_nothing():
    def fail():
        raise AssertionError("the state was built")

    keeper = CheckpointKeeper(None, "Model")
    keeper.save(fail)
    keeper.save_if_due(fail)
    assert keeper.load(dict) is None


def test_a_keeper_waits_between_two_files(tmp_path):
    keeper = CheckpointKeeper(tmp_path / "fit", "Model", seconds_between=3600.0)
    keeper.save_if_due(lambda: {"saved": True})
    assert keeper.load(dict) is None
    keeper.seconds_between = -1.0
    keeper.save_if_due(lambda: {"saved": True})
    assert keeper.load(dict) == {"saved": True}


EXPECTED = {
    "count": 0,
    "sign": -1,
    "loss": 0.0,
    "bound": np.inf,
    "gap": np.nan,
    "done": False,
    "name": "",
    "none": None,
    "dual": np.zeros(3),
    "labels": np.full(3, -1, dtype=np.int8),
    "inner": {"ranks": np.zeros((2, 2), dtype=np.int64)},
}


@pytest.mark.parametrize(
    "changed",
    [
        {"count": 2**53, "loss": -1.5, "bound": -np.inf, "gap": np.nan, "done": True, "name": "n"},
        {"sign": 1, "loss": np.float64(2.0), "dual": -np.ones(3), "done": np.True_},
        {"labels": np.array([-1, 0, 1], dtype=np.int8), "gap": np.inf},
    ],
)
def test_a_state_may_have_other_values(changed):
    check_state({**EXPECTED, **changed}, EXPECTED)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("count", [-1, 1.0, "1", None, True, 2**53 + 1, 2**80, np.zeros(1, dtype=int)]),
        ("sign", [2, -2]),
        ("loss", [np.nan, np.inf, 1, np.array(0.0)]),
        ("bound", [np.nan]),
        ("done", [0, None]),
        ("name", [0, b""]),
        ("none", [0, {}]),
        (
            "dual",
            [np.zeros(4), np.zeros((3, 1)), np.zeros(3, dtype=np.float32), np.full(3, np.nan)],
        ),
        ("dual", [[0.0, 0.0, 0.0], np.zeros(3, dtype=">f8"), np.zeros(3, dtype=complex)]),
        ("labels", [np.full(3, 2, dtype=np.int8), np.zeros(3, dtype=np.int64)]),
        ("inner", [{}, {"ranks": np.full((2, 2), -1)}, {**EXPECTED["inner"], "foreign": 0}, 0]),
    ],
)
def test_a_state_of_another_form_is_refused(name, values):
    for value in values:
        with pytest.raises(ValueError, match=rf"state\['{name}'\]"):
            check_state({**EXPECTED, name: value}, EXPECTED)


def test_a_keeper_names_the_file_with_another_state(tmp_path):
    keeper = CheckpointKeeper(tmp_path / "fit", "Model")
    keeper.save(lambda: {"iterations": -1})
    with pytest.raises(CheckpointError, match=r"checkpoint=.*fit' is damaged: state\['iterations'"):
        keeper.load(lambda state: {"iterations": 0})


def test_a_keeper_warns_once_if_the_disk_is_full(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    keeper = CheckpointKeeper(tmp_path / "fit", "Model")
    keeper.save(lambda: {"round": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(RuntimeWarning, match="could not be written.*No space left"):
            keeper.save(lambda: {"round": 2})
        keeper.save(lambda: {"round": 3})
    assert keeper.load(dict) == {"round": 1}
    keeper.save(lambda: {"round": 4})
    assert keeper.load(dict) == {"round": 4}


def test_a_keeper_removes_the_files_that_a_killed_fit_has_left(tmp_path):
    with atomic_write(tmp_path / "fit"):
        (orphan,) = tmp_path.iterdir()
    orphan.touch()
    (tmp_path / "other.tmp").touch()
    CheckpointKeeper(tmp_path / "fit", "Model")
    assert {path.name for path in tmp_path.iterdir()} == {"fit", "other.tmp"}
