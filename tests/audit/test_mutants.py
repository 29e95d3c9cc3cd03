"""Broken on purpose: the audit notices every mutant of tests/support/mutants.py, and nothing where nothing is broken."""
import sys

import pytest

import minidp.nn.dense
from minidp.audit.mutation import Mutant, caught_by, mutated
from tests.support.mutants import MUTANTS
from tools import audit_gradients

ALSO = ("tests.support.cases",)
QUICK = [mutant for mutant in MUTANTS if not mutant.module.startswith("privacy/")][::4]


def test_there_are_enough_mutants_and_none_twice():
    assert len({(mutant.module, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS) >= 60


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_every_mutant_still_has_its_line(mutant):
    compile(mutant.source(), mutant.module, "exec")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # broken formulas divide by zero
@pytest.mark.parametrize("mutant", QUICK, ids=str)
def test_some_mutants_are_caught(mutant):
    assert caught_by(mutant, audit_gradients.collect, ALSO)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_every_mutant_is_caught(mutant):
    assert caught_by(mutant, audit_gradients.collect, ALSO)


def test_a_change_that_breaks_nothing_is_caught_by_no_check_of_its_card():
    """The control: what catches a mutant passes on the same copy of the code with a harmless change in it."""
    control = Mutant(("nn.dense.Dense", "F1"), "nn/dense.py", "y = x @ W  #", "y = 1.0 * (x @ W)  #")
    with mutated(control, ALSO):
        checks = audit_gradients.collect()
        outcomes = [checks.run(check) for (card, _), found in checks.REGISTRY.items() if card.startswith("nn.")
                    for check in found]
    assert len(outcomes) > 100 and all(outcome.passed for outcome in outcomes)


def test_the_modules_of_before_come_back():
    before = dict(sys.modules)
    mutant = next(mutant for mutant in MUTANTS if mutant.module == "nn/dense.py")
    with mutated(mutant, ALSO):
        import minidp.nn.dense as inside

        assert inside is not before["minidp.nn.dense"]
    assert {name: module for name, module in sys.modules.items() if name.startswith("minidp")} == {
        name: module for name, module in before.items() if name.startswith("minidp")}
    import minidp as package

    assert package.nn.dense is before["minidp.nn.dense"] is sys.modules["minidp.nn.dense"]


def test_a_mutant_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="found it 0 times"):
        Mutant(("x", "F1"), "nn/dense.py", "no such text", "").source()
