"""The examples in docstrings give what they say."""
import doctest
import importlib
import pkgutil

import pytest

import minidp
from minidp import privacy

MODULES = ["minidp.numbers", *(found.name for found in pkgutil.walk_packages(privacy.__path__, "minidp.privacy."))]
EXAMPLES = {"minidp.numbers", "minidp.privacy.accountant", "minidp.privacy.budget", "minidp.privacy.calibrate",
            "minidp.privacy.catalogue", "minidp.privacy.composition", "minidp.privacy.events", "minidp.privacy.gaussian",
            "minidp.privacy.group_privacy", "minidp.privacy.ledger", "minidp.privacy.moments",
            "minidp.privacy.pld.accountant", "minidp.privacy.renyi", "minidp.privacy.search_cost",
            "minidp.privacy.tradeoff"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert failed == 0 and (tried > 0 or name not in EXAMPLES)
