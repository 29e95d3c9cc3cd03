"""A shared ledger: one lock for all names of the file, and refusals before anything is written."""

import json
import os
import signal

import numpy as np
import pytest

import minidp
from minidp.errors import ParameterError
from minidp.privacy import Filter, Gaussian, Ledger, MomentsAccountant
from minidp.run import shared_ledger as shared
from minidp.run.folder import CONFIG
from minidp.train import Trainer


@pytest.fixture
def charges():
    ledger = Ledger()
    ledger.append(Gaussian(4.0))
    return ledger


def test_a_file_with_hard_links_is_refused_and_stays_as_it_was(tmp_path, charges):
    path = tmp_path / "ledger.json"
    shared.charge_shared(path, charges)
    (tmp_path / "other.json").hardlink_to(path)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=r"2 names \(hard links\).*symbolic links"):
        shared.charge_shared(path, charges)
    assert path.read_bytes() == before and path.samefile(tmp_path / "other.json")


def test_a_link_to_the_ledger_of_a_run_is_refused(tmp_path, charges):
    (tmp_path / CONFIG).touch()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "shared.json"
    link.symlink_to(tmp_path / "ledger.json")
    with pytest.raises(ParameterError, match="is the folder of a run"):
        shared.charge_shared(link, charges)


@pytest.mark.parametrize("kind", ["circle", "long", "null"])
def test_a_name_that_no_file_can_have_is_refused_in_words(tmp_path, charges, kind):
    path = tmp_path / "a"
    if kind == "circle":
        path.symlink_to(tmp_path / "b")
        (tmp_path / "b").symlink_to(path)
    elif kind == "long":
        path = tmp_path / ("x" * 300)
    else:
        path = f"{tmp_path}/a\0b"
    with pytest.raises(ParameterError, match="ledger=.*name (a|another) file"):
        shared.charge_shared(path, charges)


def test_a_run_that_goes_on_is_refused_a_ledger_that_lacks_its_charges(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(200, 3))
    given = {"folder": tmp_path / "run", "epsilon": 1.0, "steps": 40, "quiet": True, "seed": 1}

    def interrupted(self, *lot, step=Trainer.step):
        step(self, *lot)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            minidp.fit(x, x[:, 0] > 0, ledger=tmp_path / "a", **given)
    minidp.fit(x, x[:, 1] > 0, ledger=tmp_path / "b", epsilon=0.1, steps=5, quiet=True)
    before = (tmp_path / "b").read_bytes()
    for other in ("b", "c"):
        with pytest.raises(ParameterError, match="this one lacks them"):
            minidp.fit(x, x[:, 0] > 0, ledger=tmp_path / other, **given)
    assert (tmp_path / "b").read_bytes() == before and not (tmp_path / "c").exists()
    model = minidp.fit(x, x[:, 0] > 0, ledger=tmp_path / "a", **given)
    assert Ledger.load(tmp_path / "a").count_of("step") == 40
    assert model.result["shared_ledger"] >= model.epsilon.lower


def test_a_ledger_of_an_older_format_goes_on_once_its_unit_is_named(tmp_path, charges):
    path, given = tmp_path / "ledger.json", {"epsilon": 1.0, "steps": 3, "quiet": True}
    charges.save(path)
    assert json.loads(path.read_text())["format"] == 2
    x, y = np.eye(40, 2), np.arange(40) % 2
    with pytest.raises(ParameterError, match="does not say whom its charges protect") as raised:
        minidp.fit(x, y, ledger=path, **given)
    exec(str(raised.value).split("once: ")[1], {"Ledger": Ledger, "path": path})
    model = minidp.fit(x, y, ledger=path, **given)
    assert Ledger.load(path).unit == "row" and model.result["shared_ledger"] > 0
    assert Ledger.load(path).items()[0] == charges.items()[0]


def test_what_a_killed_writer_left_beside_the_ledger_goes(tmp_path, charges):
    for name in (".ledger.json.abc.tmp", ".other.json.abc.tmp"):
        (tmp_path / name).touch()
    shared.charge_shared(tmp_path / "ledger.json", charges)
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {".other.json.abc.tmp", "ledger.json", "ledger.json.lock"}


def test_a_fit_whose_lock_was_deleted_charges_nothing(tmp_path, charges, monkeypatch):
    path = tmp_path / "ledger.json"

    def another(total, budget):
        (tmp_path / "ledger.json.lock").unlink()
        shared.charge_shared(path, charges)
        return 0.0

    monkeypatch.setattr(shared, "spent_of", another)
    budget = Filter(MomentsAccountant(), 9.0, 1e-5)
    with pytest.raises(ParameterError, match="was deleted while this fit held it"):
        shared.charge_shared(path, charges, budget, limit=5.0)
    assert Ledger.load(path).items() == charges.items()
