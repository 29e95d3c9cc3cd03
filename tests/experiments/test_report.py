import json
import os
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from common import report

from minidp import blas, threads
from minidp.errors import DataError


@dataclass
class Bound:
    lower: float
    upper: float


class Relation(Enum):
    ADD_REMOVE = "add_remove"


def test_everything_a_result_holds_has_a_json_form():
    value = {"a": np.float32(0.5), "b": np.arange(3), "c": Bound(None, float("inf")), "d": (1, [True, None]),
             "e": Path("x") / "y", "f": Relation.ADD_REMOVE, 7: np.int64(3), "g": -np.inf, "h": np.array([np.inf])}
    assert report.jsonable(value) == {
        "a": 0.5, "b": [0, 1, 2], "c": {"lower": None, "upper": "inf"}, "d": [1, [True, None]],
        "e": os.path.join("x", "y"), "f": "add_remove", "7": 3, "g": "-inf", "h": ["inf"],
    }


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), np.array([[np.nan]])])
def test_nan_is_refused_and_its_place_named(nan):
    with pytest.raises(ValueError, match=r"result\.curve\[1\]"):
        report.jsonable({"curve": [0.0, nan]})


def test_objects_without_json_form_are_refused():
    with pytest.raises(TypeError, match=r"result\.rng: no JSON for Generator"):
        report.jsonable({"rng": np.random.default_rng(0)})


def test_write_json_is_whole_or_not_at_all(tmp_path):
    path = tmp_path / "result.json"
    report.write_json(path, {"epsilon": float("inf")})
    assert json.loads(path.read_text()) == {"epsilon": "inf"}
    with pytest.raises(ValueError, match=r"result\.epsilon is NaN"):
        report.write_json(path, {"epsilon": float("nan")})
    assert json.loads(path.read_text()) == {"epsilon": "inf"}
    assert os.listdir(tmp_path) == ["result.json"]


def test_versions_name_what_results_depend_on():
    found = report.versions()
    assert {"python", "numpy", "scipy", "numba", "minidp"} <= set(found)
    assert found["numpy"] == np.__version__
    assert found["threads"] == threads.limit() and found["openblas_kernels"] == blas.kernels()


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_commit(tmp_path):
    assert report.git_commit(tmp_path) is None
    assert report.git_commit(tmp_path / "missing") is None
    git(tmp_path, "init")
    (tmp_path / "inside").mkdir()
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "m")
    commit = report.git_commit(tmp_path)
    assert len(commit) == 40 and int(commit, 16)
    (tmp_path / "a").write_text("2")
    assert report.git_commit(tmp_path) == f"{commit}-dirty"
    assert report.git_commit(tmp_path / "inside") is None, "a repository around the checkout is not the checkout's"


def test_git_commit_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert report.git_commit() is None


@pytest.fixture
def expected(tmp_path):
    entries = [
        {"quantity": "test_accuracy", "value": 0.95, "tolerance": 0.01, "source": "Figure 3",
         "when": {"config.noise": "medium", "config.steps": None}},
        {"quantity": "test_accuracy", "value": 0.97, "tolerance": 0.01, "source": "Figure 3",
         "when": {"config.noise": "small"}},
        {"quantity": "epsilon.moments.upper", "value": 1.26, "tolerance": 0.005, "source": "Section 5.1"},
        {"quantity": "not.there", "value": 1, "tolerance": 1, "source": "nowhere"},
    ]
    path = tmp_path / "expected.json"
    path.write_text(json.dumps({"job": entries}))
    return path


def result(accuracy, epsilon, **config):
    return {"experiment": "job", "config": {"noise": "medium", "steps": None, **config},
            "test_accuracy": accuracy, "epsilon": {"moments": {"upper": epsilon}}}


