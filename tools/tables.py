"""Write the tables of the README pages from the JSON files in experiments/results.

    python -m tools.tables            # rewrite the tables between their markers
    python -m tools.tables --check    # exit 1 if a page says something else; check every run
    python -m tools.tables --collect mnist_best runs/eps2-seed1 runs/eps2-seed2

The tables of each page are data (tools/pages.py and tools/figure_pages.py, with rows of
tools/page_rows.py). A path, file, table or marker that is missing or misspelt ends in one line and
status 2. --collect first adds finished runs to experiments/results/NAME.json, a row for each; a
run's setting is the name of its folder less "-seedN", and a run of the same setting and seed is
replaced. A sweep writes its figure's file itself.
"""

import math
import re
import sys
from pathlib import Path

from experiments.common.results import hashes_of, ledger_of, packed, result_of, row_of, rows_of
from minidp.commands.flags import Parser, user_errors
from minidp.errors import MinidpError
from minidp.privacy import Ledger
from minidp.privacy.accountants import all_bounds
from minidp.util.atomic import atomic_write
from minidp.util.files import read_json, write_json
from tools.cells import RESULTS, ROOT, TableError, load
from tools.pages import PAGES

CLOSE = 1e-6  # relative: other processors round a little differently


def filled(page, text, tables):
    """The page's text with its tables, {name: lines}."""
    markers = len(re.findall(r"^<!-- end .* -->$", text, re.M))
    for name, lines in tables.items():
        pattern = re.compile(
            rf"(^<!-- {name}: [^\n]* -->\n)(?:(?!<!--).)*?(^<!-- end {name} -->$)", re.S | re.M
        )
        body = "\n".join(lines) + "\n"
        text, places = pattern.subn(lambda match: match[1] + body + match[2], text)
        if places != 1 or markers != len(tables):
            raise TableError(
                f"{page}: expected one line <!-- {name}: ... --> before <!-- end {name} -->, and "
                f"the ends of {len(tables)} tables; found {places} and {markers}"
            )
    return text


def recheck():
    """Rebuild every run's ledger from its settings, compare the SHA-256, compute epsilon again.

    Returns how many ledgers there are; a ledger that several runs have is accounted for once.
    """
    bounds = {}
    for path in sorted(RESULTS.glob("*.json")):
        for row in rows_of(load(path.name)):
            if "ledger_sha256" not in row:  # not one lot fitted into the budget
                continue
            try:
                _recheck(row, bounds)
            except (KeyError, TypeError, ValueError, MinidpError) as error:
                where = f"results/{path.name}: {row['name']}, seed {row['seed']}"
                raise TableError(f"{where}: {error}") from None
    return len(bounds)


def _recheck(row, bounds):
    ledger = ledger_of(row)
    if row["ledger_sha256"] not in hashes_of(ledger, row.get("rows_per_person")):
        raise MinidpError("its settings give another ledger than the one whose SHA-256 it states")
    key = row["ledger_sha256"], row["delta"], *row["epsilon"]
    if key not in bounds:
        bounds[key] = all_bounds(ledger, row["epsilon"], delta=row["delta"])
    for name, stated in row["epsilon"].items():
        now = bounds[key][name][0].to_json()
        ends = ("upper",) if stated["upper"] == "inf" else ("lower", "upper")
        if not all(_near(stated[end], now[end]) for end in ends):
            raise MinidpError(f"states epsilon {stated} by {name}, and its ledger gives {now}")


def _near(a, b):
    return a == b or (None not in (a, b) and math.isclose(float(a), float(b), rel_tol=CLOSE))


def collect(name, *folders):
    """Add finished runs to the file of a table. Raises MinidpError where a run's settings do not
    give its ledger.
    """
    path = RESULTS / f"{name}.json"
    before = read_json(path) if path.exists() else {}
    if set(before) - set(packed([{"name": ""}])):
        raise MinidpError(
            f"{path} is not a table of runs alone: the sweep or program that made it writes it"
        )
    rows = {(row["name"], row["seed"]): row for row in rows_of(before)}
    for folder in map(Path, folders):
        result = result_of(folder)
        row = row_of(folder.resolve().name.removesuffix(f"-seed{result['seed']}"), result)
        known = hashes_of(ledger_of(row), row.get("rows_per_person"))
        if Ledger.load(folder / "ledger.json").sha256() not in known:
            raise MinidpError(
                f"{folder}: ledger.json holds other charges than its settings give, such as those "
                "of an attempt that was cut off; make the run again in a folder of its own"
            )
        rows[row["name"], row["seed"]] = row
    write_json(path, packed(list(rows.values())))


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.tables", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare, do not write; check every run's ledger and epsilon",
    )
    parser.add_argument(
        "--collect", nargs="+", metavar=("NAME", "RUN"), help="first add finished runs to a table"
    )
    args = parser.parse_args(argv)
    stale = []
    with user_errors():
        if args.collect:
            collect(*args.collect)
        for page, tables in PAGES.items():
            text = (ROOT / page).read_text(encoding="utf-8")
            made = filled(page, text, tables())
            if made != text:
                stale.append(page)
                if not args.check:
                    with atomic_write(ROOT / page) as file:
                        file.write(made)
        if args.check:
            recheck()
        if args.check and stale:
            print(
                f"{', '.join(stale)}: not what experiments/results says; "
                "run python -m tools.tables",
                file=sys.stderr,
            )
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
