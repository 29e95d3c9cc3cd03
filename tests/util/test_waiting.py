"""Lines that say what a long wait is for."""

import threading

from minidp.host import jit
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


def test_compiling_is_told_once_though_stderr_is_no_terminal_and_not_when_quiet(capsys):
    with waiting.quietly():
        jit._Once().on_start(None)
    with waiting.quietly(False):
        once = jit._Once()
        once.on_start(None)
        once.on_start(None)
    assert capsys.readouterr().err == "compiling kernels, once per machine: up to a minute\n"
