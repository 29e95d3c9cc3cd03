"""A mirror on this machine, a tiny set of files in MNIST's format, and an empty cache."""

import gzip
import hashlib
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from datasets import mnist


class Mirror(SimpleHTTPRequestHandler):
    """Serves the files of the server's `folder`, and records what was asked."""

    def translate_path(self, path):
        return f"{self.server.folder}{path}"

    def log_request(self, *_):
        self.server.asked.append(self.path)

    def log_message(self, *_):
        pass


@pytest.fixture
def mirror(tmp_path_factory):
    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        server.folder, server.asked = tmp_path_factory.mktemp("mirror"), []
        server.url = f"http://127.0.0.1:{server.server_port}/"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


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
