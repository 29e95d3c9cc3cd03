"""Attacks on private training: no bound is above what is certified, and the program says so."""

import json

import numpy as np
import pytest

from tools import audit_empirical
from tools.attacks import canaries

ALL = {"inputs": 10, "outputs": 20}
ATTACK_2016 = {
    "delta": 1e-5,
    "noise_multiplier": 1,
    "pca_noise_multiplier": 4,
    "tensors": 2,
    "q": 0.01,
    "lots": [1, 9],
    "printed": [1.0, 3.5],
    "lower": [2.0, 4.0],
    "certified": [[2.0, 3.0], [4.0, 5.0]],
}
TWO = {"inputs": 1, "outputs": 50, "bias": True}  # each canary moves W and b


@pytest.mark.parametrize(
    "how, score",
    [
        (ALL, 1),
        ({**ALL, "included": np.arange(200) % 2 == 0}, 1),
        (TWO, 1),
        ({**TWO, "groups": canaries.per_tensor}, 2**0.5),
    ],
)
def test_without_noise_a_canary_in_the_lot_scores_exactly_its_clipped_norm(how, score):
    """With C = 1 and gradients of size 10 each canary moves its own coordinate by 1, and no
    other's.
    """
    scores, present, _ = canaries.watch(0.0, 0.5, 30, 1, **how)
    assert present.any() and not present.all()
    np.testing.assert_allclose(scores, score * present, atol=1e-5)


def test_it_attacks_reports_and_draws(tmp_path, capsys, drawn, monkeypatch):
    monkeypatch.setattr(audit_empirical, "SETTINGS", ((1.0, 10),))
    monkeypatch.setattr(audit_empirical.canaries, "attack_2016", lambda seed, **how: ATTACK_2016)
    file = tmp_path / "attacks.json"
    assert audit_empirical.main(["--smoke", "--seed", "1", "--json", str(file)]) == 0
    out, found = capsys.readouterr().out, json.loads(file.read_text())
    assert "FAIL" not in out and found["in_words"] in out and found["failed"] == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["attacks.json", "attacks.png", "attacks_2016.png"] and len(drawn) == 2
    assert found["seed"] == 1
    attack = found["attacks"][0]
    for place, key, value in (
        (attack["certified"], 1, 0.1),
        (attack["bounds"]["one run, f-DP"], "beyond_doubt", 4.5),
        (found["ledger_2016"]["printed"], 1, 4.5),
    ):
        right, place[key] = place[key], value
        assert not all(right for _, right in audit_empirical.verdicts(found))
        place[key] = right
