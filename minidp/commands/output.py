"""What commands print and write: tables with the row to quote, JSON, and files that are not
replaced without a word.
"""

import math
from pathlib import Path

from ..costs import rows_of
from ..errors import ParameterError, UnsupportedEventError
from ..privacy.accountants import row_to_quote
from ..util.files import json_text
from ..util.options import option
from ..util.text import bound_texts


def json_option():
    """The field of --json."""
    return option(False, "print JSON in place of the table")


def force_option():
    """The field of --force."""
    return option(False, "replace files that are there already")


def show(flags, record, lines):
    """Print the record as JSON with --json, else the lines."""
    print(json_text(record), end="") if flags.json else print("\n".join(lines))


def text_rows(found, mark, digits=4, below=math.inf):
    """[(name, lower, estimate, upper, kind, note)] as texts, lower ends rounded down and upper ends
    up; `mark` follows the note of the row to quote.
    """
    quoted = row_to_quote(rows_of(found), below)
    return [
        (name, *bound_texts(bound, digits), kind, note + (mark if name == quoted else ""))
        for name, (bound, kind, note) in found.items()
    ]


def table(found, what, below=math.inf):
    """Lines of one comparison, for people."""
    head = ("accountant", f"{what} lower", "estimate", "upper", "kind", "")
    rows = [head, *text_rows(found, "  <- quote this", 6, below)]
    widths = [max(map(len, column)) for column in [*zip(*rows)][:5]]
    return ["  ".join([*map(str.ljust, row, widths), row[5]]).rstrip() for row in rows]


def refuse_unbounded(found, worthless):
    """Raise UnsupportedEventError, with the first accountant's reason, where none has a bound;
    ParameterError where no bound is below `worthless`.
    """
    bounds = [bound.upper for bound, _, _ in found.values() if bound.upper is not None]
    if not bounds:
        _, _, why = next(iter(found.values()))
        raise UnsupportedEventError(f"no accountant asked has a bound: {why}")
    if min(bounds) >= worthless:
        raise ParameterError(
            "nothing is guaranteed: something is released with too little noise, or none"
        )


def check_new(flags, *paths):
    """Raise ParameterError, before any work, for a path that cannot be written, or is a file and
    --force is missing.
    """
    for path in map(Path, filter(None, paths)):
        if path.is_dir() or not path.parent.is_dir():
            raise ParameterError(
                f"{path} cannot be written: expected a file's name in a folder that is there"
            )
        if path.exists() and not flags.force:
            raise ParameterError(
                f"{path} is there already; --force replaces it, another name keeps it"
            )
