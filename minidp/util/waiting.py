"""Lines on stderr that say what a long wait is for, on a terminal or not."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 30.0  # seconds between two lines of one wait
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


@contextmanager
def waiting(line: Callable[[], str]) -> Iterator[None]:
    """`say` what line() gives at the beginning, and again every 30 seconds until the end."""
    say(line())
    ended = threading.Event()

    def repeat():
        while not ended.wait(EVERY):
            say(line())

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
