"""`minidp` and `python -m minidp`: the commands are in minidp/commands, one file for each
family.
"""

import sys

from . import host


def main(argv=None):
    """Run one command; returns the exit status."""
    from .commands import run

    return run(argv)


def script():
    """Entry point of a process of its own: tune it before NumPy loads, then call `main`."""
    host.tune()
    return main()


if __name__ == "__main__":
    sys.exit(script())
