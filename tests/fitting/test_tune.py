"""A search that pays for itself: its coins, its number of runs, what it charges and hides."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import minidp
from minidp.errors import BudgetExceededError, ParameterError
from minidp.fitting import tune as tune_module
from minidp.fitting.tune import HELD_OUT, held_out, number_of_runs
from minidp.privacy import Ledger, LossDistributionAccountant, RandomlyStopped, RenyiAccountant
from minidp.run.tuning import TUNING
from minidp.run.verify import verify
from minidp.streams import Streams
from minidp.train.metrics import right_answers
from tests.support.scripts import environment

from .test_fitting import problem

CANDIDATES = [{"learning_rate": 1.0}, {"hidden": [4]}, {"steps": 20}]


def tuned(x=None, y=None, candidates=CANDIDATES, **named):
    given = problem()
    named = {"epsilon": 2.0, "delta": 1e-4, "seed": 1, "quiet": True} | named
    x, y = given[0] if x is None else x, given[1] if y is None else y
    return minidp.tune(x, y, candidates, **named)


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"runs": 2.5},
        {"runs": 3, "law": "poisson", "arithmetic": "exact"},
        {"validation": problem(4, 300)},
    ],
    ids=lambda named: " ".join(named) or "each once",
)
def test_the_whole_search_is_one_charge_and_verify_confirms_its_files(tmp_path, named):
    model = tuned(folder=tmp_path / "a", **named)
    ((event, count, purpose),) = model.ledger.entries()
    assert (count, purpose) == (1, TUNING) and model.epsilon.upper <= 2
    assert model.score(*problem(5)) > 0.6
    report = verify(tmp_path / "a")
    assert not report.failed, report.failed
    assert "The search for this model is covered" in model.statement
    if "runs" in named:
        assert model.epsilon.upper == RenyiAccountant().epsilon(model.ledger, 1e-4).upper > 1.95
    if not named:
        assert model.epsilon.upper == LossDistributionAccountant().epsilon(model.ledger, 1e-4).upper
        assert model.epsilon.upper > 1.95


def test_an_edit_of_the_search_is_found(tmp_path):
    tuned(folder=tmp_path)
    before = json.loads((tmp_path / "result.json").read_text())
    for edit in (
        {"released": 1 - before["search"]["released"] % 2},
        {"runs": 4.0, "law": "poisson"},
    ):
        result = {**before, "search": {**before["search"], **edit}}
        (tmp_path / "result.json").write_text(json.dumps(result, indent=2) + "\n")
        found = [each for each in verify(tmp_path).failed if "ledger charge" in each.question]
        assert found, edit


@pytest.mark.parametrize("law", ["geometric", "poisson"])
@pytest.mark.parametrize("mean", [1.5, 6, 40])
def test_the_number_of_runs_has_its_law(law, mean):
    streams, times = Streams(7), 4000
    found = Counter(number_of_runs(mean, law, streams.sampling(i)) for i in range(times))
    exact = stats.geom(1 / mean) if law == "geometric" else stats.poisson(mean)
    last = int(exact.ppf(0.995))
    kept = [k for k in range(last) if times * exact.pmf(k) > 5]
    seen = [found[k] for k in kept]
    expected = [times * exact.pmf(k) for k in kept]
    chi = stats.chisquare([*seen, times - sum(seen)], [*expected, times - sum(expected)])
    assert chi.pvalue > 1e-3


def test_it_is_drawn_before_anything_else_and_from_the_systems_entropy(monkeypatch):
    """Even before x is looked at."""
    drawn = []

    def spy(runs, law, draws):
        drawn.append(draws._key.seed)
        return number_of_runs(runs, law, draws)

    monkeypatch.setattr(tune_module, "number_of_runs", spy)
    for seed in (None, 3):
        with pytest.raises(ParameterError):
            tuned(object(), runs=3, seed=seed)
    assert drawn == [None, 3]
    keys = {Streams().sampling("runs").random().item() for _ in range(20)}
    assert len(keys) == 20


def each_by_itself(choose):
    """Whether one more row moves no other from side to side, and the number held out varies as that
    of coins does.
    """
    stays = all(
        (choose(Streams(seed), 500) == choose(Streams(seed), 501)[:500]).all() for seed in range(5)
    )
    sizes = [choose(Streams(seed), 500).sum() for seed in range(60)]
    return stays and 0.5 < np.var(sizes) / (500 * HELD_OUT * (1 - HELD_OUT)) < 2


def test_rows_are_held_out_by_coins_and_a_cut_of_a_permutation_is_found():
    def cut(streams, units):
        held = np.zeros(units, dtype=bool)
        held[streams.sampling("held out").permutation(units)[: int(HELD_OUT * units)]] = True
        return held

    assert each_by_itself(held_out)
    assert not each_by_itself(cut)


def test_persons_are_held_out_whole_and_count_once():
    x, y = problem(rows=900)
    person = np.repeat(np.arange(300), 3)
    data = {}
    init = tune_module._Search.__init__

    def spy(self, *given):
        init(self, *given)
        data["held"], data["train"] = self.held, self.data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune_module._Search, "__init__", spy)
        tuned(x, y, person=person, rows_per_person=2, dataset_size=300)
    held, trained = (data[side].inputs.source.rows for side in ("held", "train"))
    assert not set(person[held]) & set(person[trained])
    assert len(held) + len(trained) == 900
    assert (data["held"].size, data["train"].size) == (60, 240)


def test_answers_are_worth_at_most_one():
    class Model:
        def predict(self, x):
            return x

    z = np.array([[0.5], [-9.0], [np.nan], [1.0]])
    found = right_answers(Model(), z, np.array([0.5, 1.0, 0.0, -1.0]))
    assert found.tolist() == [1.0, 0.0, 0.0, 0.0]
    labels = right_answers(
        Model(), np.array([[1.0, 2.0], [3.0, 2.0], [np.nan, 0]]), np.ones(3, int)
    )
    assert labels.tolist() == [1.0, 0.0, 0.0]


def test_no_run_leaves_the_network_untrained_and_the_charge(tmp_path, monkeypatch):
    monkeypatch.setattr(tune_module, "number_of_runs", lambda *given: 0)
    model = tuned(runs=2, law="poisson", folder=tmp_path)
    assert model.result["steps"] == 0 and model.epsilon.upper > 1.9
    assert "no run was drawn" in model.statement
    assert not verify(tmp_path).failed
    assert all(not value.any() for value in model.network.params.values())


def test_a_folder_with_a_charge_is_refused_before_any_word_of_a_charge(tmp_path, capsys):
    done, new = tmp_path / "done", tmp_path / "new"
    tuned(folder=done)
    charged = (done / "ledger.json").read_bytes()
    with pytest.raises(ParameterError, match="does not resume.*nothing was charged now"):
        tuned(folder=done, quiet=False)
    assert (done / "ledger.json").read_bytes() == charged
    with pytest.raises(BudgetExceededError, match="nothing was charged"):
        tuned(folder=new, ledger=tmp_path / "all", ledger_limit=1.0, quiet=False)
    assert not capsys.readouterr().out and not list(new.iterdir())


@pytest.mark.parametrize(
    "files, where",
    [
        ({"folder": "a", "ledger": "s"}, "in s and a"),
        ({}, ", and no file says so"),
    ],
)
def test_an_interrupted_search_says_where_its_charge_stays(tmp_path, monkeypatch, files, where):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tune_module._OneRun, "train_in_memory", lambda run: None)
    with pytest.raises(KeyboardInterrupt, match=f"epsilon 2 stays charged ?{where}; a s"):
        tuned(**files)
    assert all(Ledger.load(name) for name in ("s", "a/ledger.json") if name[0] in files.values())


def test_the_statement_names_the_callers_seed():
    assert "(seed 5)" in tuned(candidates=[{"steps": 2}], seed=5).statement


def test_searches_and_fits_share_a_ledger(tmp_path, capsys):
    x, y = problem()
    shared = tmp_path / "shared.json"
    tuned(runs=2, ledger=shared)
    tuned(runs=2, ledger=shared)
    minidp.fit(x, y, epsilon=1.0, delta=1e-4, ledger=shared)
    assert "epsilon" in capsys.readouterr().out
    assert Ledger.load(shared).count_of(TUNING) == 2


@pytest.mark.parametrize(
    "named, words",
    [
        ({"candidates": []}, "a list with at least one candidate"),
        ({"candidates": [{"epsilon": 3}]}, "candidate 0: expected a dict of hidden.*'epsilon'"),
        (
            {"x": {"a": np.ones(3)}, "schema": {"a": {"type": "number", "low": 0, "high": 1}}}
            | {"y": [0, 1, 0], "candidates": [{}, {"scale": "none"}]},
            "candidate 1: expected schema= or scale=",
        ),
        ({"candidates": [{}, {"lot_size": 9999}]}, "candidate 1: expected lot_size"),
        ({"candidates": [{}, {"steps": -1}]}, "candidate 1: expected steps"),
        ({"runs": 0.5}, "runs"),
        ({"runs": 1}, "compares none; without runs each candidate is trained once"),
        ({"law": "binomial"}, "law"),
        ({"epsilon": math.inf}, "epsilon"),
    ],
)
def test_what_is_refused(named, words):
    with pytest.raises(ParameterError, match=words):
        tuned(**named)


KILLED = """
import minidp
from tests.fitting.test_fitting import problem
minidp.tune(*problem(), [{"learning_rate": 1.0}, {"hidden": [4]}], epsilon=2.0, delta=1e-4,
            runs=4000, folder="mine", ledger="shared.json", quiet=True)
