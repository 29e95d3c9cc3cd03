"""The tables of each page, as data."""

from functools import partial

import numpy as np

from experiments.common.results import EXPECTED, rows_of, verdict
from minidp.util.files import read_json
from tools.cells import RESULTS, Row, TableError, entries, load, markdown, runs, spread, table
from tools.columns import (
    ADULT,
    AGAINST,
    BEST,
    BEST_OF_ALL,
    CIFAR,
    CLAIMS,
    CNN,
    EARLIER,
    LEARNED,
    LEDGERS,
    LEVELS,
    NAMES,
    OWN,
    PANELS,
    PERSONS,
    SAMPLERS,
    STEPS,
    SWEEPS,
    TRAINED,
    TUNED,
)

LITTLE = ("0.01", "0.02", "0.03", "0.05", "0.1", "0.2")  # budgets
USUAL = ("0.5", "1", "2", "2.93", "8")
OTHERS = ("95.0% at 1.19", "96.6% at 3.01", "97.0% at 7.10")  # published for the CNN's settings
PUBLISHED = {
    ("mnist_best", "2.93"): "98.1% at 2.93, 98.7% at 3; tuning not counted",
    ("cifar_best", "1"): "60.9%; tuning not counted",
    ("cifar_best", "2"): "67.0%; tuning not counted",
}


def listed(columns, path, at):
    """The function that makes the table of a list in a file."""
    return lambda: table(columns, entries(path, at))


def grouped(lines):
    """A Markdown table whose rows with the same first cell are one row, each cell a list."""
    groups = {}
    for line in lines[2:]:
        first, *rest = line.strip("| ").split(" | ")
        groups.setdefault(first, []).append(rest)
    rows = [[first, *map("<br>".join, zip(*rests))] for first, rests in groups.items()]
    return [*lines[:2], *(f"| {' | '.join(row)} |" for row in rows)]


def panels():
    """Every point of Figure 5, and the horizontal lines of its panels."""
    for found in entries("figure_5.json", "panels"):
        (panel,) = found
        for point in panel["points"] + panel["lines"]:
            value = str(point["x"]).removeprefix("projection-")
            value += " (reference)" if point["x"] == panel["reference"] else ""
            yield Row([{**point, "panel": panel["label"], "value": value}], found.where)


