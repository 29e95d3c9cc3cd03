"""Runs whose weights version 0.1.0 gave to other persons are named by verify and not resumed."""

import numpy as np
import pytest

from minidp import fit
from minidp.errors import CheckpointError
from tests.support.sealed import edit, failed, tell

NAMES = np.arange(60) // 2
X = np.random.default_rng(0).normal(size=(60, 3))


def fitted(folder, rows_per_person=1, weighted=True):
    weight = (np.arange(30) % 2) * 1.0
    return fit(
        X,
        X[:, 0] > 0,
        folder=folder,
        person=NAMES,
        rows_per_person=rows_per_person,
        example_weight=weight if weighted else None,
        epsilon=2.0,
        delta=1e-3,
        steps=3,
        lot_size=10,
        quiet=True,
    )


@pytest.mark.parametrize(
    "rows_per_person, weighted, false", [(1, True, True), (2, True, False), (1, False, False)]
)
def test_verify_names_what_version_0_1_0_weighted_by_rows(
    tmp_path, rows_per_person, weighted, false
):
    run = tmp_path / "run"
    fitted(run, rows_per_person, weighted)
    assert not failed(run)
    tell(run, {"versions minidp": "0.1.0"})
    assert ("its epsilon is not what it says" in failed(run)) is false


def test_a_run_that_began_in_version_0_1_0_is_named_and_not_resumed(tmp_path):
    run = tmp_path / "run"
    fitted(run)
    edit(run, "config.json", {"minidp": "0.1.0"})
    assert "its epsilon is not what it says" in failed(run)
    with pytest.raises(CheckpointError, match="train again in another folder"):
        fitted(run)
