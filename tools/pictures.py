"""Draw the pictures of the pages from what they show: a formula, Algorithm 1, the parts of a step,
and a model of the table on the page of tables.

    python -m tools.pictures            # write them: `make pictures`
    python -m tools.pictures --check    # exit 1 if a picture shows something else

Each file holds the texts and curves that it shows, so that they can be compared. Measured errors
are not compared, and curves to APART, because processors differ in the last digits.
"""

import csv
import importlib
import io
import json
import re
import sys
import textwrap
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

import minidp
from minidp.audit import report
from minidp.audit.algorithm import as_it_runs
from minidp.audit.checks import PRINTED
from minidp.backend import Backend
from minidp.commands.flags import Parser
from minidp.run import plotting
from minidp.util.atomic import atomic_write
from tools.tables import ROOT

FORMULA, ALGORITHM, STEP = (
    "minidp/audit/formula.png",
    "minidp/audit/algorithm_1.png",
    "minidp/step.png",
)
TABLES = "minidp/fitting/README.md"
COLUMNS, RELIABILITY = "minidp/fitting/columns.png", "minidp/fitting/reliability.png"
LABEL = "back_within_a_month"
APART = 0.05  # between points of two drawings of the same curve
SUM = r"\sum_"
GREEN, GREY, BLUE = "#2a9d6f", "#555555", "#0b4f8a"
BOXES = (  # (text, class or function, column, row) of a step of training
    ("data", "examples.LabelledExamples", 0, 0),
    ("lot: a random\nset of examples", "mechanism.samplers.PoissonSampler", 1, 0),
    ("a gradient for\neach example", "nn.network.Sequential", 2, 0),
    ("clip, add up", "mechanism.sanitizer.Sanitizer", 3, 0),
    ("noise", "mechanism.noise.add_gaussian", 4, 0),
    ("new weights", "train.optimizer.Optimizer", 5, 0),
    ("plan: sampler,\nnoise, steps", "mechanism.plan.Plan", 1, 1),
    ("budget: refuses\nwhat exceeds it", "privacy.budget.Filter", 2, 1),
    ("ledger, on disk\nbefore the noise", "privacy.ledger.Ledger", 3, 1),
    ("accountant", "certified.accountant.LossDistributionAccountant", 4, 1),
    ("epsilon,\nprivacy.md", "run.run.Run", 5, 1),
)


