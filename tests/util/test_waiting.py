"""Lines that say what a long wait is for."""

import threading

from minidp.util import waiting


def test_a_wait_is_told_at_once_and_again_until_it_ends(monkeypatch):
    lines, thrice, threads = [], threading.Event(), threading.active_count()

    def hear(line):
        lines.append(line)
        if len(lines) == 3:
            thrice.set()

    monkeypatch.setattr(waiting, "say", hear)
    monkeypatch.setattr(waiting, "EVERY", 1e-3)
    with waiting.waiting(lambda: f"{len(lines)} times"):
        assert lines[0] == "0 times" and thrice.wait(60)
    assert lines[1:3] == ["1 times", "2 times"] and threading.active_count() == threads
