"""The catalogue of accountants."""
import pytest

from minidp import privacy
from minidp.privacy.catalogue import ACCOUNTANTS, UNKNOWN, all_bounds, make
from tests.support.accountants import REPLACE_ONE, ROWS, ledger_of


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_names_are_those_of_the_accountants(name):
    accountant = make(name, REPLACE_ONE)
    assert accountant.name == name and accountant.relation is REPLACE_ONE
    assert type(accountant).__name__ in privacy.__all__
    assert any(type(row.make(row.relation)) is type(accountant) for row in ROWS)


def test_no_theorem_is_an_answer_too():
    found = all_bounds(ledger_of((privacy.Laplace(1.0), 1)), ("gaussian_clt", "basic"), delta=1e-5)
    assert found["gaussian_clt"][0] == UNKNOWN and "Laplace" in found["gaussian_clt"][2]
    assert found["basic"][0].upper == pytest.approx(1.0)
