"""Accountants by their names."""

import pytest

from minidp.privacy.accountants import called, every, make, short_names
from tests.support.accountants import ROWS

EVERY = {each.name: each for each in every()}


@pytest.mark.parametrize("name", EVERY)
def test_an_accountant_is_found_by_its_names_and_has_a_row_of_shared_tests(name):
    short = called(name, exact=True)
    assert type(make(name)) is type(make(short)) is EVERY[name]
    assert any(row.make is EVERY[name] for row in ROWS)
    assert short_names().get(short) == (None if EVERY[name].kind == "comparison" else name)


def test_no_two_accountants_have_a_name_in_common():
    names = [name for each in every() for name in {each.name, each.called(exact=True)}]
    assert len(names) == len({*names}) and list(short_names())[:2] == ["moments", "rdp"]
