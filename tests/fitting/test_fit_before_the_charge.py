"""What `fit` cannot finish is refused in one line before the first charge; odd forms of numbers and
labels are taken.
"""

from fractions import Fraction

import numpy as np
import pytest

from minidp import nn
from minidp.errors import DivergedError, ParameterError
from minidp.host import memory
from minidp.privacy import Ledger
from minidp.run.verify import verify
from tests.support.fitting import X, fitted

SIDES = (X[:, 0] > 0).astype(int)


def test_numbers_of_any_kind_are_taken_and_written_down(tmp_path):
    named = {"steps": np.int64(5), "epsilon": Fraction(2), "delta": Fraction(1, 10_000)}
    named |= {"clip_norm": Fraction(1, 4), "bounds": (Fraction(-4), 4)}
    model = fitted(y=SIDES, **named, folder=tmp_path / "run")
    assert model.result["config"]["bounds"] == [-4, 4] and not verify(tmp_path / "run").failed


def test_layers_that_memory_cannot_hold_are_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(memory, "physical", lambda: 2**33)
    monkeypatch.setattr(nn, "Dense", None)
    with pytest.raises(
        ParameterError, match=r"take 7,000,000,002 weights and about 3,278 GiB, .* has 8 GiB"
    ):
        fitted(X[:, :4], SIDES, hidden=10**9)


def test_labels_of_bytes_are_text():
    labels = np.array([b"no", b"yes"])[SIDES]
    model = fitted(y=labels, steps=50)
    assert model.classes.tolist() == ["no", "yes"] and model.score(X, labels) > 0.8
    assert model.score(X, labels) == model.score(X, labels.astype(str))


def test_a_fit_that_overflows_names_the_shared_ledger_that_holds_its_charge(tmp_path):
    path = tmp_path / "all.json"
    with pytest.raises(
        DivergedError, match=r"no model: after . lots .*all.json holds the charge of all 5"
    ):
        fitted(y=SIDES, steps=5, epsilon=1e-3, learning_rate=2e38, ledger=path)
    assert Ledger.load(path).count_of("step") == 5
