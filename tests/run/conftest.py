"""A finished run whose files a test may spoil."""

import shutil

import pytest

from tests.support.running import train


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(folder, disclosed=["the names"], public=["the number of rows"])
    return folder


@pytest.fixture
def run(finished, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(finished, tmp_path / "run")
