"""Files are whole or not written, and JSON of results has strict types."""

import math
import os
import signal
import textwrap
from pathlib import Path

import numpy as np
import pytest

from minidp.errors import CheckpointError, DataError
from minidp.privacy import Bound, NeighbouringRelation
from minidp.util.atomic import atomic_write
from minidp.util.files import jsonable, read_json
from tests.support.scripts import python


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
        from minidp.util.atomic import atomic_write
        with atomic_write(sys.argv[1]) as file:
            file.write("half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = python("-c", script, path, timeout=60)
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


def test_everything_a_result_holds_has_a_json_form():
    value = {
        "a": np.float32(0.5),
        "b": np.arange(3),
        "c": Bound(None, math.inf, math.inf),
        "d": (1, [True, None]),
        "e": Path("x") / "y",
        "f": NeighbouringRelation.ADD_REMOVE,
        7: np.int64(3),
        "h": np.array([-np.inf]),
    }
    assert jsonable(value) == {
        "a": 0.5,
        "b": [0, 1, 2],
        "c": {"lower": None, "estimate": "inf", "upper": "inf"},
        "d": [1, [True, None]],
        "e": os.path.join("x", "y"),
        "f": "add_remove",
        "7": 3,
        "h": ["-inf"],
    }


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), np.array([[np.nan]])])
def test_nan_is_refused_and_its_place_named(nan):
    with pytest.raises(ValueError, match=r"result\.curve\[1\]"):
        jsonable({"curve": [0.0, nan]})


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000, "\xff"], ids=range(4))
def test_what_is_not_a_json_object_is_refused_with_the_file_s_name(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(CheckpointError, match="config.json: damaged"):
        read_json(path, CheckpointError)
    with pytest.raises(DataError, match="absent.json: no such file"):
        read_json(tmp_path / "absent.json")