@pytest.mark.parametrize("accuracy, epsilon, words", [
    (0.9432, 1.2586, ["agrees", "agrees"]),
    (0.9399, 1.2586, ["below", "agrees"]),
    (0.9601, 1.27, ["above", "above"]),
    (0.9432, "inf", ["agrees", "above"]),
])
def test_compare_says_whether_a_figure_is_reproduced(expected, capsys, accuracy, epsilon, words):
    verdicts = report.compare(result(accuracy, epsilon), expected)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == words
    assert [verdict.agrees for verdict in verdicts] == [word == "agrees" for word in words]
    assert "expected 0.95 +- 0.01 (Figure 3)" in lines[0]


def test_compare_leaves_out_entries_for_other_settings(expected):
    assert [v.expected for v in report.compare(result(0.5, 1.26, noise="large"), expected)] == [1.26]
    assert [v.expected for v in report.compare(result(0.5, 1.26, steps=3), expected)] == [1.26]
    assert report.compare({"experiment": "another", "config": {}}, expected) == []


def test_expected_json_is_well_formed():
    for entries in json.loads(report.EXPECTED.read_text()).values():
        for entry in entries:
            assert set(entry) - {"when", "side", "unit", "because"} == {"quantity", "value", "tolerance", "source", "sentence"}
            assert entry["tolerance"] >= 0 and entry["source"] and entry["sentence"]
            assert entry.get("side", "at least") in ("at least", "at most") and entry.get("unit", "%") == "%"


@pytest.mark.parametrize("side, value, word", [("at least", 0.99, "agrees"), ("at least", 0.93, "below"),
                                               ("at most", 0.2, "agrees"), ("at most", 0.97, "above")])
def test_a_side_takes_all_values_beyond(side, value, word):
    entry = {"quantity": "accuracy", "value": 0.95, "tolerance": 0.01, "side": side, "source": "a sentence"}
    found = report.verdict({"accuracy": value}, entry)
    assert found.word == word and f"expected {side} 0.95" in str(found)
    assert report.verdict({"loss": value}, entry) is None


@pytest.mark.parametrize("error, line", [
    (DataError("train-images: truncated\nat byte 16"), "error: train-images: truncated at byte 16"),
    (PermissionError(13, "Permission denied", "/runs/x"), "error: /runs/x: Permission denied"),
    (OSError(28, "No space left on device"), "error: No space left on device"),
    (OSError("odd"), "error: odd"),
])
def test_user_errors_are_one_line_and_exit_2(capsys, error, line):
    with pytest.raises(SystemExit) as exit:
        with report.user_errors():
            raise error
    assert exit.value.code == 2
    assert capsys.readouterr() == ("", line + "\n")


def test_real_path_errors_name_the_path(tmp_path, capsys):
    with pytest.raises(SystemExit):
        with report.user_errors():
            report.write_json(tmp_path / "none" / "result.json", {})
    assert str(tmp_path / "none") in capsys.readouterr().err


@pytest.mark.parametrize("error", [ZeroDivisionError, ValueError, TypeError])
def test_faults_of_the_program_keep_their_traceback(error):
    with pytest.raises(error):
        with report.user_errors():
            raise error


def test_interrupt_says_what_was_saved_and_exits_130(capsys):
    with pytest.raises(SystemExit) as exit:
        with report.user_errors() as note:
            note.saved = "step 400 is in runs/x; go on with --resume"
            raise KeyboardInterrupt
    assert exit.value.code == 130
    assert capsys.readouterr().err.strip() == "interrupted; step 400 is in runs/x; go on with --resume"


def test_user_errors_decorates_a_main_function(capsys):
    @report.user_errors()
    def main():
        raise DataError("no data")

    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err == "error: no data\n"


@pytest.mark.parametrize("error, lines", [("KeyboardInterrupt", ["interrupted"]),
                                          ("ValueError('fault')", ["Traceback (most recent call last):", "ValueError: fault"])])
def test_ctrl_c_while_libraries_load_shows_no_traceback(error, lines):
    code = f"import sys; sys.path.insert(0, {str(report.ROOT / 'experiments')!r}); import common; raise {error}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = done.stderr.strip().splitlines()
    assert done.returncode != 0 and [said[0], said[-1]] == [lines[0], lines[-1]]
    assert len(said) == 1 or error != "KeyboardInterrupt"
