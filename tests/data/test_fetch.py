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


@pytest.mark.parametrize("packed", [PACKED, gzip.compress(CONTENTS, 1)])
def test_files_arrive_verified_whatever_their_wrapping(mirror, tmp_path, packed):
    mirror.answers = {"/a.gz": packed, "/b.tar": CONTENTS}
    folder = tmp_path / "new" / "folder"
    fetch([FILE, PLAIN], [mirror.url], folder, "advice")
    assert (folder / "a.gz").read_bytes() == packed
    assert (folder / "b.tar").read_bytes() == CONTENTS
    assert len(list(folder.iterdir())) == 2


def test_the_next_mirror_takes_over_and_a_failed_one_is_not_asked_again(mirror, dead_url, tmp_path):
    mirror.answers = {"/good/a.gz": PACKED, "/good/b.tar": CONTENTS}
    fetch([FILE, PLAIN], [dead_url, mirror.url + "bad/", mirror.url + "good/"], tmp_path, "advice")
    assert mirror.asked == ["/bad/a.gz", "/good/a.gz", "/good/b.tar"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.gz", "b.tar"}


def cut(announced):
    """All but the last byte, of which the header announces so many, or says nothing."""

    def answer(handler):
        handler.send_response(200)
        if announced:
            handler.send_header("Content-Length", str(announced))
        handler.end_headers()
        handler.wfile.write(PACKED[:-1])

    return answer


@pytest.mark.parametrize(
    "answer, reason",
    [
        (None, "HTTP 404"),
        (b"<html>log in first</html>", "not an intact gzip file"),
        (gzip.compress(CONTENTS + b"!", mtime=0), f", expected {FILE.digest}"),
        (cut(None), "the gzip stream ends early"),
        (cut(len(PACKED)), f"ended after {len(PACKED) - 1} of {len(PACKED)} bytes"),
    ],
)
def test_a_mirror_that_fails_is_named_and_leaves_nothing(mirror, tmp_path, answer, reason):
    if answer is not None:
        mirror.answers = {"/a.gz": answer}
    with refused(DataUnavailableError, f"{mirror.url}a.gz: ", reason, "; put it there yourself"):
        fetch([FILE], [mirror.url], tmp_path, "put it there yourself")
    assert mirror.asked == ["/a.gz"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("begun", [False, True])
def test_silence_is_given_up(mirror, tmp_path, monkeypatch, begun):
    def silent(handler):
        if begun:
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


def test_a_name_look_up_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    monkeypatch.setattr(module.urllib.request, "urlopen", lambda request, timeout: time.sleep(1))
    with refused(DataUnavailableError, "http://nowhere/a.gz: no answer within 0.2 s"):
        fetch([FILE], ["http://nowhere/"], tmp_path, "advice")


def test_an_interrupt_leaves_nothing(mirror, tmp_path, monkeypatch):
    def interrupt(self, block):
        raise KeyboardInterrupt

    mirror.answers = {"/a.gz": PACKED}
    monkeypatch.setattr(module._Check, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch([FILE], [mirror.url], tmp_path, "advice")
    assert list(tmp_path.iterdir()) == []
