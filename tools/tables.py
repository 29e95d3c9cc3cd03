"""Write the tables of the README pages from the JSON files in experiments/results.

    python -m tools.tables            # rewrite the tables between their markers
    python -m tools.tables --check    # exit 1 if a page says something else; check every run

A table is data (tools/pages.py): its rows, each the JSON objects of a setting's seeds, and a title
and a template for each column. A template names dotted paths,
"{settings.clip_groups.0.noise_multiplier:g}"; $accountant in a path is the object's own accountant,
and "?" after the format allows a missing value, with the text that then stands there. A path, file,
table or marker that is missing or misspelt ends in one line and status 2.
"""

import math
import re
import statistics
import string
import sys
from pathlib import Path

from experiments.common.results import ledger_of, look_up, rows_of, sha256_of
from minidp.commands.flags import Parser, user_errors
from minidp.errors import MinidpError
from minidp.privacy.catalogue import all_bounds
from minidp.privacy.ledger import FORMAT
from minidp.util.atomic import atomic_write
from minidp.util.files import read_json
from minidp.util.text import upper_text

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
# of paths that tables share
SHORT = {
    "SIGMA": "settings.clip_groups.0.noise_multiplier",
    "C": "settings.clip_groups.0.clip_norm",
    "SPENT": "epsilon.$accountant.upper",
}
CLOSE = 1e-6  # relative: other processors round a little differently


class TableError(MinidpError):
    """A table cannot be made, or has no place."""


class Row(list):
    """The JSON objects that a row of a table speaks of, and the file that they come from."""

    def __init__(self, objects, where):
        super().__init__(objects)
        self.where = where

    def having(self, **words):
        """The row with further values of each object."""
        return Row([{**one, **words} for one in self], self.where)


class Cell:
    """The values at one path, an object each; None where an object has none."""

    def __init__(self, path, row):
        self.path, self.row = SHORT.get(path, path), row
        self.values = [self._value(one) for one in row]

    def _value(self, one):
        if self.path == "self":
            return one
        try:
            return look_up(
                one, re.sub(r"\$(\w+)", lambda name: str(look_up(one, name[1])), self.path)
            )
        except KeyError:
            return None

    def __format__(self, spec):
        spec, optional, absent = spec.partition("?")
        if None in self.values:
            if optional:
                return absent or "-"
            raise TableError(f"{self.row.where}: no {self.path}, which a column of the table names")
        if spec in FORMATS:
            return FORMATS[spec](self.values)
        if any(value != self.values[0] for value in self.values):
            raise TableError(f"{self.row.where}: {self.path} differs between seeds: {self.values}")
        try:
            return format(float("inf") if self.values[0] == "inf" else self.values[0], spec)
        except ValueError as error:
            raise TableError(f"{self.row.where}: {self.path}: {error}") from None


class Template(string.Formatter):
    """str.format whose fields are dotted paths into a row's objects."""

    def get_field(self, name, args, kwargs):
        return Cell(name, kwargs["row"]), None


def spread(values):
    """Mean and range of fractions in percent; of a summary's row, those that it states."""
    if isinstance(values[0], dict):
        (one,) = values
        if "reason" in one:
            return f"no lot left: {one['reason']}"
        mean, low, high = one["test_accuracy"], one["lowest"], one["highest"]
        several = one["seeds"] > 1
    else:
        mean, low, high = statistics.mean(values), min(values), max(values)
        several = len(values) > 1
    return f"{mean:.2%}" + (f" ({low:.2%} to {high:.2%})" if several else "")


FORMATS = {
    "spread": spread,
    "upper": lambda values: upper_text(max(map(float, values)), decimals=3),
    "count": lambda values: str(len(values)),
    "items": lambda values: str(len(values[0])),
    "run": lambda values: values[0].removeprefix("cifar_transfer-"),
    "optimizer": lambda values: {"sgd": "NoisySGD", "adam": "NoisyAdam"}[values[0]],
    "listed": lambda values: ", ".join(values[0]),
    "ms": lambda values: f"{values[0]:.3g}" if values[0] < 100 else f"{values[0]:.0f}",
    "minutes": lambda values: f"{values[0] / 60:.0f}",
}


def load(path):
    """The content of a JSON file below results/."""
    return read_json(RESULTS / path, TableError)


def runs(name, *files, **words):
    """A row of all runs of a setting in some files, one a seed, each with `words` as well."""
    found = {
        one["seed"]: {**one, **words}
        for file in files
        for one in rows_of(load(f"{file}.json"))
        if one["name"] == name
    }
    where = ", ".join(f"results/{file}.json" for file in files)
    if not found:
        raise TableError(f"{where}: no run of {name}")
    return Row(found.values(), f"{where}: {name}")


def entries(path, at):
    """A row for each entry of a list, or of a dictionary with its key as "key", in a file."""
    try:
        found = look_up(load(path), at)
    except KeyError:
        raise TableError(f"results/{path}: no {at}") from None
    found = (
        [{"key": key, **one} for key, one in found.items()] if isinstance(found, dict) else found
    )
    return [Row([one], f"results/{path}") for one in found]


def table(columns, rows):
    """Lines of Markdown: `columns` of (title, template), a line for each row."""
    fill = Template()
    return markdown(
        [title for title, _ in columns],
        [[fill.vformat(template, (), {"row": row}) for _, template in columns] for row in rows],
    )


def markdown(header, rows):
    """Lines of a Markdown table."""
    return [
        f"| {' | '.join(header)} |",
        "|" + "---|" * len(header),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def filled(page, text, tables):
    """The page's text with every table made anew."""
    named = re.findall(r"^<!-- end (.*) -->$", text, re.M)
    if sorted(named) != sorted(tables):
        odd = sorted(set(named) ^ set(tables)) or [
            name for name in set(named) if named.count(name) > 1
        ]
        raise TableError(
            f"{page}: expected markers <!-- NAME: ... --> and <!-- end NAME --> of each table "
            f"once; look at {odd}"
        )
    for name, made in tables.items():
        pattern = re.compile(
            rf"(^<!-- {name}: [^\n]* -->\n)(?:(?!<!--).)*?(^<!-- end {name} -->$)", re.S | re.M
        )
        if len(pattern.findall(text)) != 1:
            raise TableError(
                f"{page}: expected a line <!-- {name}: ... --> before <!-- end {name} -->"
            )
        body = "\n".join(made()) + "\n"
        text = pattern.sub(lambda match: match[1] + body + match[2], text)
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
            where = f"results/{path.name}: {row['name']}, seed {row['seed']}"
            try:
                _recheck(row, bounds)
            except KeyError as error:
                raise TableError(f"{where}: no {error}") from None
            except (TypeError, ValueError, MinidpError) as error:
                raise TableError(f"{where}: {error}") from None
    return len(bounds)


def _recheck(row, bounds):
    ledger = ledger_of(row)
    if sha256_of(ledger, row.get("ledger_format", FORMAT)) != row["ledger_sha256"]:
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


def main(argv=None):
    """The command line; returns the exit status."""
    from tools.pages import PAGES

    parser = Parser(prog="python -m tools.tables", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare, do not write; check every run's ledger and epsilon",
    )
    args = parser.parse_args(argv)
    stale = []
    with user_errors():
        for page, tables in PAGES.items():
            text = (ROOT / page).read_text(encoding="utf-8")
            made = filled(page, text, tables)
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
