"""The search that chose minidp.defaults: it runs, it reads drawn data only, and what it found is what the defaults say."""
import json
import math
from pathlib import Path

import own_data_defaults
import pytest

from minidp.defaults import AVERAGE, MEAN_SHARE, ROW_NORM, STEPS, choose, mu_of

RESULT = Path(own_data_defaults.__file__).parent / "results" / "own_data_defaults.json"


@pytest.fixture(scope="module")
def found():
    return json.loads(RESULT.read_text())["regrets"]


def test_smoke_writes_every_setting_with_its_scores(tmp_path, capsys):
    own_data_defaults.search(own_data_defaults.Config(json=str(tmp_path / "found.json"), smoke=True))
    record = json.loads((tmp_path / "found.json").read_text())
    assert [one["problem"] for one in record["problems"]] == ["blobs 455 30 2", "regression 2000 0"]
    for one in record["problems"]:
        assert one["seeds"] == 1 and len(one["scores"]) == 3
        assert all(-1 <= score <= 1 for each in one["scores"] for row in each["by s and average"] for score in row)
    assert "k mu N" in capsys.readouterr().out


def test_the_travel_in_proportion_to_mu_n_has_the_smallest_regret(found):
    mean = {row["rule"]: row["mean"] for row in found["classification"]["rules"]}
    assert min(mean, key=mean.get) == "k mu N"


def test_the_defaults_are_the_settings_compared(found):
    setting = found["classification"]["settings"][0]
    choice = choose(1000, 1.0, 1e-5, 650, row_norm=ROW_NORM)
    base = setting["setting"]
    assert base["steps"] == STEPS == choice.steps and base["rows"] == MEAN_SHARE and base["bias"] == pytest.approx(1 / ROW_NORM)
    assert f"decay {AVERAGE:g}" == own_data_defaults.AVERAGED and base["clip_norm"] == pytest.approx(choice.clip_norm / ROW_NORM)
    # for rows of norm G the noise on a weight is s / G
    noise = choice.learning_rate * choice.clip_norm * choice.steps / (mu_of(1.0, 1e-5) * 1000)
    assert noise * ROW_NORM == pytest.approx(setting["s"], rel=1e-9)


def test_no_single_change_of_a_setting_gains_half_a_point(found):
    for kind, part in found.items():
        for row in part["settings"]:
            assert row["mean"] > row["mean of the first on these"] - 0.005 and math.isfinite(row["worst"]), (kind, row)
