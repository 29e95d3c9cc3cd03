"""A mirror on this machine, a tiny set of files in MNIST's format, and an empty cache."""
import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest

from minidp.data import mnist


class Mirror:
    """Serves `answers` (path to bytes, or to a function of the request handler) and records what was asked."""

    def __init__(self):
        self.answers, self.asked = {}, []
        mirror = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                mirror.asked.append(self.path)
                answer = mirror.answers.get(self.path)
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

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def mirror():
    server = Mirror()
    yield server
    server.close()


@pytest.fixture
def dead_url(mirror):
    """The address of a mirror that does not listen any more."""
    other = Mirror()
    other.close()
    return other.url


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no other place to look for data."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MINIDP_CACHE", str(folder))
    monkeypatch.delenv("MINIDP_DATA", raising=False)
    return folder


def idx_bytes(array):
    """The IDX file of a uint8 array."""
    header = bytes((0, 0, 8, array.ndim)) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return header + array.tobytes()


@pytest.fixture
def tiny(monkeypatch, cache):
    """Four small files by name, which the loader takes for the published ones; no mirror has them yet."""
    rng = np.random.default_rng(5)
    files = {}
    for part, size in (("train", 12), ("t10k", 5)):
        files[f"{part}-images-idx3-ubyte"] = idx_bytes(rng.integers(0, 256, (size, 28, 28), dtype=np.uint8))
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
            path, raw = (folder / f"{name}.gz", gzip.compress(tiny[name])) if gzipped else (folder / name, tiny[name])
            path.write_bytes(raw)
        return folder

    return write
