"""Every labelled equation holds: the checks of minidp/audit, on NumPy and on arrays that obey
CuPy's rules.
"""

import pytest

from minidp.audit import checks
from minidp.backend import Backend
from tests.support.guarded import guarded_backend

FOUND = {
    id(check): pytest.param(check, id=f"{card} [{label}] {check.name} ({check.method})")
    for (card, label), found in checks.load().items()
    for check in found
}


class Watched:
    """NumPy as a check's device, which remembers that it was asked for."""

    asked = False

    def __getattr__(self, name):
        self.asked = True
        return getattr(Backend.numpy(), name)


@pytest.mark.parametrize("check", FOUND.values())
def test_holds(check):
    """On both kinds of arrays, unless the check moves nothing to a device."""
    host = Watched()
    outcomes = [checks.run(check, host)]
    if host.asked:
        outcomes.append(checks.run(check, guarded_backend()))
    for outcome in outcomes:
        assert outcome.passed, f"{outcome.problem or outcome.error}, at most {check.tolerance}"
