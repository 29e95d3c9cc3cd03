"""How much is worked on at once."""
import pytest

from minidp.host import memory


@pytest.mark.parametrize("answers, bytes_", [([2**24], 2**24), ([2**20], 2**23), ([-1], 2**25), ([], 2**25)])
def test_the_size_of_the_cache_is_what_the_system_tells_within_reason(answers, bytes_, monkeypatch):
    monkeypatch.setattr(memory.os, "sysconf", lambda name: answers.pop() if answers else int("unknown name"))
    assert memory._last_cache() == bytes_
