"""The package's cards are read once for all tests."""

from functools import cache

import pytest

from minidp.audit import report

CARDS = cache(report.cards)


@pytest.fixture(autouse=True)
def _cards(monkeypatch):
    monkeypatch.setattr(report, "cards", CARDS)
