"""A shared ledger: one lock for all names of the file, and refusals before anything is written."""

import json
import os
import pkgutil
import shutil
import signal

import numpy as np
import pytest

import minidp
from minidp.errors import CheckpointError, ParameterError
from minidp.privacy import Filter, Gaussian, Ledger, MomentsAccountant
from minidp.run import Run
from minidp.run import shared_ledger as shared
from minidp.run.folder import CONFIG
from minidp.train import Trainer
from minidp.util.files import waiting_lock


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


def ended(tmp_path, monkeypatch, method, folder="run", calls=1, **named):
    """A fit charged to a shared ledger, stopped before a method of the run is called again."""
    owner, name = method.rsplit(".", 1)
    owner = pkgutil.resolve_name(owner.replace(".Run", ":Run").replace(".Trainer", ":Trainer"))
    before, left = getattr(owner, name), [None] * (calls - 1)

    def stop(*given, **rest):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return before(*given, **rest)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(owner, name, stop)
        small(tmp_path, folder, **named)


def small(tmp_path, folder="run", ledger="a", **named):
    x = np.random.default_rng(0).normal(size=(200, 3))
    given = {"epsilon": 1.0, "steps": 3, "quiet": True} | named
    return minidp.fit(x, x[:, 0] > 0, folder=tmp_path / folder, ledger=tmp_path / ledger, **given)


def fit_id(run):
    return json.loads((run / CONFIG).read_text())["fit_id"]


def ids(path):
    return {fit for *_, fit in Ledger.load(path).entries_of_fits()}


STEP, FIRST, TRAIN = (
    "minidp.train.Trainer.step",
    "minidp.run.run.Run.release_first",
    "minidp.run.run.Run.train",
)


def test_another_fit_of_equal_events_is_not_taken_for_this_one(tmp_path, monkeypatch):
    ended(tmp_path, monkeypatch, STEP)
    small(tmp_path, "other", "b")
    a, b = (Ledger.load(tmp_path / name) for name in "ab")
    assert a.sha256() == b.sha256() and a != b
    before = (tmp_path / "b").read_bytes()
    with pytest.raises(ParameterError, match="this one lacks them"):
        small(tmp_path, ledger="b")
    assert (tmp_path / "b").read_bytes() == before
    small(tmp_path)
    assert Ledger.load(tmp_path / "a").counted() == a.counted()
    with pytest.raises(ParameterError, match="this one lacks them"):  # the finished one, too
        small(tmp_path, ledger="b")
    fit = fit_id(tmp_path / "run")
    assert ids(tmp_path / "a") == {fit}
    others = [each for each in (tmp_path / "run").iterdir() if each.name != CONFIG]
    assert not any(fit.encode() in each.read_bytes() for each in others)


def test_a_run_without_an_id_is_not_found_among_entries_with_one(tmp_path, monkeypatch):
    ended(tmp_path, monkeypatch, STEP)
    path, older = tmp_path / "run" / CONFIG, Ledger.load(tmp_path / "a")
    config = json.loads(path.read_text())
    del config["fit_id"]
    path.write_text(json.dumps(config))
    with pytest.raises(ParameterError, match="this one lacks them"):
        small(tmp_path)
    Ledger(older.relation, older.entries(), older.unit).save(tmp_path / "a")  # in format 3
    small(tmp_path, "other")
    small(tmp_path)
    assert ids(tmp_path / "a") == {None, fit_id(tmp_path / "other")}
    assert Ledger.load(tmp_path / "a").count_of("step") == 6


@pytest.mark.parametrize("fit", ["", 1, "a" * 32])
def test_a_damaged_id_is_refused(tmp_path, monkeypatch, fit):
    ended(tmp_path, monkeypatch, STEP)
    path, before = tmp_path / "run" / CONFIG, (tmp_path / "a").read_bytes()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"fit_id": fit}))
    with pytest.raises(CheckpointError, match="damaged: fit_id is"):
        small(tmp_path)
    assert (tmp_path / "a").read_bytes() == before


