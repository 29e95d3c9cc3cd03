"""Lines on stderr, which `quiet=True` and `--quiet` turn off."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_quiet = False


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Within it, `say` nothing if `quiet`."""
    global _quiet
    before = _quiet
    _quiet = before or bool(quiet)
    try:
        yield
    finally:
        _quiet = before


def say(line: str) -> None:
    """Print a line on stderr at once, unless `quietly`."""
    if not _quiet:
        print(line, file=sys.stderr, flush=True)
