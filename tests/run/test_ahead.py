"""The accountants' kernels are compiled by another process while a run trains."""

import subprocess
import sys

import pytest

from minidp.run import ahead
from tests.support.scripts import environment


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    found, right = [], subprocess.Popen
    monkeypatch.setattr(ahead, "is_compiled", lambda: False)

    def popen(*given, **named):
        found.append(right(*given, **named))
        return found[-1]

    monkeypatch.setattr(ahead.subprocess, "Popen", popen)
    return found


def test_its_end_waits_for_the_process_whatever_becomes_of_that(started, monkeypatch, capfd):
    monkeypatch.setattr(ahead, "CODE", "import time; time.sleep(.2); raise SystemExit('failed')")
    with ahead.compiled_ahead():
        (process,) = started
        assert process.poll() is None
    assert process.poll() == 1 and capfd.readouterr() == ("", "")


def test_a_run_that_ends_early_ends_the_process(started, monkeypatch):
    monkeypatch.setattr(ahead, "CODE", "import time; time.sleep(60)")
    with pytest.raises(KeyboardInterrupt), ahead.compiled_ahead():
        raise KeyboardInterrupt
    assert started[0].poll() is not None


def test_nothing_is_started_where_kernels_are_there_or_not_wanted(started, monkeypatch):
    with ahead.compiled_ahead(wanted=False):
        pass
    monkeypatch.setattr(ahead, "is_compiled", lambda: True)
    with ahead.compiled_ahead():
        pass
    monkeypatch.undo()
    monkeypatch.setattr(ahead, "is_compiled", lambda: False)
    monkeypatch.setattr(ahead.sys, "executable", "/no/such/program")
    with ahead.compiled_ahead():
        assert started == []


@pytest.mark.slow
def test_the_process_fills_numbas_folder(tmp_path):
    script = (
        "from minidp.run import ahead\n"
        "assert not ahead.is_compiled()\n"
        "with ahead.compiled_ahead(): pass\n"
        "assert ahead.is_compiled()\n"
    )
    given = environment() | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=given, check=True)
