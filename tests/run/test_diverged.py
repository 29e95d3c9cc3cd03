"""Weights that overflow: refused before the charge where public numbers show it, else one clear end
of the run.
"""

import re

import numpy as np
import pytest

import minidp
from minidp import nn
from minidp.errors import DivergedError, ParameterError
from minidp.mechanism.schedule import LinearDecay
from minidp.privacy import Ledger, MomentsAccountant
from minidp.run import Model
from minidp.run.checkpoint import load_arrays
from minidp.train import SGD
from minidp.util.text import upper_text
from tests.support.running import make_arrays, make_run

FAR = {"optimizer": SGD(1e37), "sigma": 1000.0}  # noise of 1e37 x 1000 / 12 on every weight


@pytest.mark.parametrize(
    "named",
    [
        {"optimizer": SGD(1e27), "clip_norm": 1e12},
        {"optimizer": SGD(LinearDecay(1e300, 0.1, steps=2))},
    ],
    ids=str,
)
def test_steps_that_leave_float32_are_refused_and_nothing_is_written(named, tmp_path):
    with pytest.raises(ParameterError, match=r"learning_rate=.* smaller learning rate"):
        make_run(tmp_path / "run", **named)
    assert not (tmp_path / "run").exists()


def test_a_run_that_overflows_says_what_was_charged_and_writes_no_model(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(DivergedError) as caught:
        make_run(folder, 1, **FAR).train(*make_arrays())
    ledger = Ledger.load(folder / "ledger.json")
    said = re.match(
        r"no model: after (\d+) lots .*; (\d+) lots stay charged .* epsilon (\S+) at",
        str(caught.value),
    )
    assert said and "\n" not in str(caught.value)
    assert int(said[1]) <= int(said[2]) == ledger.count_of("step")
    assert said[3] == upper_text(MomentsAccountant().epsilon(ledger, 1e-5).upper)
    # all finite, so that verify can read the folder
    load_arrays(folder / "checkpoint.npz", "checkpoint")
    assert not (folder / "model.npz").exists() and not (folder / "result.json").exists()


def test_a_model_whose_outputs_on_public_rows_overflow_is_none(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    given = {"hidden": (16,), "steps": 30, "quiet": True, "seed": 1, "ledger": tmp_path / "all"}
    with pytest.raises(DivergedError, match="30 lots stay charged"):
        minidp.fit(x, x[:, 0] > 0, epsilon=2, learning_rate=1e30, **given)
    assert Ledger.load(tmp_path / "all").count_of("step") == 30


def test_finite_rows_without_a_finite_output_are_counted():
    model = Model(nn.Sequential([nn.Dense(2, 2, rng=np.random.default_rng(0))], (2,)), [0, 1])
    model.network.params["dense1", "W"][...] = 1e3
    with pytest.warns(UserWarning, match="^1 of 3 rows of finite numbers get no finite output"):
        model.predict([[1, 1], [1e306, 1e306], [0, 0]])