@pytest.mark.parametrize("seed", [None, 1])
def test_a_fit_stopped_before_its_first_checkpoint_pays_for_its_steps_once(
    tmp_path, monkeypatch, seed
):
    ended(tmp_path, monkeypatch, FIRST, seed=seed)
    charged = Ledger.load(tmp_path / "a")
    ended(tmp_path, monkeypatch, TRAIN, seed=seed)
    assert Ledger.load(tmp_path / "a").counted() == charged.counted()
    looks = Ledger.load(tmp_path / "run" / "ledger.json").count_of("setup")
    assert looks == charged.count_of("setup") > 0  # these were drawn; without a seed, once more
    small(tmp_path, seed=seed)
    paid, own = (Ledger.load(tmp_path / name) for name in ("a", "run/ledger.json"))
    assert not own.counted() - paid.counted()
    assert (paid.count_of("step"), paid.count_of("setup")) == (3, (1 if seed else 2) * looks)
    assert own.to_json()["format"] == 3


def test_another_run_in_a_folder_that_charged_nothing_pays_for_itself(tmp_path, monkeypatch):
    ended(tmp_path, monkeypatch, FIRST)
    small(tmp_path, epsilon=2.0)
    paid, own = (Ledger.load(tmp_path / name) for name in ("a", "run/ledger.json"))
    assert not own.counted() - paid.counted() and paid.count_of("step") == 6


@pytest.mark.parametrize("method, calls", [(FIRST, 1), (TRAIN, 1), (STEP, 1), (STEP, 2)])
def test_a_copy_of_a_folder_is_charged_for_itself(tmp_path, monkeypatch, capfd, method, calls):
    ended(tmp_path, monkeypatch, method, calls=calls)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    once = Ledger.load(tmp_path / "a").count_of("step")
    small(tmp_path)
    capfd.readouterr()
    small(tmp_path, "copy")
    assert "NOTICE: " in capfd.readouterr().err
    paid = Ledger.load(tmp_path / "a")
    own = [Ledger.load(tmp_path / name / "ledger.json").counted() for name in ("run", "copy")]
    assert paid.count_of("step") == 2 * once and not own[0] + own[1] - paid.counted()
    small(tmp_path, "copy")  # finished, and nothing more is charged
    assert Ledger.load(tmp_path / "a") == paid


@pytest.mark.parametrize("method", [FIRST, STEP])
def test_a_copy_that_is_resumed_while_the_first_one_runs_stops_it(tmp_path, monkeypatch, method):
    """Both together release no more lots than the ledger holds."""
    released, copies, step = [], [], Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda *given: (released.append(given), step(*given)))
    owner, name = (Run, "release_first") if method == FIRST else (Trainer, "step")
    then = getattr(owner, name)

    def copied(*given, **named):
        if not copies:
            copies.append("copy")
            shutil.copytree(tmp_path / "run", tmp_path / "copy")
            with monkeypatch.context() as patched:
                patched.setattr("minidp.run.hold.fcntl.flock", lambda *_: None)
                small(tmp_path, "copy")
        return then(*given, **named)

    monkeypatch.setattr(owner, name, copied)
    with pytest.raises(CheckpointError, match="a copy of this folder"):
        small(tmp_path)
    assert len(released) <= Ledger.load(tmp_path / "a").count_of("step") == 3
    small(tmp_path)
    assert Ledger.load(tmp_path / "a").count_of("step") == 6


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


def test_a_lock_that_an_interrupt_left_behind_is_given_up_by_its_thread(tmp_path, charges):
    left = waiting_lock(tmp_path / "ledger.json.lock")
    left.__enter__()  # and no exit, which the interrupt took
    signal.alarm(60)  # in place of a wait for ever
    try:
        shared.charge_shared(tmp_path / "ledger.json", charges)
    finally:
        signal.alarm(0)
    assert Ledger.load(tmp_path / "ledger.json").items() == charges.items()