"""
PUBLIC = {"candidates", "runs", "law", "examples", "held_out"}
PUBLIC |= {"score_noise_multiplier", "events", "score_event"}
WRITTEN = {"mine/config.json", "mine/ledger.json", "shared.json", "shared.json.lock"}


@pytest.mark.slow
@pytest.mark.parametrize("moment", np.random.default_rng(33).uniform(0, 4, 10))
def test_killed_at_any_moment_it_has_paid_and_left_nothing_else(tmp_path, moment):
    """Public facts and the charge are on disk, and no weights, score or number of runs."""
    (tmp_path / "tmp").mkdir()
    named = {**environment(), "TMPDIR": str(tmp_path / "tmp")}
    killed = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path, env=named)
    ledger, began = tmp_path / "mine" / "ledger.json", time.monotonic()
    while not ledger.exists() and time.monotonic() < began + 120:
        time.sleep(0.01)
    time.sleep(moment)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    ((event, count),) = Ledger.load(ledger).items()
    assert isinstance(event, RandomlyStopped) and count == 1
    assert Ledger.load(tmp_path / "shared.json") == Ledger.load(ledger)
    (finding,) = verify(tmp_path / "mine").findings
    assert not finding.passed and "by renyi" in finding.answer
    files = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()}
    # which may have been written anew at that moment
    assert {name for name in files if not name.startswith("mine/.config.json.")} == WRITTEN
    config = json.loads((tmp_path / "mine" / "config.json").read_text())
    assert set(config) == {"experiment", "tuning", "settings", "charged"}
    assert set(config["tuning"]) == PUBLIC
