"""An error of one line that says what it must, and tables of calls that are refused with one."""

from contextlib import contextmanager

import pytest


@contextmanager
def refused(error, *words, start=""):
    """A block that raises exactly this error, in one line that begins with `start` and holds all
    the words.
    """
    with pytest.raises(error) as raised:
        yield raised
    text = str(raised.value)
    assert raised.type is error and "\n" not in text and text.startswith(start), text
    assert all(word in text for word in words), text


def each_of(table):
    """A test of each row of {error: {words of its message: call}}; " ... " stands for any words."""
    rows = [
        pytest.param(error, words.split(" ... "), call, id=words)
        for error, calls in table.items()
        for words, call in calls.items()
    ]
    return pytest.mark.parametrize("error, words, call", rows)
