import gzip
import hashlib
import time

import pytest

from minidp.data import fetch as module
from minidp.data.fetch import RemoteFile, fetch
from minidp.errors import DataUnavailableError
from tests.support.refused import refused

CONTENTS = bytes(range(256)) * 700  # more than one block
PACKED = gzip.compress(CONTENTS, mtime=0)
FILE = RemoteFile("a.gz", "sha256", hashlib.sha256(CONTENTS).hexdigest(), gunzip=True)
PLAIN = RemoteFile("b.tar", "md5", hashlib.md5(CONTENTS).hexdigest())


def test_the_next_mirror_takes_over_and_a_failed_one_is_not_asked_again(mirror, dead_url, tmp_path):
    mirror.answers = {"/good/a.gz": PACKED, "/good/b.tar": CONTENTS}
    folder, mirrors = tmp_path / "new", [dead_url, mirror.url + "bad/", mirror.url + "good/"]
    fetch([FILE, PLAIN], mirrors, folder, "advice")
    assert mirror.asked == ["/bad/a.gz", "/good/a.gz", "/good/b.tar"]
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {"a.gz": PACKED, "b.tar": CONTENTS}


def cut(handler):
    """All but the last byte that the header announces."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(PACKED)))
    handler.end_headers()
    handler.wfile.write(PACKED[:-1])


@pytest.mark.parametrize(
    "answer, reason",
    [
        (None, "HTTP 404"),
        (b"<html>log in first</html>", f", expected {FILE.digest}"),
        (cut, "damaged gzip file"),
    ],
)
def test_a_mirror_that_fails_is_named_and_leaves_nothing(mirror, tmp_path, answer, reason):
    if answer is not None:
        mirror.answers = {"/a.gz": answer}
    with refused(DataUnavailableError, f"{mirror.url}a.gz: ", reason, "; put it there yourself"):
        fetch([FILE], [mirror.url], tmp_path, "put it there yourself")
    assert mirror.asked == ["/a.gz"]
    assert list(tmp_path.iterdir()) == []


def test_silence_is_given_up(mirror, tmp_path, monkeypatch):
    def silent(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(PACKED[:100])
        handler.wfile.flush()
        time.sleep(1.5)

    monkeypatch.setattr(module, "TIMEOUT", 0.3)
    mirror.answers = {"/a.gz": silent}
    with refused(DataUnavailableError, "no answer within 0.3 s"):
        fetch([FILE], [mirror.url], tmp_path, "advice")
    assert list(tmp_path.iterdir()) == []
