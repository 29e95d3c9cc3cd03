"""How much is worked on at once."""
import pytest

from minidp.host import memory


@pytest.mark.parametrize("told, bytes_", [(16 * 2**20, 16 * 2**20), (2**20, 8 * 2**20), (2**30, 32 * 2**20),
                                          (0, 32 * 2**20), (-1, 32 * 2**20), (ValueError, 32 * 2**20)])
def test_the_size_of_the_cache_is_what_the_system_tells_within_reason(told, bytes_, monkeypatch):
    def sysconf(name):
        if told is ValueError:
            raise ValueError("unrecognized configuration name")
        return told

    monkeypatch.setattr(memory.os, "sysconf", sysconf)
    assert memory._last_cache() == bytes_
