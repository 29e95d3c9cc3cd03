"""A finished run whose files a test may spoil."""

import shutil

import pytest

from minidp.privacy import LossDistributionAccountant
from tests.support.running import train


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(folder, train_metrics=True, disclosed=["the names"], public=["the number of rows"])
    return folder


@pytest.fixture
def run(finished, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def answered_once(monkeypatch):
    """What the slowest accountant is asked again, by one `verify` after another, it remembers."""

    def remembering(answer):
        known = {}

        def answered(self, parts, target):
            key = self.relation, tuple(parts), target
            if key not in known:
                known[key] = answer(self, parts, target)
            return known[key]

        return answered

    for name in ("epsilon_of", "delta_of"):
        answer = getattr(LossDistributionAccountant, name)
        monkeypatch.setattr(LossDistributionAccountant, name, remembering(answer))
