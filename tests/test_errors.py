"""One base for everything minidp raises on purpose, and the built-in kind that callers expect."""

from minidp import errors


def test_the_budget_is_no_value_error():
    # code that catches ValueError around a training loop must not swallow the end of the budget
    assert not issubclass(errors.BudgetExceededError, (ValueError, TypeError, ArithmeticError))
