"""Tables in Markdown from the JSON files in experiments/results.

A row of a table is a list of JSON objects, one for each seed of its setting. A column is a title
and a template that names values by dotted paths: "{settings.clip_groups.0.noise_multiplier:g}".
$accountant in a path is the object's own accountant, and "?" after the format allows a missing
value, with the text that then stands there. What is missing or misspelt is a TableError.
"""

import re
import statistics
import string
from functools import partial
from pathlib import Path

from experiments.common.results import EXPECTED, look_up, rows_of, verdict
from minidp.errors import MinidpError
from minidp.privacy.accountants import called
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


def load(path):
    """The content of a JSON file below results/."""
    return read_json(RESULTS / path, TableError)


def runs(name, *files, **words):
    """The row of a setting: its runs in some files, one a seed, each with `words` as well."""
    words["where"] = f"{', '.join(f'results/{file}.json' for file in files)}: {name}"
    found = {
        one["seed"]: {**one, **words}
        for file in files
        for one in rows_of(load(f"{file}.json"))
        if one["name"] == name
    }
    if not found:
        raise TableError(f"{words['where']}: no such run")
    return list(found.values())


def entries(path, at, **words):
    """A row for each entry of a list, or of a dictionary with its key as "key", in a file."""
    found = look_up(load(path), at, None)
    if found is None:
        raise TableError(f"results/{path}: no {at}")
    if isinstance(found, dict):
        found = [{"key": key, **one} for key, one in found.items()]
    return [[{**one, **words, "where": f"results/{path}"}] for one in found]


def files(pattern):
    """A row for each file of a pattern: its content, and its name without .json as "stem"."""
    return [
        [{**load(path.name), "stem": path.stem, "where": f"results/{path.name}"}]
        for path in sorted(RESULTS.glob(pattern))
    ]


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
    "accountant": lambda values: called(values[0]),
    "listed": lambda values: ", ".join(values[0]),
    "ms": lambda values: f"{values[0]:.3g}" if values[0] < 100 else f"{values[0]:.0f}",
    "minutes": lambda values: f"{values[0] / 60:.0f}",
}


class Template(string.Formatter):
    """str.format whose fields are dotted paths into the objects of a row."""

    def get_field(self, name, args, kwargs):
        path = SHORT.get(name, name)
        return [self.value(one, path) for one in args], path

    def value(self, one, path):
        """The value at a path; None where an object has none."""
        path = re.sub(r"\$(\w+)", lambda found: str(look_up(one, found[1], None)), path)
        return one if path == "self" else look_up(one, path, None)

    def format_field(self, values, spec):
        spec, optional, absent = spec.partition("?")
        if None in values:
            if optional:
                return absent or "-"
            raise TableError("a value that a column names is not there")
        if spec in FORMATS:
            return FORMATS[spec](values)
        if any(value != values[0] for value in values):
            raise TableError(f"differs between seeds: {values}")
        return format(float("inf") if values[0] == "inf" else values[0], spec)


def table(columns, rows, grouped=False):
    """Lines of Markdown, one for each row.

    columns   lines of "title: template"
    grouped   whether rows with the same first cell are one row, each other cell a list
    """
    titles, templates = zip(*(line.split(": ", 1) for line in columns.strip().splitlines()))
    lines = [[_cell(template, row) for template in templates] for row in rows]
    if grouped:
        groups = {}
        for first, *rest in lines:
            groups.setdefault(first, []).append(rest)
        lines = [[first, *map("<br>".join, zip(*rests))] for first, rests in groups.items()]
    return markdown(titles, lines)


def _cell(template, row):
    try:
        return Template().vformat(template, row, {})
    except (TableError, ValueError) as error:
        raise TableError(f"{row[0]['where']}: {template}: {error}") from None


def markdown(header, rows):
    """Lines of a Markdown table."""
    return [
        f"| {' | '.join(header)} |",
        "|" + "---|" * len(header),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def verdicts(experiment, *names, prefix=""):
    """A line for each number of the experiment in expected.json whose quantity begins so."""
    held = read_json(EXPECTED)
    if experiment not in held:
        raise TableError(f"expected.json: no experiment {experiment}")
    found = {}  # a run that several files hold counts once
    for name in names:
        data = load(f"{name}.json")
        for one in (data, *rows_of(data)):
            if one.get("experiment") == experiment:
                key = one.get("name", name), one.get("seed")
                found.setdefault(key, {**one, "file": name})
    return markdown(
        ["what", "the paper", "ours", "seeds", "verdict", "from"],
        [
            judged(entry, found.values())
            for entry in held[experiment]
            if entry["quantity"].startswith(prefix)
        ],
    )


def judged(entry, results):
    """The cells of one number: what the results that it speaks of say together."""
    results = [one for one in results if verdict([one], entry)]
    if not results:
        raise TableError(
            f"expected.json: {entry['sentence']}: no committed result that it speaks of; mend "
            '"when"'
        )
    found = verdict(results, entry)
    number = partial(_number, entry)
    ours, seeds = number(found.value), str(len(found.values))
    if "place" in entry:
        ours = ", ".join(map(number, found.values))
    elif found.error is not None:
        ours += f" ± {number(found.error)}"
    if "deterministic" in entry:
        seeds = "-"
    links = [
        f"[{file}](results/{file}.json)" for file in dict.fromkeys(each["file"] for each in results)
    ]
    paper = f"{entry.get('side', '')} {number(entry['value'])}".strip()
    return [entry["sentence"], paper, ours, seeds, _word(entry, found), ", ".join(links)]


def _word(entry, found):
    """Whether a number is reproduced."""
    if found.few:
        word = "too few seeds to say"
    elif found.reproduced:
        word = "reproduced"
        judged = found.values if "place" in entry else [found.value]
        if not all(found.agrees(value, 0.0) for value in judged):
            percent = entry.get("unit") == "%"
            tolerance = entry["tolerance"]
            word += f" within {100 * tolerance:.2f} points" if percent else f" within {tolerance:g}"
    else:
        seeds = len(found.values)
        if "place" in entry:
            wrong = seeds - sum(map(found.agrees, found.values))
            word = f"differs in {wrong} of {seeds} seeds"
        else:
            word = f"differs by {_number(entry, found.value - entry['value'], '+')}"
            word += "" if found.error is None else f" ± {_number(entry, found.error)}"
        word += f" because {entry['because']}" if "because" in entry else ""
    mixed = len(found.commits) > 1 and "deterministic" not in entry
    return word + ("; versions mixed" if mixed else "")


def _number(entry, value, sign=""):
    if entry.get("unit") != "%":
        return f"{value:{sign}.4g}"
    if abs(value) < 0.5 and (sign or entry["quantity"].startswith("quantities.")):
        return f"{100 * value:{sign}.2f} points"
    return f"{value:{sign}.2%}"
