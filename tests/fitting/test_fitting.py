"""One call from arrays to a private model: what it promises, discloses, refuses and writes."""

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import minidp
from minidp import nn
from minidp.errors import BudgetExceededError, CheckpointError, DivergedError, ParameterError
from minidp.host import memory
from minidp.privacy import Ledger
from minidp.privacy.accountants import make
from minidp.run.verify import verify
from tests.support.fitting import ROWS, X, fitted, problem

SIDES = (X[:, 0] > 0).astype(int)


def test_a_classifier_predicts_labels_and_says_what_it_cost(tmp_path):
    x, y = problem()
    model = fitted()
    assert model.score(x, y) > 0.75 and set(model.predict(x)) <= {"ant", "bee", "cow"}
    assert np.allclose(model.predict_proba(x).sum(axis=1), 1)
    assert 1.98 < model.epsilon.upper <= 2.0 and model.epsilon.lower <= model.epsilon.upper
    assert f"{model.epsilon:.3f}" == f"{float(model.epsilon):.3f}" and model.epsilon < 2.1
    said = (
        r"Epsilon is at most 1.99\d+ at delta 0.0001, for each row by itself; .* certified by pld."
    )
    assert re.fullmatch(said, str(model.epsilon))
    assert model.epsilon.upper == make("loss_distribution").epsilon(model.ledger, 1e-4).upper
    with pytest.raises(ParameterError, match="classification_report"):
        model.per_class(x, y)
    lines = repr(model).splitlines()
    assert lines[1].startswith("epsilon    ") and max(map(len, lines)) <= 80
    model.save(tmp_path / "m.npz")
    assert (minidp.load_model(tmp_path / "m.npz").predict(x) == model.predict(x)).all()


def test_the_report_is_the_folder_of_any_run(tmp_path, capsys):
    from minidp.__main__ import main

    folder = fitted().report(tmp_path / "mine")
    assert not (folder / "folder.key").exists()
    assert not verify(folder).failed and main(["verify", str(folder)]) == 0
    with pytest.raises(ParameterError, match="not empty"):
        fitted().report(folder)


def test_the_statement_says_what_was_told_and_what_was_chosen():
    text = fitted(group_size=4).statement
    for words in (
        "which classes there are: ant, bee, cow",
        f"the number of rows, {ROWS}",
        "by the rule of minidp.fitting.defaults",
        "A person with 4 rows is protected less: epsilon for these rows together is",
        "message for the data's owner",
        "one row of the training data",
    ):
        assert words in " ".join(text.split())
    text = fitted(classes=["ant", "bee", "cow"], dataset_size=ROWS, check=False, steps=7).statement
    for words in ("Revealed exactly", "A person with", "message for the data's owner"):
        assert words not in text
    for what in ("classes", "the number of rows"):
        line = f"- Taken to be public: {what}, as the caller gave them."
        assert line in text
    assert "by the caller" in text and "steps 7" in text


def test_delta_is_the_power_of_ten_at_or_below_a_tenth_of_a_row():
    for size in (ROWS, 10_000):
        assert fitted(delta=None, dataset_size=size).delta == 1e-5


def test_a_private_scaling_is_charged_in_the_same_ledger():
    x, y = problem()
    x = x * [1e-4, 1, 1e5, 1, 1, 30] + [0, 1e3, 0, 0, 0, 0]
    model = fitted(x, y, scale="private", epsilon=4.0)
    assert model.ledger.count_of("setup") == 5 and 3.9 < model.epsilon.upper <= 4.0
    plain = fitted(x, y, scale="unit-norm", epsilon=4.0)
    assert model.score(x, y) > plain.score(x, y) and model.score(x, y) > 0.7


def test_a_test_set_chooses_nothing():
    x, y = problem(5, 300)
    model, plain = (fitted(**more) for more in ({"test": (x, y)}, {}))
    assert model.result["test_accuracy"] == model.score(x, y)
    assert (model.predict_proba(x) == plain.predict_proba(x)).all()
    assert not verify(model.folder).failed


def test_fits_that_share_a_ledger_add_up(tmp_path, capsys):
    path = tmp_path / "shared.json"
    models = [fitted(ledger=path, quiet=False, seed=None) for _ in range(2)]
    total = Ledger.load(path)
    assert total.count_of("step") == sum(model.ledger.count_of("step") for model in models)
    said = re.findall(r"epsilon (\S+) at delta 0.0001 for all fits", capsys.readouterr().out)
    both = make("loss_distribution").epsilon(total, 1e-4).upper
    assert float(said[1]) == pytest.approx(both, rel=1e-3) and said[0] < said[1]


