"""Rows of tables from the JSON files in experiments/results, and their cells as text.

A table is its rows, each the JSON objects of a setting's seeds, and a title and a template for each
column. A template names dotted paths, "{settings.clip_groups.0.noise_multiplier:g}"; $accountant in
a path is the object's own accountant, and "?" after the format allows a missing value, with the
text that then stands there. A path, file or table that is missing or misspelt is a TableError.
"""

import re
import statistics
import string
from pathlib import Path

from experiments.common.results import look_up, rows_of
from minidp.errors import MinidpError
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
