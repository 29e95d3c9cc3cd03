"""The command line. A command's module, and what it imports, loads only when that command is asked
for.

A module of this package has a dataclass for each of its commands, such as `EpsilonCommand`: its
fields are the flags (`util.options`), `examples` ends its help, and `run` runs the command and
returns the exit status (None is 0). A new family of commands is one file, and one row for each
command in COMMANDS.
"""

import argparse
import os
import sys
from importlib import import_module

from .. import __version__
from ..util.notices import quietly
from ..util.program import program
from .flags import Parser, add_flags, user_errors, with_flags

COMMANDS = {  # name: module, what it does
    "epsilon": (
        "accounting",
        "epsilon of a run at a given delta, by every accountant that has a bound",
    ),
    "delta": ("accounting", "delta of a run at a given epsilon"),
    "calibrate": (
        "accounting",
        "noise multiplier or number of steps for a target epsilon",
    ),
    "verify": (
        "checking",
        "compare a run's files with each other, and compute its figures again from its ledger",
    ),
    "train": ("training", "a private model and its statement from a file of your own data"),
    "schema": ("training", "a draft of the public schema of a .csv table"),
    "predict": ("training", "predictions of a model file for new rows, as CSV"),
    "audit": (
        "checking",
        "every equation, its line of code and its error, measured now in about a minute",
    ),
}


PIPE_CLOSED = 128 + 13  # what a shell says of a program that SIGPIPE ends


class _Version(argparse.Action):
    """Print the versions and end; what looks them up loads only then."""

    def __call__(self, parser, namespace, values, option_string=None):
        from importlib import metadata
        from platform import python_version

        numpy = metadata.version("numpy")
        print(f"minidp {__version__}, NumPy {numpy}, Python {python_version()}")
        parser.exit()


def build_parser(loaded=tuple(COMMANDS)):
    """The parser; only the commands `loaded` get their flags, for which their modules are
    imported.
    """
    parser = Parser(
        prog=program(),
        description="Differential privacy: what a run "
        "costs, how much noise it needs, whether its files hold.",
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
    """Run one command; returns the exit status. What a user did wrong is one line, and status 2."""
    argv = sys.argv[1:] if argv is None else argv
    if hasattr(sys.stdout, "reconfigure"):  # what its encoding lacks is written as escapes
        sys.stdout.reconfigure(errors="backslashreplace")
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
            except BrokenPipeError:  # the reader, such as `head`, has what it wanted
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return PIPE_CLOSED
    except SystemExit as told:
        return told.code
