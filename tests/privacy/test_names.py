"""Accountants by their names."""

import pytest

from minidp.privacy.accountants import ACCOUNTANTS, make
from tests.support.accountants import ROWS


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_names_are_those_of_the_accountants(name):
    assert make(name).name == name and any(row.make is type(make(name)) for row in ROWS)
