"""The examples in docstrings give what they say."""
import doctest
import importlib
import pkgutil

import pytest

import minidp

MODULES = [found.name for found in pkgutil.walk_packages(minidp.__path__, "minidp.")
           if not found.name.startswith(("minidp.audit", "minidp.commands", "minidp.__main__"))] + ["minidp.audit.layer"]
EXAMPLES = {f"minidp.{name}" for name in (
    "audit.layer", "data.choose", "estimators", "mechanism.clip", "mechanism.pca", "mechanism.plan", "mechanism.sampling", "mechanism.sanitizer",
    "mechanism.schedule", "nn.loss", "nn.network", "numbers", "privacy.bound", "privacy.budget", "privacy.calibrate",
    "privacy.catalogue", "privacy.gaussian", "privacy.group_privacy", "privacy.ledger", "privacy.moments",
    "privacy.pld.accountant", "privacy.renyi", "run.model", "run.run", "streams")}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))      # where examples write
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0 and (tried > 0 or name not in EXAMPLES)
