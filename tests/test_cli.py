"""Errors of a user on a command line: one line, and the exit status."""
import pytest

from minidp.cli import user_errors
from minidp.errors import BudgetExceededError, DataError


@pytest.mark.parametrize("error, line", [
    (DataError("train-images: truncated\nat byte 16"), "error: train-images: truncated at byte 16"),
    (PermissionError(13, "Permission denied", "/runs/x"), "error: /runs/x: Permission denied"),
    (OSError(28, "No space left on device"), "error: No space left on device"),
    (OSError("odd"), "error: odd"),
])
def test_user_errors_are_one_line_and_exit_2(capsys, error, line):
    with pytest.raises(SystemExit) as exit, user_errors():
        raise error
    assert exit.value.code == 2
    assert capsys.readouterr() == ("", line + "\n")


@pytest.mark.parametrize("error", [ZeroDivisionError, ValueError, TypeError])
def test_faults_of_the_program_keep_their_traceback(error):
    with pytest.raises(error), user_errors():
        raise error


def test_interrupt_says_what_was_saved_and_exits_130(capsys):
    with pytest.raises(SystemExit) as exit, user_errors() as note:
        note.saved = "step 400 is in runs/x; go on with --resume"
        raise KeyboardInterrupt
    assert exit.value.code == 130
    assert capsys.readouterr().err.strip() == "interrupted; step 400 is in runs/x; go on with --resume"


def test_code_that_catches_value_errors_around_training_does_not_swallow_the_end_of_the_budget():
    assert not issubclass(BudgetExceededError, (ValueError, TypeError, ArithmeticError))
