"""expected.json judges the runs that it speaks of, and no other; a misspelt path in it fails."""
import json
import subprocess
import sys
from pathlib import Path

import pytest
from common import verdicts

from minidp.errors import MinidpError

RESULTS = verdicts.EXPECTED.parent / "results"
ENTRIES = [(experiment, entry) for experiment, entries in json.loads(verdicts.EXPECTED.read_text()).items()
           for entry in entries]


@pytest.fixture
def expected(tmp_path):
    entries = [
        {"quantity": "test_accuracy", "value": 0.95, "tolerance": 0.01, "source": "Figure 3",
         "when": {"config.noise": "medium", "config.steps": None}},
        {"quantity": "test_accuracy", "value": 0.97, "tolerance": 0.01, "source": "Figure 3",
         "when": {"config.noise": ["small", "tiny"]}},
        {"quantity": "epsilon.moments.upper", "value": 1.26, "tolerance": 0.005, "source": "Section 5.1", "when": {}},
    ]
    path = tmp_path / "expected.json"
    path.write_text(json.dumps({"job": entries}))
    return path


def result(accuracy, epsilon, **config):
    return {"experiment": "job", "config": {"noise": "medium", "steps": None, **config},
            "test_accuracy": accuracy, "epsilon": {"moments": {"upper": epsilon}}}


@pytest.fixture(scope="module")
def committed():
    found = [json.loads(path.read_text()) for path in RESULTS.rglob("*.json")]
    return [one for one in found if isinstance(one, dict)]


@pytest.fixture
def main_job():
    """A function that gives the committed main job at epsilon 2 with other values at some dotted paths."""

    def changed(**values):
        data = json.loads((RESULTS / "mnist_pca-medium-seed1.json").read_text())
        for path, value in values.items():
            *where, last = path.split("__")
            inner = verdicts.look_up(data, ".".join(where)) if where else data
            inner[last] = value
        return data

    return changed


@pytest.mark.parametrize("accuracy, epsilon, words", [
    (0.9432, 1.2586, ["agrees", "agrees"]), (0.9399, 1.2586, ["below", "agrees"]), (0.9601, 1.27, ["above", "above"]),
    (0.9432, "inf", ["agrees", "above"]), (None, 1.26, ["agrees"]),
])
def test_compare_says_whether_a_figure_is_reproduced(expected, capsys, accuracy, epsilon, words):
    found = verdicts.compare(result(accuracy, epsilon), expected)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == words
    assert [verdict.agrees for verdict in found] == [word == "agrees" for word in words]


@pytest.mark.parametrize("config, judged", [({"noise": "large"}, [1.26]), ({"steps": 3}, [1.26]),
                                            ({"noise": "tiny"}, [0.97, 1.26])])
def test_compare_leaves_out_entries_for_other_settings(expected, config, judged):
    assert [one.expected for one in verdicts.compare(result(0.5, 1.26, **config), expected)] == judged
    assert verdicts.compare({"experiment": "another", "config": {}}, expected) == []


def test_a_quantity_that_the_result_lacks_is_an_error(expected):
    with pytest.raises(MinidpError, match="epsilon.moments.upper is not in the result of job"):
        verdicts.compare({**result(0.95, 1), "epsilon": {}}, expected)


@pytest.mark.parametrize("changes", [
    {"config__target_epsilon": 6.0}, {"delta": 1e-3}, {"accountant": "renyi"}, {"sampler": "ShuffleSampler"},
    {"settings__clip_groups__0__noise_multiplier": 3.0}, {"settings__clip_groups__1__noise_multiplier": 3.0},
    {"settings__pca_noise_multiplier": 16.0}, {"settings__pca_noise_multiplier": None},
    {"settings__sampling_probability": 0.02}, {"config__steps": 300}, {"config__epochs": 5}])
def test_a_run_at_other_settings_than_the_papers_is_not_judged(main_job, changes):
    assert len(verdicts.compare(main_job())) == len(verdicts.compare(main_job(config__target_epsilon=2.0))) == 1
    assert verdicts.compare(main_job(**changes)) == []


@pytest.mark.parametrize("changes, judged", [({}, 1), ({"epochs": None}, 1), ({"epochs": 1.0}, 0), ({"steps": 10}, 0),
                                             ({"smoke": True}, 0)])
def test_a_shorter_baseline_is_not_judged(changes, judged, committed):
    (baseline,) = [one for one in committed if one.get("experiment") == "cifar_transfer" and one.get("config", {}).get("baseline")]
    assert len(verdicts.compare({**baseline, "config": {**baseline["config"], **changes}})) == judged


@pytest.mark.parametrize("experiment, entry", ENTRIES, ids=[f"{name}: {entry['sentence']}" for name, entry in ENTRIES])
def test_every_entry_is_well_formed_and_judges_a_committed_result(experiment, entry, committed):
    assert set(entry) - {"side", "unit", "because"} == {"quantity", "value", "tolerance", "source", "sentence", "when"}
    assert entry["tolerance"] >= 0 and entry["source"] and entry["sentence"]
    assert entry.get("side", "at least") in ("at least", "at most") and entry.get("unit", "%") == "%"
    assert any(verdicts.verdict(one, entry) for one in committed if one.get("experiment") == experiment)


def test_ctrl_c_while_libraries_load_shows_no_traceback():
    folder = str(Path(verdicts.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {folder!r}); import common; raise KeyboardInterrupt"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr == "interrupted\n"
