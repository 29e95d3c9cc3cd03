"""Check the tables of the pages: each number stands in the JSON that the table names.

A table stands between <!-- NAME: numbers of SOURCES --> and <!-- end NAME -->. A source is a file
of experiments/results and a dotted path in it; its entries are the members of the list or
dictionary there, or without a path the settings of a file of runs, each with all seeds, also of
several files, "A + B". "A and B" joins the entries of two sources that have one name. Every line of
a table has to find all of its numbers, to the digits printed, in one entry of one of the sources,
which commas separate.

Also, each run's ledger and epsilon are computed again from its settings. --collect NAME RUN...
first adds finished runs to experiments/results/NAME.json, a row for each; a run's setting is the
name of its folder less "-seedN", and a run of the same setting and seed is replaced.
"""

import math
import re
import statistics
import sys
from pathlib import Path

from experiments.common.results import (
    RESULTS,
    hashes_of,
    ledger_of,
    look_up,
    packed,
    result_of,
    row_of,
    rows_of,
)
from minidp.commands.flags import Parser, user_errors
from minidp.errors import MinidpError
from minidp.privacy import Ledger
from minidp.privacy.accountants import all_bounds
from minidp.util.atomic import atomic_write
from minidp.util.files import read_json, write_json
from tools import derived, paper
from tools.derived import TableError, load

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT / "minidp" / "PAPER.md"
CLOSE = 1e-6  # relative: other processors round a little differently
TABLE = re.compile(
    r"^<!-- (?P<name>[^:\n]+): numbers of (?P<sources>[^\n]+) -->\n"
    r"(?P<lines>.*?)^<!-- end (?P=name) -->$",
    re.S | re.M,
)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# titles of columns of upper ends of epsilon
UPPER = re.compile(r"^epsilon(?! \d)|pld|rdp|moments|gdp|CLT|certified|claimed|loss distribution")
LONGEST = 20  # of lists whose numbers are looked at: longer ones are curves
PRINTED = re.compile(rf"(?<![\w.+-]){NUMBER.pattern}")  # a number, and no part of a name: CIFAR-10


def misfits(text):
    """(name of the table, line) of each line of a page's tables with a number that is in none of
    the entries that it may be in.
    """
    for table in TABLE.finditer(text):
        pools = [pool for source in table["sources"].split(", ") for pool in _pools(source)]
        head, _, *lines = table["lines"].strip().splitlines()
        titles = _cells(head)
        for line in lines:
            for cells in _stacked(_cells(line)):
                if not any(_holds(pool, titles, cells) for pool in pools):
                    yield table["name"], " | ".join(cells)


def _cells(line):
    """The cells of a line, links without their targets."""
    line = re.sub(r"\]\([^)]*\)", "]", line)
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _stacked(cells):
    """The lines that stand in one, between <br>."""
    parts = [cell.split("<br>") for cell in cells]
    for at in range(max(map(len, parts))):
        yield [part[min(at, len(part) - 1)] for part in parts]


def _pools(source):
    """[(numbers, texts)] of the entries of a source."""
    first, *others = source.split(" and ")
    more = [dict(_entries(other)) for other in others]
    found = []
    for name, held in _entries(first):
        joined = [each for other in more for each in other.get(name, ())]
        found.append(_leaves([name, *held, *joined]))
    return found


def _entries(source):
    """[(name, values)] of the entries of a file, or of several files of runs."""
    files = source.split(" + ")
    file, _, at = files[0].partition(" ")
    data = load(file)
    if at:
        data = look_up(data, at, None)
        if data is None:
            raise TableError(f"results/{file}: no {at}")
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        return [(str(name), [one]) for name, one in pairs]
    runs = [run for each in files for run in rows_of(load(each))]
    if not runs:
        return [(file, [data])]
    names = dict.fromkeys(run["name"] for run in runs)
    groups = {name: [run for run in runs if run["name"] == name] for name in names}
    return [(name, [*seeds, _over_seeds(seeds)]) for name, seeds in groups.items()]


def _over_seeds(runs):
    """How many runs there are; mean, least and largest of the accuracies of their test."""
    found = {"seeds": len(runs)}
    for key in runs[0]:
        values = [run.get(key) for run in runs]
        if key.startswith("test_") and all(isinstance(value, float) for value in values):
            found[key] = [statistics.mean(values), min(values), max(values)]
    return found


def _leaves(value):
    """(numbers, texts) of a JSON value: numbers in texts and keys, and lengths of lists, too."""
    numbers, texts = [], []

    def walk(value):
        if isinstance(value, dict):
            for key, each in value.items():
                if key != "history":
                    walk(key)
                    walk(each)
        elif isinstance(value, list):
            numbers.append(len(value))
            for each in value if len(value) <= LONGEST else ():
                walk(each)
        elif isinstance(value, str):
            texts.append(value)
            for match in NUMBER.finditer(value):
                numbers.append(_value(match[0]) / _factor(value, match))
        elif value is not None:
            numbers.append(float(value))

    walk(value)
    return numbers, texts


def _value(text):
    return float(text.replace(",", ""))


def _holds(pool, titles, cells):
    numbers, texts = pool
    for title, cell in zip(titles, cells, strict=True):
        if cell.strip("`") in texts:
            continue
        up = bool(UPPER.search(title))
        if "`" in cell or not all(_stands(each, numbers, up) for each in _written(cell)):
            return False
    return True


def _written(cell):
    """(text of a number, its factor) of a cell."""
    for match in PRINTED.finditer(cell):
        yield match[0], _factor(cell, match)


def _factor(text, match):
    return 100 if text[match.end() :].startswith(("%", " points")) else 1


def _stands(written, numbers, up):
    """True if some number is this one, rounded to its digits; up: or rounded up, as epsilon is."""
    text, factor = written
    value, digits = _value(text), text.partition("e")[0]
    step = 10.0 ** -len(digits.partition(".")[2])
    if "e" in text:
        step *= 10.0 ** int(text.partition("e")[2])
    most = step if up else step / 2
    near = (factor * number - value for number in numbers if math.isfinite(number))
    return any(-most < off * (1 - 1e-9) <= step / 2 for off in near)


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


def check():
    """What is wrong with the pages' tables and the runs behind them, a line each."""
    if load(derived.FILE.name) != derived.derived():
        yield f"results/{derived.FILE.name}: stale: run python -m tools.derived"
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("**/*.md"))}
    for page, text in texts.items():
        for name, line in misfits(text):
            yield f"{page.relative_to(ROOT)}: {name}: not in the JSON that it names: {line}"
    for one in derived.derived()["verdicts"]:
        cells = (one[key] for key in ("what", "paper", "ours", "seeds", "verdict"))
        line = f"| {' | '.join(cells)} |"
        if not any(line in text for text in texts.values()):
            yield f"no page has the line {line}"
    recheck()


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.tables", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="compare minidp/PAPER.md, too, and do not write it"
    )
    parser.add_argument(
        "--collect", nargs="+", metavar=("NAME", "RUN"), help="first add finished runs to a table"
    )
    args = parser.parse_args(argv)
    with user_errors():
        if args.collect:
            collect(*args.collect)
        text = PAPER.read_text(encoding="utf-8")
        made = filled(PAPER.name, text, paper.tables())
        wrong = list(check())
        if made != text:
            if args.check:
                wrong.append(
                    f"{PAPER.name}: not what tools/paper.py says: run python -m tools.tables"
                )
            else:
                with atomic_write(PAPER) as file:
                    file.write(made)
    print("\n".join(wrong), end="\n" * bool(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
