import gzip
import hashlib

import pytest

from datasets import fetch as module
from datasets.fetch import DataUnavailableError, RemoteFile, fetch
from tests.support.refused import refused

CONTENTS = bytes(range(256)) * 700
PACKED = gzip.compress(CONTENTS, mtime=0)
FILE = RemoteFile("a.gz", "sha256", hashlib.sha256(CONTENTS).hexdigest(), gunzip=True)
PLAIN = RemoteFile("b.tar", "md5", hashlib.md5(CONTENTS).hexdigest())
DEAD = "http://127.0.0.1:1/"


def test_the_next_mirror_takes_over_and_a_failed_one_is_not_asked_again(mirror, tmp_path):
    (mirror.folder / "good").mkdir()
    (mirror.folder / "good" / "a.gz").write_bytes(PACKED)
    (mirror.folder / "good" / "b.tar").write_bytes(CONTENTS)
    folder, mirrors = tmp_path / "new", [DEAD, mirror.url + "bad/", mirror.url + "good/"]
    fetch([FILE, PLAIN], mirrors, folder, "advice")
    assert mirror.asked == ["/bad/a.gz", "/good/a.gz", "/good/b.tar"]
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {"a.gz": PACKED, "b.tar": CONTENTS}


@pytest.mark.parametrize(
    "answer, reason",
    [
        (None, "HTTP 404"),
        (b"<html>log in first</html>", f", expected {FILE.digest}"),
        (PACKED[:-1], "damaged gzip file"),
    ],
)
def test_a_mirror_that_fails_is_named_and_leaves_nothing(mirror, tmp_path, answer, reason):
    if answer is not None:
        (mirror.folder / "a.gz").write_bytes(answer)
    with refused(DataUnavailableError, f"{mirror.url}a.gz: ", reason, "; put it there yourself"):
        fetch([FILE], [mirror.url], tmp_path, "put it there yourself")
    assert mirror.asked == ["/a.gz"] and list(tmp_path.iterdir()) == []


def test_silence_is_given_up(tmp_path, monkeypatch):
    def silent(request, timeout):
        raise TimeoutError

    monkeypatch.setattr(module.urllib.request, "urlopen", silent)
    with refused(DataUnavailableError, "no answer within 10 s"):
        fetch([FILE], ["http://nowhere/"], tmp_path, "advice")
