"""The examples in docstrings give what they say."""
import doctest
import importlib
import pkgutil

import pytest

from minidp import privacy

MODULES = ["minidp.numbers", "minidp.run.model",
           *(found.name for found in pkgutil.walk_packages(privacy.__path__, "minidp.privacy."))]
EXAMPLES = {"minidp.numbers", "minidp.run.model", *(f"minidp.privacy.{name}" for name in (
    "accountant", "budget", "calibrate", "catalogue", "gaussian", "ledger", "moments", "pld.accountant", "renyi"))}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0 and (tried > 0 or name not in EXAMPLES)