def test_a_fit_that_the_shared_ledger_refuses_leaves_its_folder_free(tmp_path):
    named = {"ledger": tmp_path / "all.json", "folder": tmp_path / "run"}
    with pytest.raises(BudgetExceededError, match="above ledger_limit=1"):
        fitted(**named, ledger_limit=1.0)
    assert not list((tmp_path / "run").iterdir()) and not (tmp_path / "all.json").exists()
    assert fitted(**named, ledger_limit=3.0, epsilon=1.0).epsilon.upper <= 1.0


def test_a_finished_run_is_not_charged_to_a_shared_ledger(tmp_path):
    fitted(folder=tmp_path / "run")
    with pytest.raises(
        CheckpointError, match="another configuration: shared_ledger was False and is True"
    ):
        fitted(folder=tmp_path / "run", ledger=tmp_path / "shared.json")


def test_files_of_ones_own_are_not_overwritten(tmp_path):
    (tmp_path / "model.npz").write_text("mine")
    with pytest.raises(ParameterError, match="holds model.npz, and no run"):
        fitted(folder=tmp_path)
    assert (tmp_path / "model.npz").read_text() == "mine"


def test_hidden_layers_images_and_networks_of_ones_own_are_trained():
    x, y = problem()
    model = fitted(x.reshape(ROWS, 2, 3, 1), y, hidden=16, epsilon=8.0)
    kinds = "unitnorm standardise unitnorm standardise flatten dense relu dense"
    assert " ".join(layer.kind for layer in model.network.layers) == kinds
    network = nn.Sequential([nn.Dense(6, 3, rng=np.random.default_rng(0))], (6,))
    before = network.params["dense1", "W"].copy()
    assert fitted(x, y, network=network).score(x, y) > 0.6
    assert (network.params["dense1", "W"] == before).all()


def test_lots_below_all_rows_are_paid_for(capsys):
    """The noisy mean is then drawn from one lot; its cost leaves the rest of the budget for the
    steps.
    """
    model = fitted(lot_size=100, steps=20, quiet=False, delta=0.01, scale="unit-norm")
    assert 1.98 < model.epsilon.upper <= 2.0 and model.ledger.count_of("setup") == 1
    assert "NOTICE: delta=0.01 is not below 1/1200" in capsys.readouterr().err
    assert "not below 1/1200" in model.statement


@pytest.mark.parametrize("hidden", [(), (8,)])
def test_float64_is_a_setting_that_the_files_tell(hidden, tmp_path):
    folder = tmp_path / "run"
    model = fitted(hidden=hidden, steps=3, dtype="float64", folder=folder, test=problem(seed=4))
    bits = json.loads((folder / "result.json").read_text())["row_bits"]
    assert bits["dtype"] == "float64" and bits["rows"] % 48 == 0
    assert all(array.dtype == "float64" for array in model.network.params.values())
    assert not verify(folder).failed


def test_float64_is_refused_for_a_network_of_float32():
    network = nn.Sequential([nn.Dense(6, 3)], (6,))
    with pytest.raises(ParameterError, match="a network of float64 parameters"):
        fitted(network=network, dtype="float64")


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
        fitted(y=SIDES, steps=5, epsilon=1e-3, learning_rate=2e37, ledger=path)
    assert Ledger.load(path).count_of("step") == 5


def resident():
    """Bytes of this process in memory that belong to no file."""
    (found,) = re.findall(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    return 1024 * int(found)


@pytest.mark.slow
def test_twenty_gigabytes_on_disk_train_in_one_of_memory(tmp_path, monkeypatch):
    """A sparse file of 20 GiB, its pages read as any others."""
    rows, seen = 20 * 2**30 // 3072, [resident()]
    images = np.memmap(tmp_path / "x.bin", "uint8", "w+", shape=(rows, 32, 32, 3))
    y = np.arange(rows, dtype="int8") % 3
    release = minidp.mechanism.Sanitizer.release

    def watched(*args):
        seen.append(resident())
        return release(*args)

    monkeypatch.setattr(minidp.mechanism.Sanitizer, "release", watched)
    more = {"classes": [0, 1, 2], "dataset_size": rows, "lot_size": 4000, "steps": 20}
    fitted(images, y, delta=1e-8, bounds=(0, 255), hidden=(256,), **more)
    assert len(seen) > 20 and max(seen) - seen[0] < 2**30
