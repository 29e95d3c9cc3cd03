"""Lines on stderr. `quiet=True` and `--quiet` turn off all but those that begin with NOTICE."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_quiet = _silent = False


@contextmanager
def quietly(quiet: bool = True, silent: bool = False) -> Iterator[None]:
    """Within it, `say` nothing but what the data's owner must know; nothing at all if `silent`."""
    global _quiet, _silent
    before = _quiet, _silent
    _quiet, _silent = _quiet or bool(quiet), _silent or silent
    try:
        yield
    finally:
        _quiet, _silent = before


def say(line: str) -> None:
    """Print a line on stderr at once, unless `quietly`."""
    if not (_silent or _quiet and not line.startswith("NOTICE")):
        print(line, file=sys.stderr, flush=True)