@contextmanager
def figure_on(path, size, texts):
    """A figure of `size` inches, written with the texts that it shows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    yield figure
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format="png", dpi=100, metadata={"Description": json.dumps(texts)})


def formula():
    """(texts, errors as texts) of one label of a card."""
    rows = [row for row in report.audit("Dense", Backend.numpy()) if row["label"] == "P1"]
    (row,) = rows
    (line,) = row["code"]
    texts = [
        "as the docstring prints it",
        row["equation"],
        row["source"],
        "the line that computes it",
        line["path"],
        line["text"],
        *(f"limit {each['tolerance']:.0e}: {_said(each)}" for each in row["measured"]),
    ]
    errors = [each["error"] for each in row["measured"]]
    return texts, [f"{error:.1e}" if error else "0" for error in errors]


def _said(measured):
    what = measured["check"].replace("_", " ")
    return f"{what}, {measured['method'] if measured['method'] != PRINTED else 'as printed'}"


def algorithm():
    """[(line, what it says, [(card and label, file, code)])] of Algorithm 1."""
    rows = [
        {"card": card.name, "label": label, "code": card.code_lines[label], "lines": lines}
        | {"path": card.module}
        for card, lines in report.shown()
        for label in card.labels
    ]
    by_place = {f"{row['card']}.{row['label']}": row for row in rows}
    return [
        (
            each["line"],
            each["says"],
            [
                (
                    f"{row['card'].rpartition('.')[2]} [{row['label']}]",
                    row["path"],
                    [report.one_line(row["lines"][a - 1 : b]) for a, b in row["code"]],
                )
                for row in map(by_place.__getitem__, each["places"])
            ],
        )
        for each in as_it_runs(rows)
    ]


def step():
    """[(text, class and its file)] of BOXES. Raises AttributeError for a class that is gone."""
    found = []
    for text, name, *_ in BOXES:
        module, _, held = name.rpartition(".")
        getattr(importlib.import_module(f"minidp.{module}"), held)
        found.append((text, f"{held}\n{module.replace('.', '/')}.py"))
    return found


def draw_formula(path):
    """The picture of `formula`."""
    texts, errors = formula()
    head, equation, source, over, file, code, *limits = texts
    with figure_on(path, (12.5, 2.9), texts) as figure:
        figure.text(0.01, 0.9, head, color=GREY, size=12)
        shown = equation.partition("    ")
        figure.text(0.01, 0.68, _typeset(shown[0]), size=19)
        _paragraph(figure, 0.01, 0.5, f"{shown[2].strip()}. {source}", 52, GREY, 10)
        figure.text(0.36, 0.9, over, color=GREY, size=12)
        figure.text(0.36, 0.77, file, size=11)
        _paragraph(figure, 0.36, 0.68, code, 36, "black", 11, "monospace")
        figure.text(0.67, 0.9, "how far apart they are", color=GREY, size=12)
        for n, (error, limit) in enumerate(zip(errors, limits)):
            value, _, what = limit.partition(": ")
            y = 0.77 - 0.165 * n
            figure.text(0.67, y, error, color=GREEN, weight="bold", size=12)
            figure.text(0.74, y, f"({value})", size=11)
            figure.text(0.67, y - 0.07, what, color=GREY, size=8)


def draw_algorithm(path):
    """The picture of `algorithm`."""
    lines = algorithm()
    height = sum(max(0.95, 0.5 * len(places) + 0.2) for _, _, places in lines) + 0.2
    with figure_on(path, (12.5, height), lines) as figure:
        y = height - 0.35
        for number, (line, says, places) in enumerate(lines, 1):
            figure.text(0.01, y / height, f"{number}  {line}", weight="bold", size=13)
            _paragraph(figure, 0.028, (y - 0.25) / height, says, 50, GREY, 10.5)
            top = y
            for name, file, code in places:
                figure.text(0.42, y / height, name, color=BLUE, size=11)
                figure.text(0.62, y / height, file, color=GREY, size=10)
                text = textwrap.shorten("; ".join(code), 84, placeholder=" ...")
                figure.text(0.42, (y - 0.21) / height, text, family="monospace", size=9.5)
                y -= 0.5
            y = min(y, top - 0.75) - 0.2


def draw_step(path):
    """The picture of `step`."""
    shown = step()
    with figure_on(path, (12.5, 3.4), shown) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, 6)
        axes.set_ylim(0.1, 2.1)
        for (text, where), (_, _, column, row) in zip(shown, BOXES):
            x, y = column + 0.5, 1.5 - row
            color = "#e8f1fa" if row == 0 else "#e9f5ef"
            box = {"boxstyle": "round,pad=0.45", "facecolor": color, "edgecolor": GREY}
            axes.text(x, y + 0.1, text, ha="center", va="center", size=11, bbox=box)
            below = 0.32 if row else -0.42
            axes.text(x, y - below, where, ha="center", va="center", size=7.5, color=GREY)
        arrow = {"arrowstyle": "->", "color": GREY, "lw": 1.4}
        for row, columns in ((0, range(5)), (1, range(1, 5))):
            for column in columns:
                y = 1.6 - row
                axes.annotate("", (column + 1.07, y), (column + 0.95, y), arrowprops=arrow)
        axes.annotate("", (4.4, 1.42), (3.6, 0.8), arrowprops=arrow)
        axes.text(4.1, 1.08, "first the charge", ha="left", size=9, color=GREY)


@cache
def of_the_table():
    """{file's name: (what it shows, its bytes)} of the pictures that a model writes of itself, by
    the program, the schema and the command of the page of tables.
    """
    page = (ROOT / TABLES).read_text(encoding="utf-8")
    program, schema = (
        re.search(rf"^```{kind}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1]
        for kind in ("python", "json")
    )
    found, save = {}, plotting.save

    def kept(figure, path):
        save(figure, file := io.BytesIO())
        found[Path(path).name] = _drawn(figure), file.getvalue()

    with TemporaryDirectory() as folder, chdir(folder):
        exec(compile(program, TABLES, "exec"), {})
        # other people: another seed, and numbers of patients that the first table does not have
        others = program.replace("default_rng(1)", "default_rng(2)").replace(
            "(1, 4001)", "(5001, 9001)"
        )
        exec(compile(others.replace("visits.csv", "held_out.csv"), TABLES, "exec"), {})
        with open("held_out.csv", encoding="utf-8", newline="") as file:
            came_back = [row[LABEL] for row in csv.DictReader(file)]
        model = minidp.fit(
            "visits.csv",
            schema=json.loads(schema),
            epsilon=1,
            person="patient",
            rows_per_person=3,
            seed=1,
            quiet=True,
        )
        with patch.object(plotting, "save", kept):
            model.report("pictures", test=("held_out.csv", came_back))
    return found


def _drawn(figure):
    """[(title, [points])] of the curves in a figure; dates are days since 1970."""
    return [
        (
            axis.get_title(),
            [np.stack(line.get_data(orig=False), axis=1).round(3).tolist() for line in axis.lines],
        )
        for axis in figure.axes
        if axis.lines
    ]


def _draw_of_the_table(path):
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    shown, data = of_the_table()[path.name]
    described = PngInfo()
    described.add_itxt("Description", json.dumps(shown))
    with Image.open(io.BytesIO(data)) as image, atomic_write(path, "wb") as file:
        image.save(file, format="png", pnginfo=described)


def _typeset(equation):
    """An equation of a card in the mathematical text of Matplotlib."""
    indices = re.sub(r"_([A-Za-z0-9]+)", r"_{\1}", equation)
    spaced = indices.replace("} ", r"}\;")
    return f"${spaced.replace('sum_', SUM)}$"


def _paragraph(figure, x, y, text, width, color, size, family=None):
    figure.text(x, y, textwrap.fill(text, width), color=color, size=size, family=family, va="top")


PICTURES = {
    FORMULA: (draw_formula, lambda: formula()[0]),
    ALGORITHM: (draw_algorithm, algorithm),
    STEP: (draw_step, step),
    COLUMNS: (_draw_of_the_table, lambda: of_the_table()["columns.png"][0]),
    RELIABILITY: (_draw_of_the_table, lambda: of_the_table()["reliability.png"][0]),
}


def shows(path):
    """The texts that a picture's file says it shows."""
    from PIL import Image

    with Image.open(path) as image:
        return json.loads(image.text.get("Description", "null"))


def stale():
    """Paths of the pictures that show something else than the code."""
    return [
        path
        for path, (_, texts) in PICTURES.items()
        if not (ROOT / path).is_file()
        or not alike(shows(ROOT / path), json.loads(json.dumps(texts())))
    ]


def alike(shown, now):
    """True for equal texts, and numbers of which none is farther apart than APART."""
    if isinstance(shown, list) and isinstance(now, list):
        return len(shown) == len(now) and all(map(alike, shown, now))
    if isinstance(shown, float) and isinstance(now, float):
        return abs(shown - now) <= APART
    return shown == now


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.pictures", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not draw")
    args = parser.parse_args(argv)
    old = stale()
    if args.check and old:
        print(f"{', '.join(old)}: shows something else than the code; run make pictures")
        return 1
    for path in () if args.check else PICTURES:
        PICTURES[path][0](ROOT / Path(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
