"""What all command lines share: flags read strictly, and what a user did wrong told in one line."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NoReturn

from ..errors import MinidpError
from ..ranks import SOLO, current


class Parser(argparse.ArgumentParser):
    """An argument parser that takes no abbreviations, and ends with one line and status 2 for flags
    it cannot read.
    """

    def __init__(self, *args: Any, **named: Any):
        super().__init__(
            *args,
            **{
                "allow_abbrev": False,
                "formatter_class": argparse.RawDescriptionHelpFormatter,
                **named,
            },
        )

    def error(self, message: str) -> NoReturn:
        print(f"error: {message}; --help lists the flags", file=sys.stderr)
        sys.exit(2)


def number(text: str) -> float:
    """A flag's number: 4, 1e-5 or 1/60."""
    try:
        numerator, _, denominator = text.partition("/")
        return float(numerator) / float(denominator or 1)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(
            f"expected a number such as 4, 1e-5 or 1/60, got {text!r:.80}"
        ) from None


def whole_number(text: str) -> int:
    """A flag's integer: 10000 or 1e4."""
    try:
        return int(text)
    except ValueError:
        value = number(text)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(
            f"expected a whole number such as 10000 or 1e4, got {text!r:.80}"
        )
    return int(value)


@contextmanager
def user_errors() -> Iterator[SimpleNamespace]:
    """Context manager for command lines: report user errors on one line and exit with status 2.

    Covers minidp's errors, the operating system's (a path that cannot be read or written, a full
    disk), and libraries that are missing or do not fit each other; anything else is a fault of the
    program and keeps its traceback. On several ranks rank 0 alone is heard. An interrupt prints one
    line that says what was saved, which the block puts into `saved` of the object it is given, and
    exits with 130.
    """
    note = SimpleNamespace(
        saved="what was charged is in the run's folder, if it was made: go on with --resume"
    )
    ranks = SOLO
    try:
        ranks = current()
        with ranks.one_voice():
            yield note
        return
    except (MinidpError, OSError, MemoryError) as error:
        line, status = error_line(error), 2
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "minidp":
            raise
        line, status = error_line(error), 2
    except KeyboardInterrupt as error:
        line, status = (
            str(error) or (f"\ninterrupted; {note.saved}" if note.saved else "interrupted"),
            130,
        )
    ranks.failing(line)
    with ranks.one_voice():
        print(line, file=sys.stderr)
    sys.exit(status)


def error_line(error: BaseException) -> str:
    """What a command line prints of an error: one line, without the number of the operating
    system.
    """
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        library = error.name.partition(".")[0]
        text = f"{library} is not installed: pip install {library}, or install minidp again"
    return f"error: {' '.join(text.split())}"
