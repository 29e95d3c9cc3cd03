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


@pytest.mark.parametrize("changes", [
    {"config__target_epsilon": 6.0}, {"delta": 1e-3}, {"accountant": "renyi"}, {"sampler": "ShuffleSampler"},
    {"settings__clip_groups__1__noise_multiplier": 3.0}, {"settings__pca_noise_multiplier": None},
    {"settings__sampling_probability": 0.02}, {"config__steps": 300}, {"config__epochs": 5}])
def test_a_run_at_other_settings_than_the_papers_is_not_judged(main_job, changes):
    assert len(verdicts.compare(main_job())) == len(verdicts.compare(main_job(config__target_epsilon=2.0))) == 1
    assert verdicts.compare(main_job(**changes)) == []


def test_a_quantity_that_the_result_lacks_is_an_error(main_job):
    data = main_job()
    del data["test_accuracy"]
    with pytest.raises(MinidpError, match="test_accuracy is not in the result of mnist_pca"):
        verdicts.compare(data)


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
