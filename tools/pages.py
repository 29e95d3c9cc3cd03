"""The tables of each page, as data for tools/tables.py."""

import json

import numpy as np

from experiments.common.results import ledger_of, rows_of
from experiments.common.verdicts import EXPECTED, verdict
from minidp.privacy import RenyiAccountant, poisson_stopped_epsilon
from tools.tables import RESULTS, Row, TableError, entries, load, markdown, runs, table

SPENT, LOTS, SEEDS = (
    ("epsilon, delta 1e-5", "{SPENT:upper}"),
    ("lots", "{steps:,}"),
    ("seeds", "{seed:count}"),
)
ACCURACY, SUMMARY = (
    ("test accuracy, mean (range)", "{test_accuracy:spread}"),
    ("test accuracy", "{self:spread}"),
)
LOT = ("lots of", "{settings.expected_lot_size:,}")

CNN = [
    (
        "setting",
        "{config.setting}: sigma {SIGMA:g}, {epochs:.0f} epochs, rate {settings.learning_rate:g}, "
        "C {C:g}",
    ),
    ACCURACY,
    SEEDS,
    ("published", "{published}"),
    *(
        (name, f"{{epsilon.{name}.upper:upper}}")
        for name in ("loss_distribution", "renyi", "moments", "gaussian_clt")
    ),
]
CIFAR = [
    ("epsilon, delta 1e-5", "{SPENT:upper} ({accountant})"),
    ("sigma, of the mean", "{SIGMA:.3g}, {settings.mean_noise_multiplier:.3g?none}"),
    LOT,
    LOTS,
    ("trained", "{config.train_layers:?one layer, on fixed features}"),
    ("network, on the public classes", "{pretrained.test_accuracy:.1%}"),
    ACCURACY,
    ("over ten views", "{test_accuracy_over_views:spread}"),
    SEEDS,
    ("the paper", "{paper}"),
]
BEST = [
    ("epsilon, delta 1e-5", "{epsilon.loss_distribution.upper:upper}"),
    ("sigma, of the mean", "{SIGMA:.3g}, {settings.mean_noise_multiplier:.3g}"),
    LOT,
    LOTS,
    ("rate, C", "{settings.learning_rate:.3g}, {C:.3g}"),
    ("epsilon of a search there", "{searched:upper}"),
    ACCURACY,
    SEEDS,
    ("published", "{published}"),
]
LEARNED = [
    *BEST[:5],
    ACCURACY,
    SEEDS,
    ("networks before training", "{accuracy_before_training:.2%}"),
    ("no drawn digits", "{beside:.2%}"),
]
LITTLE, USUAL = (
    ("0.01", "0.02", "0.03", "0.05", "0.1", "0.2"),
    ("0.5", "1", "2", "2.93", "8"),
)  # budgets
PUBLISHED = {
    ("mnist_best", "2.93"): "98.1% at 2.93, 98.7% at 3; tuning not counted",
    ("cifar_best", "1"): "60.9%; tuning not counted",
    ("cifar_best", "2"): "67.0%; tuning not counted",
}
SWEEPS = [
    ("figure", "{figure}"),
    ("command", "`{command}`"),
    ("runs' time, minutes", "{seconds_of_all_runs:minutes}"),
    ("seeds", "{seeds:items}"),
    ("device", "{device:listed}"),
    ("ours", "[picture](results/{stem}.png), [numbers](results/{stem}.json)"),
]
LEVELS = [
    ("noise (sigma, sigma_pca)", "{key} ({sigma}, {sigma_pca})"),
    ("epsilon, delta 1e-5", "{epsilon:upper}"),
    LOTS,
    SUMMARY,
    ("training (not private)", "{train_accuracy_not_private:.2%}"),
    ("seeds", "{seeds}"),
]
PANELS = [
    ("panel", "{panel}"),
    ("value", "{value}"),
    LOTS,
    ("epochs", "{epochs:.4g?0}"),
    SUMMARY,
    ("seeds", "{seeds}"),
]
TUNED = [("lots of", "{x:,}"), ("rate", "{learning_rate.final:g}"), *PANELS[2:]]
CIFAR_RUNS = [
    ("run", "{name:run}-seed{seed}"),
    SPENT,
    LOT,
    ("sigma", "{SIGMA:.3g}"),
    ("C", "{C:.3g}"),
    LOTS,
    ("test accuracy", "{test_accuracy:.2%}"),
    ("over ten views", "{test_accuracy_over_views:.2%}"),
]
LEDGERS = [
    ("(sigma, sigma_pca)", "({sigma}, {sigma_pca})"),
    ("lots", "{lots:,}"),
    ("reported", "{reported_epsilon:g?none}"),
    ("2016 ledger, a comparison", "{ledger_2016:.3f}"),
    ("joint rule, moments", "{joint_moments:upper}"),
    ("joint rule, loss distribution", "{joint_loss_distribution.upper:upper}"),
    ("the same, balls in bins", "{joint_balls_in_bins.upper:upper}"),
    ("flat clipping, moments", "{flat_moments:upper}"),
    ("accuracy reported", "{reported_accuracy:.0%?none}"),
    ("today at the reported epsilon", "{today.accuracy_at_reported_epsilon:.2%?none}"),
    ("least epsilon seen today with that accuracy", "{today.epsilon_of_reported_accuracy:g?none}"),
]
CLAIMS = [
    ("published (sigma, epochs)", "({sigma}, {epochs})"),
    ("claimed epsilon", "{claim:upper}"),
    *(
        (
            f"{words} (certified epsilon)",
            f"{{accountants.{name}.noise_multiplier:.4f}} "
            f"({{accountants.{name}.worth.upper:upper}})",
        )
        for words, name in (
            ("sigma by moments", "moments"),
            ("by CLT", "gaussian_clt"),
            ("by loss distribution", "loss_distribution"),
        )
    ),
]
OWN = [
    ("data", "{about}"),
    ("rows", "{rows:,}"),
    ("accuracy, or R2 (standard deviation)", "{score}"),
    ("without privacy", "{without_privacy:.3f?}"),
    ("epsilon", "{epsilon:upper}"),
    ("delta", "{delta:g}"),
]
SAMPLERS = [
    ("`--sampler`", "`{sampler}`"),
    ("lots", "{lots}"),
    ("neighbours", "{neighbours}"),
    ("epsilon at most", "{loss_distribution.upper:upper}"),
]
LOTTERIES = [
    ("experiment", "{experiment}"),
    ("lots drawn", "{sampler}"),
    ("sigma", "{SIGMA:g}"),
    ("epsilon by loss distribution", "{epsilon.loss_distribution.upper:upper}"),
    LOTS,
    ACCURACY,
    SEEDS,
]
STEPS = [
    ("workload", "{workload}"),
    ("gradients", "{contender}"),
    ("step, ms", "{step_ms:ms}"),
    ("to floor", "{to.floor:.2f}"),
    ("to PyTorch, not private", "{to.torch:.2f}"),
]
AGAINST = [
    *STEPS,
    ("to JAX, not private", "{to.jax:.2f}"),
    ("to Opacus, ghost clipping", "{to.opacus-ghost:.2f}"),
]
TRAINED = [
    ("optimizer", "{optimizer:optimizer}"),
    ("noise by", "{by}"),
    LOTS,
    SUMMARY,
    ("seeds", "{seeds}"),
]