def budgets():
    """Figure 4: the best accuracy for each (epsilon, delta)."""
    pairs = load("figure_4.json")["pairs"]
    best = {(pair["delta"], pair["epsilon"]): pair["test_accuracy"] for pair in pairs}
    epsilons = sorted({epsilon for _, epsilon in best})
    lines = []
    for delta in sorted({delta for delta, _ in best}):
        found = [best[delta, epsilon] for epsilon in epsilons]
        shown = ("nothing fits" if each is None else f"{each:.2%}" for each in found)
        lines.append([f"{delta:g}", *shown])
    return markdown(["delta", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines)


def scores():
    """The defaults of `minidp.fit` on data they were not tuned on."""
    for found in entries("own_data.json", "data"):
        (one,) = found
        form = "{:.3f} ({:.3f})" if "without_privacy" in one else "{:.2%} ({:.2%})"
        yield Row([{**one, "score": form.format(one["mean"], one["spread"])}], found.where)


def names():
    """Bits per character of the network and the tables, and copies of names, at each epsilon."""
    made = load("names_lstm.json")["runs"]
    for row in entries("names_lstm.json", "bits"):
        epsilon = float(row[0]["key"])
        runs = [run["generated"] for run in made if float(run["target_epsilon"]) == epsilon]
        yield row.having(**{key: np.mean([run[key] for run in runs]) for key in COPIES})


def steps(path):
    """Our steps on each workload, with their ratios to the floor and the peers as "to"."""
    for contest in load(path)["contests"]:
        for row in contest["rows"]:
            to = {
                pair["to"]: pair["ratio"]
                for pair in contest["ratios"]
                if pair["of"] == row["contender"]
            }
            if to:
                yield Row([{**row, "workload": contest["workload"], "to": to}], path)


def verdicts(experiment, *files, prefix=""):
    """A line for each number of the experiment in expected.json whose quantity begins so."""
    held = read_json(EXPECTED)
    if experiment not in held:
        raise TableError(f"expected.json: no experiment {experiment}")
    found = {}  # a run that several files hold counts once
    for file in files:
        data = load(f"{file}.json")
        for one in (data, *rows_of(data)):
            if one.get("experiment") == experiment:
                found.setdefault((one.get("name", file), one.get("seed")), (file, one))
    return markdown(
        ["what", "the paper", "ours", "seeds", "verdict", "from"],
        [
            judged(entry, found.values())
            for entry in held[experiment]
            if entry["quantity"].startswith(prefix)
        ],
    )


def judged(entry, results):
    """The cells of one number: what those of the (file, result) that it speaks of say together."""
    results = [(file, result) for file, result in results if verdict([result], entry)]
    if not results:
        raise TableError(
            f"expected.json: {entry['sentence']}: no committed result that it speaks of; mend "
            '"when"'
        )
    found = verdict([result for _, result in results], entry)
    number = partial(_number, entry)
    error = "" if found.error is None else f" ± {number(found.error)}"
    because, seeds = f" because {entry['because']}" if "because" in entry else "", len(found.values)
    if found.few:
        word = "too few seeds to say"
    elif not found.reproduced:
        word = (
            f"differs in {seeds - sum(map(found.agrees, found.values))} of {seeds} seeds"
            if "place" in entry
            else f"differs by {number(found.value - entry['value'], '+')}{error}"
        ) + because
    elif "side" in entry and not found.agrees(found.value, 0.0):
        within = f"{entry['tolerance']:g}"
        if entry.get("unit") == "%":
            within = f"{100 * entry['tolerance']:.2f} points"
        word = f"reproduced within {within}"
    else:
        word = "reproduced"
    mixed = "; versions mixed" if len(found.commits) > 1 and "deterministic" not in entry else ""
    links = ", ".join(
        f"[{file}](results/{file}.json)" for file in dict.fromkeys(file for file, _ in results)
    )
    return [
        entry["sentence"],
        (f"{entry['side']} " if "side" in entry else "") + number(entry["value"]),
        ", ".join(map(number, found.values)) if "place" in entry else number(found.value) + error,
        "-" if "deterministic" in entry else str(seeds),
        word + mixed,
        links,
    ]


def _number(entry, value, sign=""):
    if entry.get("unit") != "%":
        return f"{value:{sign}.4g}"
    if abs(value) < 0.5 and (sign or entry["quantity"].startswith("quantities.")):
        return f"{100 * value:{sign}.2f} points"
    return f"{value:{sign}.2%}"


def best(*budgets, job="mnist_best"):
    """A row for each budget of a data set."""
    return [
        runs(f"eps{name}", job, published=PUBLISHED.get((job, name), ""))
        for name in budgets or USUAL
    ]


def beside(rows, job):
    """The rows, each beside the mean accuracy of another experiment at its budget."""
    for row in rows:
        others = runs(row[0]["name"], job)
        yield row.having(beside=np.mean([each["test_accuracy"] for each in others]))


def with_learned(rows):
    """The rows of mnist_best, each beside mnist_learned at its budget, whose settings are equal."""
    for row in rows:
        others = runs(row[0]["name"], "mnist_learned")
        if others[0]["settings"] != row[0]["settings"] or len(others) != len(row):
            raise TableError(f"{others.where}: other settings or seeds than mnist_best has")
        yield row.having(
            learned=spread([one["test_accuracy"] for one in others]),
            before=others[0]["accuracy_before_training"],
        )


def sweeps():
    """A row for each figure that mnist_sweeps.py made."""
    for path in sorted(RESULTS.glob("figure_*.json")):
        data = load(path.name)
        if data["experiment"] == "mnist_sweeps":
            yield Row([{**data, "stem": path.stem}], f"results/{path.name}")


def earlier():
    """A row for each file whose program is no longer part of the project."""
    for path in sorted(RESULTS.glob("*.json")):
        data = load(path.name)
        if "last_commit" in data:
            yield Row([{**data, "stem": path.stem}], f"results/{path.name}")


def transfer():
    """A row for each setting of CIFAR-10 by transfer, beside the paper's accuracy if it has one."""
    papers = {
        f"{way}{epsilon}": paper
        for way in ("eps", "finetuned")
        for epsilon, paper in (("2", "67%"), ("4", "70%"), ("8", "73%"))
    }
    papers |= {"lot4000": "", "lot600": "", "watched-norms": "", "baseline": "80%"}
    return [
        runs(f"cifar_transfer-{name}", *TRANSFER, paper=paper) for name, paper in papers.items()
    ]


def levels():
    """Figure 3 and its variants: a row for each noise level."""
    for file, how in (
        ("figure_3", "moments"),
        ("figure_3-tight", "loss distribution"),
        ("figure_3-averaged", "loss distribution, weights averaged"),
    ):
        for row in entries(f"{file}.json", "levels"):
            yield row.having(how=how)


COPIES = "different", "in_training_set", "by_chance"
TRANSFER = ("figure_6", "figure_6-finetuned", "cifar_transfer-sentences")
JOBS = ("mnist_pca", "mnist_cnn")
PAGES = {
    "README.md": {
        "results": lambda: table(BEST_OF_ALL, beside(best(), "mnist_learned")),
    },
    "minidp/README.md": {
        "own data": lambda: table(OWN, scores()),
        "persons": listed(PERSONS, "persons.json", "auroc"),
        "which sampler": listed(SAMPLERS, "samplers.json", "runs"),
    },
    "tools/README.md": {
        "benchmark": lambda: table(AGAINST, steps("benchmark.json")),
        "avx2": lambda: table(STEPS, steps("benchmark_avx2.json")),
    },
    "experiments/README.md": {
        "names": lambda: table(NAMES, names()),
        "adult": lambda: table(
            ADULT,
            entries("adult.json", "figures") + entries("adult_diffprivlib.json", "figures"),
        ),
        "figure 2": lambda: verdicts("accountant_curves", "accountant_curves"),
        "commands": lambda: table(SWEEPS, sweeps()),
        "figure 3": lambda: table(LEVELS, levels()),
        "figure 3 verdicts": lambda: [
            *verdicts("mnist_pca", "figure_3", "figure_sentences"),
            *verdicts("mnist_sweeps", "figure_3-tight", "figure_3-averaged", prefix="levels.")[2:],
        ],
        "figure 4": budgets,
        "figure 5": lambda: grouped(table(PANELS, panels())),
        "figure 5c tuned": listed(TUNED, "figure_5c-tuned.json", "panels.c-tuned.points"),
        "sentences": lambda: verdicts(
            "mnist_sweeps", "figure_sentences", "figure_5c-tuned", prefix="quantities."
        ),
        "figure 6": lambda: table(CIFAR, transfer()),
        "figure 6 verdicts": lambda: verdicts("cifar_transfer", *TRANSFER),
        "ledgers": listed(LEDGERS, "paper_ledgers.json", "settings"),
        "ledgers verdicts": lambda: verdicts("paper_ledgers", "paper_ledgers"),
        "claims": listed(CLAIMS, "gdp.json", "claims"),
        "trained": lambda: grouped(table(TRAINED, entries("gdp.json", "trained"))),
        "cnn": lambda: table(
            CNN,
            [
                runs(f"setting{setting}", "mnist_cnn", published=published)
                for setting, published in enumerate(OTHERS, 1)
            ],
        ),
        "best": lambda: table(LEARNED, with_learned(best(*LITTLE, *USUAL))),
        "earlier programs": lambda: table(EARLIER, earlier()),
        "scratch": lambda: table(BEST, best("0.5", "1", "2", "4", "8", job="cifar_best")),
    },
}
