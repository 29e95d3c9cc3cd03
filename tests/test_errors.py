"""One base for everything minidp raises on purpose, and the built-in kind that callers expect."""
import pytest

from minidp import errors
from minidp.errors import MinidpError

BUILT_IN = {
    "ShapeError": ValueError, "DtypeError": TypeError, "BackendMismatchError": TypeError, "ParameterError": ValueError,
    "NumericalBoundError": ArithmeticError, "DataUnavailableError": errors.DataError,
}
ERRORS = {name: value for name, value in vars(errors).items() if isinstance(value, type)}


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_has_the_base_and_says_what_it_is(name):
    assert issubclass(ERRORS[name], MinidpError) and ERRORS[name].__doc__
    assert issubclass(ERRORS[name], BUILT_IN.get(name, Exception))


def test_the_budget_is_no_value_error():
    # code that catches ValueError around a training loop must not swallow the end of the budget
    assert not issubclass(errors.BudgetExceededError, (ValueError, TypeError, ArithmeticError))
