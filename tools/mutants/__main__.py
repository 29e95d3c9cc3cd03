"""Break every labelled line and printed equation of the audit on purpose: a check must notice.

    python -m tools.mutants                  # a quarter of an hour
    python -m tools.mutants --layer Dense    # a minute or two

Prints a line for each change. Exit status 1 if a change survives without being listed as
equivalent, or if one is listed and was noticed; 2 for user errors.
"""

import sys

from minidp.audit.report import cards, named, need_extra
from minidp.commands.flags import Parser, user_errors
from minidp.util.notices import say

from . import code, texts
from .changes import unmatched


def run(only=None):
    """Judge all mutants, or those of the card `only` and its bases; return the exit status."""
    need_extra()
    lines = code.generate()
    equations = texts.generate()
    faults = unmatched(lines, code.EQUIVALENT) + unmatched(equations, texts.EQUIVALENT)
    if only is not None:
        wanted = named(only, [card for card, _ in cards()])
        lines = [each for each in lines if each.card in wanted]
        equations = [each for each in equations if each.card in wanted]
    say(f"{len(lines):,} mutants of code, about a second each, and {len(equations):,} of equations")
    faults += code.judge(lines) + texts.judge(equations)
    print("", *faults, sep="\n")
    print(f"{len(lines) + len(equations)} mutants, {len(faults)} faults")
    return 1 if faults else 0


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--layer", metavar="NAME", help="only this class or function, and its bases: Conv2D"
    )
    options = parser.parse_args(argv)
    with user_errors():
        return run(options.layer)


if __name__ == "__main__":
    sys.exit(main())
