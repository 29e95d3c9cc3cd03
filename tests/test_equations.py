"""Every labelled equation holds: the checks of minidp/audit, on NumPy and on arrays that obey
CuPy's rules.
"""

import pytest

from minidp.audit import checks
from minidp.backend import Backend
from tests.support.guarded import guarded_backend

BACKENDS = {"numpy": Backend.numpy(), "guarded": guarded_backend()}
FOUND = {
    id(check): (card, label, check)
    for (card, label), found in checks.load().items()
    for check in found
}
# accountants compute on the host
CASES = [
    pytest.param(check, backend, id=f"{card} [{label}] {check.name} ({check.method}) {backend}")
    for card, label, check in FOUND.values()
    for backend in BACKENDS
    if backend == "numpy" or not card.startswith("privacy.")
]


@pytest.mark.parametrize("check, backend", CASES)
def test_holds(check, backend):
    outcome = checks.run(check, BACKENDS[backend])
    assert outcome.passed, f"{outcome.problem or outcome.error}, at most {check.tolerance}"