def with_baseline(columns, first, private, baseline):
    """A table whose last row is a run without privacy, which its first column says in words."""
    return table(columns, private) + table([("", first), *columns[1:]], [baseline])[2:]


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
    return markdown(
        ["delta", *(f"epsilon {epsilon:g}" for epsilon in epsilons)],
        [
            [
                f"{delta:g}",
                *(
                    "nothing fits" if best[delta, e] is None else f"{best[delta, e]:.2%}"
                    for e in epsilons
                ),
            ]
            for delta in sorted({delta for delta, _ in best})
        ],
    )


def scores():
    """The defaults of `minidp.fit` on data they were not tuned on."""
    for found in entries("own_data.json", "data"):
        (one,) = found
        form = "{:.3f} ({:.3f})" if "without_privacy" in one else "{:.2%} ({:.2%})"
        yield Row([{**one, "score": form.format(one["mean"], one["spread"])}], found.where)


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
    """A line for each number that expected.json holds for an experiment, whose quantity begins
    so.
    """
    held = json.loads(EXPECTED.read_text(encoding="utf-8"))
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
    number = lambda value, sign="": _number(value, entry, sign)
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
        word = "reproduced within " + (
            f"{100 * entry['tolerance']:.2f} points"
            if entry.get("unit") == "%"
            else f"{entry['tolerance']:g}"
        )
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


def _number(value, entry, sign=""):
    if entry.get("unit") != "%":
        return f"{value:{sign}.4g}"
    points = entry["quantity"].startswith("quantities.") or sign
    return (
        f"{100 * value:{sign}.2f} points" if points and abs(value) < 0.5 else f"{value:{sign}.2%}"
    )


def best(*budgets, job="mnist_best"):
    """A data set at every budget, and what comparing so many settings there privately would have
    cost at the same noise.
    """
    compared = np.size(load(f"{job}_settings.json")["tried"][-1]["accuracies"])
    for name in budgets or USUAL:
        row = runs(f"eps{name}", job, published=PUBLISHED.get((job, name), ""))
        price = poisson_stopped_epsilon(
            RenyiAccountant(), ledger_of(row[0]), row[0]["delta"], compared
        )
        yield row.having(searched=price)


