"""The command line. A command's module, and its imports, load only when that command is called.

A module of this package has a dataclass for each of its commands, such as `EpsilonCommand`: its
fields are the flags (`run.options`), `examples` ends its help, and `run` runs the command and
returns the exit status (None is 0). A new family of commands is one file, and one row for each
command in COMMANDS.
"""

import argparse
import os
import sys
from importlib import import_module

from .. import __version__
from ..run.program import program
from ..util.notices import quietly
from .flags import Parser, add_flags, user_errors, with_flags

COMMANDS = {  # name: module, what it does
    "epsilon": (
        "accounting",
        "compute the epsilon of a run at a given delta, by every accountant that has a bound",
    ),
    "delta": ("accounting", "compute the delta of a run at a given epsilon"),
    "calibrate": (
        "accounting",
        "find the noise multiplier or the number of steps for a target epsilon",
    ),
    "verify": (
        "checking",
        "compare a run's files with each other, and recompute its figures from its ledger",
    ),
    "train": (
        "training",
        "train a private model on a file of your own data, with a privacy statement",
    ),
    "schema": ("training", "draft the public schema of a .csv table"),
    "predict": ("training", "predict new rows by a model file, as CSV"),
    "audit": (
        "checking",
        "measure how far each equation is from its line of code (a minute)",
    ),
}


PIPE_CLOSED = 128 + 13  # a shell's status of a program that SIGPIPE ended


class _Version(argparse.Action):
    """Print the versions and end; code that looks them up loads only then."""

    def __call__(self, parser, namespace, values, option_string=None):
        from importlib import metadata
        from platform import python_version

        numpy = metadata.version("numpy")
        print(f"minidp {__version__}, NumPy {numpy}, Python {python_version()}")
        parser.exit()


def build_parser(loaded=tuple(COMMANDS)):
    """The parser; only the commands in `loaded` get their flags, because flags need the command's
    module.
    """
    parser = Parser(
        prog=program(),
        description="Train with differential privacy, compute the cost of a run, and check its "
        "files and every formula.",
        epilog="example: %(prog)s epsilon "
        "--delta 1e-5 --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4\neach command "
        "has --help",
    )
    parser.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        default=argparse.SUPPRESS,
        help="print the versions of minidp, NumPy and Python",
    )
    commands = parser.add_subparsers(
        dest="command", required=True, parser_class=Parser, metavar="COMMAND"
    )
    for name, (module, what) in COMMANDS.items():
        sub = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        if name in loaded:
            found = getattr(import_module(f".{module}", __package__), f"{name.capitalize()}Command")
            add_flags(sub, found)
            sub.epilog = found.examples
            sub.set_defaults(command=found)
    return parser


def run(argv=None):
    """Run one command; returns the exit status. A user's error prints one line and gives status
    2.
    """
    argv = sys.argv[1:] if argv is None else argv
    if hasattr(sys.stdout, "reconfigure"):  # write characters that its encoding lacks as escapes
        sys.stdout.reconfigure(errors="backslashreplace")
    if not argv:
        build_parser(()).print_help()
        return 2
    with user_errors():
        given = vars(build_parser(argv[:1]).parse_args(argv))
        command = given.pop("command")
    try:
        with user_errors():
            try:
                with quietly(given.get("quiet", False)):
                    status = with_flags(given, lambda: command(**given).run()) or 0
                if sys.stdout is not None:
                    sys.stdout.flush()
                return status
            except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return PIPE_CLOSED
    except SystemExit as told:
        return told.code
