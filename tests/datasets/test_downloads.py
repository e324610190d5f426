"""Downloads from a local server: whole, broken, truncated and altered files, and no network."""

import bz2
import gzip
import io
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from widemargin.datasets import DatasetError, downloads, fetch_dataset

pytest.importorskip("pooch")
# Retries and connections of the client end with the process.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Handler(BaseHTTPRequestHandler):
    """Serve the files of the server, some of them broken."""

    def do_GET(self):
        files, counts, broken = self.server.files, self.server.counts, self.server.broken
        name = self.path.rpartition("/")[2]
        counts[name] = counts.get(name, 0) + 1
        if name not in files:
            self.send_error(404)
            return
        content = files[name]
        self.send_response(200)
        if broken != "no length":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if broken else content)

    def log_message(self, *arguments):
        """Print nothing."""


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.files, running.counts, running.broken = {}, {}, False
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()


@pytest.fixture
def fetch(server, tmp_path, monkeypatch):
    """Fetch from the local server, with the number of samples that it has."""

    def make(name, files, shapes, content=None):
        server.files = files
        port = server.server_address[1]
        old = downloads.SOURCES[name]
        addresses = tuple(
            f"http://127.0.0.1:{port}/{address.rpartition('/')[2]}" for address in old.addresses
        )
        new = replace(old, addresses=addresses, shapes=shapes, content=content)
        monkeypatch.setitem(downloads.SOURCES, name, new)
        return partial(fetch_dataset, name, data_home=tmp_path)

    return make


def svmlight(X, y, **options):
    file = io.BytesIO()
    dump_svmlight_file(X, y, file, zero_based=False, **options)
    return file.getvalue()


@pytest.fixture
def letter(fetch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 16)), rng.integers(1, 27, size=30)
    files = {"letter.scale": svmlight(X[:20], y[:20]), "letter.scale.t": svmlight(X[20:], y[20:])}
    shapes = {"X_train": (20, 16), "y_train": (20,), "X_test": (10, 16), "y_test": (10,)}
    return fetch("letter", files, shapes), X, y


def test_a_set_is_downloaded_once_and_read_from_the_cache(letter, server):
    fetched, X, y = letter
    for _ in range(2):
        found = fetched()
        np.testing.assert_allclose(found.X_train, X[:20])
        np.testing.assert_allclose(found.X_test, X[20:])
        np.testing.assert_array_equal(found.y_test, y[20:])
    assert server.counts == {"letter.scale": 1, "letter.scale.t": 1}
    server.shutdown()
    assert fetched().X_train.shape == (20, 16)


@pytest.mark.parametrize("broken", ["short", "no length"])
def test_a_truncated_download_is_refused_and_downloaded_again(fetch, server, tmp_path, broken):
    X, y = np.eye(8, 22), np.tile([-1, 1], 4)
    files = {name: bz2.compress(svmlight(X, y)) for name in ("ijcnn1.bz2", "ijcnn1.t.bz2")}
    shapes = {"X_train": (8, 22), "X_test": (8, 22)}
    fetched = fetch("ijcnn1", files, shapes)
    server.broken = broken
    with pytest.raises(DatasetError, match="ijcnn1"):
        fetched()
    assert not list((tmp_path / "ijcnn1").glob("*.bz2"))
    server.broken = False
    assert sp.issparse(fetched().X_train)


def test_a_truncated_text_file_is_found_by_its_number_of_samples(letter, server, tmp_path):
    fetched, *_ = letter
    whole = server.files["letter.scale"]
    server.files["letter.scale"] = whole[: whole.rindex(b"\n", 0, -1) + 1]
    with pytest.raises(DatasetError, match=r"\(19, 16\) instead of \(20, 16\).*Call fetch_dataset"):
        fetched()
    server.files["letter.scale"] = whole
    assert len(fetched().X_train) == 20


def test_a_page_instead_of_a_file_is_refused(letter, server):
    server.files["letter.scale"] = b"<html>Not found</html>"
    with pytest.raises(DatasetError, match="the address leads to other ones"):
        letter[0]()


def test_a_file_that_has_changed_in_the_cache_is_refused(letter, tmp_path):
    letter[0]()
    path = tmp_path / "letter" / "letter.scale"
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    with pytest.raises(DatasetError, match=r"has changed since it was downloaded\. Delete it"):
        letter[0]()
    path.unlink()
    assert letter[0]().X_train.shape == (20, 16)


