#!/usr/bin/env python3
"""Break each formula in turn, in memory, and print which check of the audit notices.

    python tools/audit_mutants.py [--markdown FILE]        # about a minute

Exit status 1 if a mutant survives. The table that stands in tests/audit/mutants.md is made by this command.
"""
import argparse
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for folder in (ROOT, ROOT / "experiments"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


from minidp.audit.mutation import caught_by
from minidp.cli import user_errors
from minidp.files import atomic_write
from tests.support.mutants import EQUIVALENT, MUTANTS
from tools import audit_gradients


def main(argv=None):
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", metavar="FILE", help="write the table")
    options = parser.parse_args(argv)
    rows, survived = [], 0
    with user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # broken formulas divide by zero
        for mutant in MUTANTS:
            found = caught_by(mutant, audit_gradients.collect, ("tests.support.cases",))
            survived += not found
            rows.append((mutant, found[0] if found else ("SURVIVED", "")))
            print(f"{'ok  ' if found else 'FAIL'} {mutant}: {rows[-1][1][0]}", flush=True)
        print(f"{len(MUTANTS)} mutants, {survived} survived")
        if options.markdown:
            with atomic_write(options.markdown) as file:
                file.write(_markdown(rows))
    return 1 if survived else 0


def _markdown(rows):
    head = ("# Formulas broken on purpose\n\nMade by `python tools/audit_mutants.py --markdown tests/audit/mutants.md`. "
            f"{len(rows)} mutants. The first check that fails is named; more may.\n\n"
            "| equation | was | broken | noticed by | error |\n|---|---|---|---|---|\n")
    lines = [f"| {mutant.breaks[0]} [{mutant.breaks[1]}] | {_code(mutant.old)} | {_code(mutant.new)} | {name} "
             f"| {error.replace('|', '/')} |\n" for mutant, (name, error) in rows]
    left_out = "".join(f"- {what}: {why}.\n" for what, why in EQUIVALENT.items())
    return head + "".join(lines) + "\nLeft out, since nobody could tell:\n\n" + left_out


def _code(text):
    return f"`{' '.join(text.split()).replace('|', '/')}`" if text else "(removed)"


if __name__ == "__main__":
    sys.exit(main())
