import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from minidp.files import atomic_write

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_exception_keeps_the_old_content_and_leaves_nothing_behind(tmp_path, error):
    path = tmp_path / "ledger.json"
    path.write_text("old")
    with pytest.raises(error):
        with atomic_write(path) as file:
            file.write("half")
            raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["ledger.json"]


def test_kill_keeps_the_old_content(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text("old")
    script = textwrap.dedent("""
        import os, signal, sys
        from minidp.files import atomic_write
        with atomic_write(sys.argv[1]) as file:
            file.write("half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = subprocess.run([sys.executable, "-c", script, str(path)], cwd=ROOT, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_permissions_are_those_of_the_file_replaced_or_of_a_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    with atomic_write(tmp_path / "new"):
        pass
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode
    plain.chmod(0o640)
    with atomic_write(plain):
        pass
    assert plain.stat().st_mode & 0o777 == 0o640


def test_symbolic_link_is_written_through(tmp_path):
    target = tmp_path / "target"
    target.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