def test_a_second_download_must_have_the_checksum_of_the_first(letter, server, tmp_path):
    letter[0]()
    (tmp_path / "letter" / "letter.scale").unlink()
    server.files["letter.scale"] += b"1 1:0.5\n"
    with pytest.raises(DatasetError, match=r"SHA256|hash"):
        letter[0]()


def test_without_a_network_the_error_says_what_to_do(letter, server, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(DatasetError, match=r"cannot be downloaded from http.*copy it to .*letter"):
        letter[0]()
    with pytest.raises(DatasetError, match="is not in the cache"):
        letter[0](download_if_missing=False)


def test_a_missing_file_on_the_server_is_an_error(letter, server):
    del server.files["letter.scale.t"]
    with pytest.raises(DatasetError, match="404"):
        letter[0]()


def test_a_file_copied_by_hand_needs_no_network(letter, server, tmp_path):
    files = dict(server.files)
    server.shutdown()
    (tmp_path / "letter").mkdir()
    for name, content in files.items():
        (tmp_path / "letter" / name).write_bytes(content)
    assert letter[0]().X_test.shape == (10, 16)


def test_another_content_than_that_of_the_benchmarks_is_reported(letter, monkeypatch):
    digest = downloads._digest(letter[0]())
    source = downloads.SOURCES["letter"]
    monkeypatch.setitem(downloads.SOURCES, "letter", replace(source, content=digest))
    letter[0]()
    monkeypatch.setitem(downloads.SOURCES, "letter", replace(source, content="0" * 64))
    with pytest.warns(UserWarning, match="differ from those with which the benchmarks"):
        letter[0]()


def test_the_digest_does_not_depend_on_the_storage():
    X = np.array([[0.0, 0.1], [2.0, 0.0]])
    y = np.array([1, 2])
    first = downloads._digest({"X": X, "y": y})
    assert first == downloads._digest({"X": sp.csr_matrix(X.astype(np.float32)), "y": y})
    assert first != downloads._digest({"X": X, "y": y[::-1]})


def test_several_labels_become_an_indicator_matrix(fetch):
    text = b"0,3 1:1 1836:2\n158 2:1\n 5:1\n"
    shapes = {"X": (3, 1836), "y": (3, 159)}
    found = fetch("bibtex", {"bibtex.bz2": bz2.compress(text)}, shapes)()
    np.testing.assert_array_equal(found.y.indices, [0, 3, 158])
    np.testing.assert_array_equal(found.y.indptr, [0, 2, 3, 3])


def test_words_end_where_no_letter_follows(fetch):
    letters = [("o", 2, 1), ("n", -1, 1), ("a", -1, 2)]
    lines = [
        "\t".join([str(k), letter, str(following), str(word), "1", "4", *["01"[k % 2]] * 128])
        for k, (letter, following, word) in enumerate(letters)
    ]
    files = {"letter.data.gz": gzip.compress("\n".join(lines).encode())}
    found = fetch("ocr_letters", files, {"X": 2, "y": 2, "folds": (2,)})()
    assert [word.tolist() for word in found.y] == [[14, 13], [0]]
    assert found.X[0].shape == (2, 128)
    assert found.folds.tolist() == [4, 4]


def test_imbalanced_sets_are_read_from_one_archive(fetch, server):
    arrays, archive = io.BytesIO(), io.BytesIO()
    np.savez(arrays, data=np.ones((4, 7)), label=np.array([-1, -1, -1, 1]))
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        info = tarfile.TarInfo("x1data.npz")
        info.size = arrays.tell()
        tar.addfile(info, io.BytesIO(arrays.getvalue()))
    files = {"benchmark-imbalanced-learn.tar.gz": archive.getvalue()}
    found = fetch("imbalanced_ecoli", files, {"X": (4, 7), "y": (4,)})()
    assert found.y.tolist() == [-1, -1, -1, 1]
    with pytest.raises(DatasetError, match="imbalanced_oil"):
        fetch("imbalanced_oil", files, {})()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="name must be one of a9a, ijcnn1"):
        fetch_dataset("no such set")


def test_the_folder_is_that_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=str(tmp_path)):
        fetch_dataset("letter", download_if_missing=False)


def test_without_pooch_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match=r"widemargin\[data\].*copy it to"):
        fetch_dataset("letter", data_home=tmp_path)
