"""Output of commands: text or JSON, and files that are not replaced without --force."""

from pathlib import Path

from ..errors import ParameterError, UnsupportedEventError
from ..run.options import option
from ..util.files import json_text


def json_option():
    """The field of --json."""
    return option(False, "print JSON instead of the table")


def force_option():
    """The field of --force."""
    return option(False, "overwrite existing files")


def show(flags, record, lines):
    """Print the record as JSON with --json, otherwise the lines."""
    print(json_text(record), end="") if flags.json else print("\n".join(lines))


def refuse_unbounded(rows, worthless):
    """Raise UnsupportedEventError, with the first accountant's reason, if none has a bound;
    ParameterError if no bound is below `worthless`.
    """
    bounds = [row["upper"] for row in rows.values() if row["upper"] is not None]
    if not bounds:
        why = next(iter(rows.values()))["note"]
        raise UnsupportedEventError(f"no accountant asked has a bound: {why}")
    if min(bounds) >= worthless:
        raise ParameterError("nothing is guaranteed: a release has too little noise, or none")


def check_new(flags, *paths):
    """Raise ParameterError, before any work, for a path that cannot be written, and for an existing
    file unless there is --force.
    """
    for path in map(Path, filter(None, paths)):
        if path.is_dir() or not path.parent.is_dir():
            raise ParameterError(
                f"{path} cannot be written: expected the name of a file in an existing folder"
            )
        if path.exists() and not flags.force:
            raise ParameterError(
                f"{path} exists already; --force replaces it, another name keeps it"
            )
