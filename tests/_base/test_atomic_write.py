"""Files are written whole or not at all."""

import os
import random
import subprocess
import sys

import pytest

from widemargin._base.checkpoint import atomic_write


def test_the_file_takes_its_place_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_exception_the_old_file_is_there_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with atomic_write(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path):
    path = tmp_path / "directory"
    path.mkdir()
    with pytest.raises(OSError), atomic_write(path) as file:  # noqa: PT011 - differs by system
        file.write(b"new")
    assert os.listdir(tmp_path) == ["directory"]


def test_a_missing_directory_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "missing" / "file"):
        pass


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_the_target_of_a_link_is_replaced_and_not_the_link(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_write(path) as file:
        file.write(b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert path.is_fifo()


@pytest.mark.skipif(os.name == "nt", reason="permissions are different on Windows")
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    with atomic_write(tmp_path / "file"):
        pass
    (tmp_path / "other").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


WRITE_FOREVER = """
import itertools, sys
from widemargin._base.checkpoint import atomic_write

for letter in itertools.cycle(b"ab"):
    with atomic_write(sys.argv[1]) as file:
        for _ in range(20):
            file.write(bytes([letter]) * 50_000)
            file.flush()
    print(flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path, seed):
    path = tmp_path / "file"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE_FOREVER, str(path)], stdout=subprocess.PIPE
    )
    with writer:
        writer.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(random.Random(seed).uniform(0, 0.05))
        writer.kill()
    content = path.read_bytes()
    assert content in (b"a" * 1_000_000, b"b" * 1_000_000)
