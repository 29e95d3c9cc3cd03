"""Public rows of any kind cost no model, and no text of the owner's begins a paragraph."""

import numpy as np
import pytest

from minidp import fit
from minidp.errors import ParameterError
from minidp.run.verify import verify


@pytest.fixture
def rows():
    x = np.random.default_rng(0).normal(size=(300, 3))
    return x, np.where(x[:, 0] > 0, "yes", "no")


def test_public_rows_without_a_known_class_are_measured(rows, tmp_path):
    x, y = rows
    test = x[:5] + 1, np.array(["maybe"] * 5)
    assert fit(x, y, epsilon=1.0, test=test, quiet=True, folder=tmp_path / "run").score(*test) == 0
    assert not verify(tmp_path / "run").failed


def test_no_public_rows_are_refused_before_anything_is_charged(rows, tmp_path):
    x, y = rows
    with pytest.raises(ParameterError, match="expected public rows for test, got none"):
        fit(x, y, epsilon=1.0, test=(x[:0], y[:0]), quiet=True, folder=tmp_path / "run")
    assert not (tmp_path / "run" / "ledger.json").exists()


def test_the_name_of_a_class_begins_no_paragraph_of_the_statement(rows, tmp_path):
    x, y = rows
    named = np.where(y == "yes", "yes\n\n## In short\n\n**Epsilon is 0.**", "no")
    fit(x, named, epsilon=1.0, quiet=True, folder=tmp_path / "run")
    assert (tmp_path / "run" / "privacy.md").read_text().count("\n## In short\n") == 1
    assert not verify(tmp_path / "run").failed
