import json
import subprocess
import sys

import pytest
from common import report


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


@pytest.mark.parametrize("error, lines", [("KeyboardInterrupt", ["interrupted"]),
                                          ("ValueError('fault')", ["Traceback (most recent call last):", "ValueError: fault"])])
def test_ctrl_c_while_libraries_load_shows_no_traceback(error, lines):
    code = f"import sys; sys.path.insert(0, {str(report.ROOT / 'experiments')!r}); import common; raise {error}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = done.stderr.strip().splitlines()
    assert done.returncode != 0 and [said[0], said[-1]] == [lines[0], lines[-1]]
    assert len(said) == 1 or error != "KeyboardInterrupt"
