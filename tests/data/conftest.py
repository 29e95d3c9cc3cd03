"""A mirror on this machine, a tiny set of files in MNIST's format, and an empty cache."""

import gzip
import hashlib
import http.server
import threading
from contextlib import closing

import numpy as np
import pytest

from minidp.data import mnist


class Mirror(http.server.ThreadingHTTPServer):
    """Serves `answers` (path to bytes, or to a function of the request handler) and records what
    was asked.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked, self.url = {}, [], f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.answers.get(self.path)
        if answer is None:
            self.send_error(404)
        elif callable(answer):
            answer(self)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def mirror():
    with closing(Mirror()) as server:
        yield server


@pytest.fixture
def dead_url():
    """The address of a mirror that does not listen any more."""
    with closing(Mirror()) as server:
        return server.url


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no other place to look for data."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MINIDP_CACHE", str(folder))
    monkeypatch.delenv("MINIDP_DATA", raising=False)
    return folder


def idx_bytes(array):
    """The IDX file of a uint8 array."""
    header = bytes((0, 0, 8, array.ndim)) + b"".join(
        size.to_bytes(4, "big") for size in array.shape
    )
    return header + array.tobytes()


@pytest.fixture
def tiny(monkeypatch, cache):
    """Four small files by name, which the loader takes for the published ones; no mirror has them
    yet.
    """
    rng = np.random.default_rng(5)
    files = {}
    for part, size in (("train", 12), ("t10k", 5)):
        images = rng.integers(0, 256, (size, 28, 28), dtype=np.uint8)
        files[f"{part}-images-idx3-ubyte"] = idx_bytes(images)
        files[f"{part}-labels-idx1-ubyte"] = idx_bytes(rng.integers(0, 10, size, dtype=np.uint8))
    digests = {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()}
    monkeypatch.setattr(mnist, "FILES", digests)
    monkeypatch.setattr(mnist, "MIRRORS", ())
    return files


@pytest.fixture
def write(tiny):
    """A function that writes the tiny files, gzipped or not, into a folder which it returns."""

    def write(folder, gzipped=True, names=None):
        folder.mkdir(parents=True, exist_ok=True)
        for name in names or tiny:
            if gzipped:
                (folder / f"{name}.gz").write_bytes(gzip.compress(tiny[name]))
            else:
                (folder / name).write_bytes(tiny[name])
        return folder

    return write
