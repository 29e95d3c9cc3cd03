"""Files of version 0.1.0 (commit 56e97636) are loaded, verified, predicted from and resumed."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from minidp import fit
from minidp.privacy import Ledger
from minidp.run import load_model
from minidp.run.checkpoint import load_arrays
from minidp.run.verify import verify
from tests.support import make_old_files as old
from tests.support import running

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"


@pytest.fixture
def folder(tmp_path):
    """A copy of the files."""
    return shutil.copytree(FIXTURES, tmp_path / "files")


@pytest.fixture(scope="module")
def expected():
    """What version 0.1.0 predicted."""
    return dict(np.load(FIXTURES / "expected.npz"))


@pytest.mark.parametrize("name", ["table", "arrays"])
def test_folders_of_finished_runs_verify(folder, name):
    report = verify(folder / name)
    assert not report.failed and report.accountants["loss_distribution"]


@pytest.mark.parametrize("name", ["table", "arrays", "text"])
def test_model_files_predict_the_same(name, expected):
    path = FIXTURES / "text.npz" if name == "text" else FIXTURES / name / "model.npz"
    model = load_model(path)
    if name == "text":
        found = model.network.predict(np.arange(15).reshape(3, 5) % 7)
    elif name == "table":
        given = old.table()
        given.pop("sick")
        found = model.predict_proba(given)
    else:
        found = model.predict_proba(old.arrays()[0])
    np.testing.assert_allclose(found, expected[name], rtol=1e-5, atol=1e-7)


def test_a_pickled_estimator_predicts_the_same(expected):
    estimator = pickle.loads((FIXTURES / "estimator.pickle").read_bytes())
    found = estimator.predict_proba(old.arrays()[0])
    np.testing.assert_allclose(found, expected["estimator"], rtol=1e-5, atol=1e-7)


def test_finished_fits_are_found_again_and_charge_nothing(folder, expected):
    before = (folder / "shared.json").read_bytes()
    x, y = old.arrays()
    again = fit(x, y, **old.array_settings(folder))
    np.testing.assert_allclose(again.predict_proba(x), expected["arrays"], rtol=1e-5, atol=1e-7)
    tabled = fit(old.table(), **old.table_settings(folder))
    found = tabled.predict_proba(old.table())
    np.testing.assert_allclose(found, expected["table"], rtol=1e-5, atol=1e-7)
    assert (folder / "shared.json").read_bytes() == before


def test_an_interrupted_run_is_resumed_with_a_notice_and_verifies(folder, capsys):
    run = folder / "interrupted"
    assert load_arrays(run / "checkpoint.npz", "checkpoint")[1]["progress"][0] < running.STEPS
    result = running.train(run)
    assert result["steps"] == result["steps_charged"] == running.STEPS
    assert not verify(run).failed
    assert "NOTICE" in capsys.readouterr().err


def test_another_fit_is_added_to_a_shared_ledger(folder):
    def charges():
        return sum(times for _, times in Ledger.load(folder / "shared.json").items())

    before, (x, y) = charges(), old.arrays()
    fit(x, y, **old.array_settings(folder) | {"folder": folder / "another"})
    assert charges() == before + 6  # a look, a mean, four steps
