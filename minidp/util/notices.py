"""Print lines on stderr and stdout without ever raising, because a run prints some between its
charge and its model. `quiet=True` and `--quiet` turn off all lines on stderr except those that
begin with NOTICE.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_quiet = _silent = False


@contextmanager
def quietly(quiet: bool = True, silent: bool = False) -> Iterator[None]:
    """Context in which `say` prints only NOTICE lines, or nothing if `silent`."""
    global _quiet, _silent
    before = _quiet, _silent
    _quiet, _silent = _quiet or bool(quiet), _silent or silent
    try:
        yield
    finally:
        _quiet, _silent = before


class Steady:
    """A text stream that may be missing, closed, full, or unable to write a character: writing to
    it never raises. Characters that its encoding lacks are written as escapes.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> None:
        """Write the text, or the part of it that the stream accepts."""
        with suppress(Exception):
            try:
                self.stream.write(text)
            except UnicodeEncodeError as error:
                code = error.encoding
                self.stream.write(text.encode(code, "backslashreplace").decode(code))

    def flush(self) -> None:
        """Flush the stream if possible."""
        with suppress(Exception):
            self.stream.flush()

    def isatty(self) -> bool:
        """True for a terminal."""
        with suppress(Exception):
            return bool(self.stream.isatty())
        return False


def say(line: str) -> None:
    """Print a line on stderr at once, unless `quietly`. Never raises."""
    if not (_silent or _quiet and not line.startswith("NOTICE")):
        print(line, file=Steady(sys.stderr), flush=True)


def tell(text: str) -> None:
    """Print a text on stdout at once. Never raises."""
    print(text, file=Steady(sys.stdout), flush=True)