def beside(rows, job):
    """The rows, each beside the mean accuracy of another experiment at its budget."""
    for row in rows:
        others = runs(row[0]["name"], job)
        yield row.having(beside=np.mean([each["test_accuracy"] for each in others]))


def sweeps():
    """A row for each figure that mnist_sweeps.py made."""
    for path in sorted(RESULTS.glob("figure_*.json")):
        data = load(path.name)
        if data["experiment"] == "mnist_sweeps":
            yield Row([{**data, "stem": path.stem}], f"results/{path.name}")


def transfer():
    """A row for each run on CIFAR-10 by transfer."""
    found = {
        (one["name"], one["seed"]): one
        for file in TRANSFER
        for one in rows_of(load(f"{file}.json"))
    }
    return [Row([one], f"{name}, seed {seed}") for (name, seed), one in sorted(found.items())]


TRANSFER = ("figure_6", "figure_6-finetuned", "cifar_transfer-sentences")
JOBS = ("mnist_pca", "mnist_cnn")
PAGES = {
    "README.md": {
        "results": lambda: table(
            [BEST[0], *BEST[-3:], ("with features learned from drawn digits", "{beside:.2%}")],
            beside(best(), "mnist_learned"),
        )
    },
    "minidp/README.md": {
        "own data": lambda: table(OWN, scores()),
        "which sampler": lambda: table(SAMPLERS, entries("samplers.json", "runs")),
    },
    "tools/README.md": {
        "benchmark": lambda: table(AGAINST, steps("benchmark.json")),
        "avx2": lambda: table(STEPS, steps("benchmark_avx2.json")),
    },
    "experiments/README.md": {
        "samplers": lambda: table(
            LOTTERIES,
            [
                runs(f"{job}-{name}", "balls_in_bins")
                for job in JOBS
                for name in ("poisson", "balls-in-bins")
            ],
        ),
        "figure 2": lambda: verdicts("accountant_curves", "accountant_curves"),
        "commands": lambda: table(SWEEPS, sweeps()),
        "figure 3": lambda: table(LEVELS, entries("figure_3.json", "levels")),
        "figure 3 verdicts": lambda: verdicts("mnist_pca", "figure_3", "figure_sentences"),
        "figure 3 tight": lambda: table(LEVELS, entries("figure_3-tight.json", "levels")),
        "figure 3 tight verdicts": lambda: verdicts(
            "mnist_sweeps", "figure_3-tight", "figure_3-averaged", prefix="levels."
        ),
        "figure 3 averaged": lambda: table(LEVELS, entries("figure_3-averaged.json", "levels")),
        "figure 4": budgets,
        "figure 5": lambda: table(PANELS, panels()),
        "figure 5c tuned": lambda: table(
            TUNED, entries("figure_5c-tuned.json", "panels.c-tuned.points")
        ),
        "sentences": lambda: verdicts(
            "mnist_sweeps", "figure_sentences", "figure_5c-tuned", prefix="quantities."
        ),
        "figure 6": lambda: table(CIFAR_RUNS, transfer()),
        "figure 6 verdicts": lambda: verdicts("cifar_transfer", *TRANSFER),
        "ledgers": lambda: table(LEDGERS, entries("paper_ledgers.json", "settings")),
        "ledgers verdicts": lambda: verdicts("paper_ledgers", "paper_ledgers"),
        "claims": lambda: table(CLAIMS, entries("gdp.json", "claims")),
        "trained": lambda: table(TRAINED, entries("gdp.json", "trained")),
        "cnn": lambda: table(
            CNN,
            [
                runs(f"setting{setting}", "mnist_cnn", published=published)
                for setting, published in (
                    (1, "95.0% at 1.19"),
                    (2, "96.6% at 3.01"),
                    (3, "97.0% at 7.10"),
                )
            ],
        ),
        "cifar": lambda: with_baseline(
            CIFAR,
            "infinite",
            [
                runs(f"cifar_transfer-{name}{epsilon}", file, paper=paper)
                for name, file in (("eps", "figure_6"), ("finetuned", "figure_6-finetuned"))
                for epsilon, paper in ((2, "67%"), (4, "70%"), (8, "73%"))
            ],
            runs("cifar_transfer-baseline", "cifar_transfer-sentences", paper="80%"),
        ),
        "best": lambda: table(BEST, best()),
        "scratch": lambda: table(BEST, best("0.5", "1", "2", "4", "8", job="cifar_best")),
        "little": lambda: table(BEST[:-1], best(*LITTLE)),
        "learned": lambda: table(
            LEARNED,
            beside(
                [runs(f"eps{name}", "mnist_learned") for name in (*LITTLE, *USUAL)], "mnist_best"
            ),
        ),
    },
}
