"""Attacks on private training: right training stands, ten planted faults do not, and the program says both."""
import copy
import json
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import stats

from tools import audit_empirical
from tools.attacks import canaries, faults

def seen(seed, q=0.5, sigma=0.5, steps=30, **how):
    return canaries.watch(canaries.Made(), sigma, q, steps, seed, 10, 20, **how)


@pytest.mark.parametrize("how", [{}, {"batches": 5}, {"ranks": 3}, {"included": np.arange(200) % 2 == 0}])
def test_without_noise_a_canary_in_the_lot_scores_exactly_its_clipped_norm(how):
    """With C = 1 and gradients of size 10 each canary moves its own coordinate by 1, and no other's."""
    found = seen(1, sigma=0.0, **how)
    assert found.present.any() and not found.present.all()
    np.testing.assert_allclose(found.scores, found.present, atol=1e-5)
    np.testing.assert_allclose(found.last, found.present.sum(axis=0), atol=1e-3)


def test_an_example_of_two_tensors_scores_what_its_groups_allow():
    one = canaries.watch(canaries.Made(), 0.0, 0.5, 5, 1, 1, 50, bias=True)
    two = canaries.watch(canaries.Made(), 0.0, 0.5, 5, 1, 1, 50, bias=True, groups=canaries.per_tensor)
    np.testing.assert_allclose(one.scores, one.present, atol=1e-5)
    np.testing.assert_allclose(two.scores, np.sqrt(2) * two.present, atol=1e-5)


def test_every_rank_sees_the_release_of_one_process():
    np.testing.assert_allclose(seen(3, ranks=4).scores, seen(3).scores, atol=1e-5)


def test_every_step_tells_more_than_the_last_iterate():
    runs, _ = canaries.whole_runs(0.05, 2.0, 100, 600, 5, 0.5, 20, 20)
    every, last = (stats.mannwhitneyu(*canaries.worlds(runs, place)).statistic for place in (0, 1))
    assert every > 1.1 * last


def most(audits):
    """Flagged audits of right training that a level of 5% allows, but for one in a million."""
    return stats.binom.isf(1e-6, audits, faults.LEVEL)


@pytest.mark.parametrize("name", faults.FAULTS)
def test_every_planted_fault_is_flagged(name):
    assert faults.flagged_by(faults.FAULTS[name], 1)


def test_right_training_is_hardly_ever_flagged():
    assert sum(bool(faults.flagged_by(faults.Made(), 1000 * k)) for k in range(10)) <= most(10)


@pytest.mark.slow
def test_every_planted_fault_is_flagged_twenty_times_and_right_training_is_not():
    for made in faults.FAULTS.values():
        assert all(faults.flagged_by(made, 1000 * k) for k in range(20))
    assert sum(bool(faults.flagged_by(faults.Made(), 1000 * k)) for k in range(100)) <= 11


def test_it_attacks_reports_and_draws(tmp_path, capsys, drawn, monkeypatch):
    monkeypatch.setattr(audit_empirical, "SETTINGS", ((1.0, 10),))
    monkeypatch.setattr(audit_empirical.canaries, "attack_2016", lambda seed, **how: {
        "delta": 1e-5, "noise_multiplier": 1, "pca_noise_multiplier": 4, "tensors": 2, "q": 0.01, "lots": [1, 9], "printed": [1.0, 3.5],
        "lower": [2.0, 4.0], "certified": [[2.0, 3.0], [4.0, 5.0]]})
    file = tmp_path / "attacks.json"
    assert audit_empirical.main(["--smoke", "--seed", "1", "--json", str(file)]) == 1  # a few runs of the black box are not enough
    out, found = capsys.readouterr().out, json.loads(file.read_text())
    assert out.count("FAIL") == 1 and "FAIL black box" in out and found["in_words"] in out and found["failed"] == 1
    assert len(drawn) == 2 and {path.name for path in tmp_path.iterdir()} == {"attacks.json", "attacks.png", "attacks_2016.png"}
    assert found["seed"] == 1 and found["black_box"]["records"] == 100 and found["black_box"]["data"]["name"] == "strokes"
    assert {name for name, _ in audit_empirical.verdicts(found)} >= {text[5:] for text in out.splitlines() if text[:5] == "ok   "}
    for spoil in (lambda f: f["audits"]["noise halved"].update(flagged=0), lambda f: f["audits"]["right training"].update(flagged=99),
                  lambda f: f["attacks"][0]["certified"].__setitem__(1, 0.1), lambda f: f["ledger_2016"]["printed"].__setitem__(1, 4.5),
                  lambda f: f["attacks"][0]["bounds"]["one run, f-DP"].update(lower=0.1)):
        spoilt = copy.deepcopy(found)
        spoil(spoilt)
        assert sum(not right for _, right in audit_empirical.verdicts(spoilt)) > 1


def test_an_interrupt_keeps_what_was_done_and_the_same_command_goes_on(monkeypatch, tmp_path, capsys):
    asked, made = [], []

    @contextmanager
    def interrupted():
        yield lambda: len(made) in asked

    monkeypatch.setattr(audit_empirical, "stop_on_interrupt", interrupted)
    monkeypatch.setattr(audit_empirical, "units", lambda *_: {
        str(k): lambda seed, k=k: made.append(k) or seed for k in range(4)})
    seeds = []
    for stop in (1, 3):
        asked[:] = [stop]
        with pytest.raises(SystemExit, match="130"):
            audit_empirical.main(["--smoke", "--json", str(tmp_path / "found.json")])
        assert "the same command goes on" in capsys.readouterr().err
        before = json.loads((tmp_path / "found.partial.json").read_text())
        seeds.append(before["seed"])
        assert len(before["done"]) == len(made) == stop
    assert made == [0, 1, 2] and seeds[0] == seeds[1]
