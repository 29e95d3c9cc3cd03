"""What commands print and write: text or JSON, and files that are not replaced without a word."""

from pathlib import Path

from ..errors import ParameterError, UnsupportedEventError
from ..run.options import option
from ..util.files import json_text


def json_option():
    """The field of --json."""
    return option(False, "print JSON in place of the table")


def force_option():
    """The field of --force."""
    return option(False, "overwrite existing files")


def show(flags, record, lines):
    """Print the record as JSON with --json, else the lines."""
    print(json_text(record), end="") if flags.json else print("\n".join(lines))


def refuse_unbounded(rows, worthless):
    """Raise UnsupportedEventError, with the first accountant's reason, where none has a bound;
    ParameterError where no bound is below `worthless`.
    """
    bounds = [row["upper"] for row in rows.values() if row["upper"] is not None]
    if not bounds:
        why = next(iter(rows.values()))["note"]
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
