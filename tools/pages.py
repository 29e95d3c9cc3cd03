"""The tables of each page, as data for tools/tables.py."""

from functools import partial

import numpy as np

from experiments.common.results import EXPECTED, ledger_of, rows_of, verdict
from minidp.privacy import RenyiAccountant, poisson_stopped_epsilon
from minidp.util.files import read_json
from tools.tables import RESULTS, Row, TableError, entries, load, markdown, runs, table


def columns(text):
    """[(title, template)] of a table's columns, a line each."""
    return [tuple(line.split(": ", 1)) for line in text.strip().splitlines()]


CNN = columns("""
setting: {config.setting}: sigma {SIGMA:g}, {epochs:.0f} epochs, \
rate {settings.learning_rate:g}, C {C:g}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
published: {published}
loss_distribution: {epsilon.loss_distribution.upper:upper}
renyi: {epsilon.renyi.upper:upper}
moments: {epsilon.moments.upper:upper}
gaussian_clt: {epsilon.gaussian_clt.upper:upper}
""")
CIFAR = columns("""
epsilon, delta 1e-5: {SPENT:upper} ({accountant})
sigma, of the mean: {SIGMA:.3g}, {settings.mean_noise_multiplier:.3g?none}
lots of: {settings.expected_lot_size:,}
lots: {steps:,}
trained: {config.train_layers:?one layer, on fixed features}
network, on the public classes: {pretrained.test_accuracy:.1%}
test accuracy, mean (range): {test_accuracy:spread}
over ten views: {test_accuracy_over_views:spread}
seeds: {seed:count}
the paper: {paper}
""")
BEST = columns("""
epsilon, delta 1e-5: {epsilon.loss_distribution.upper:upper}
sigma, of the mean: {SIGMA:.3g}, {settings.mean_noise_multiplier:.3g}
lots of: {settings.expected_lot_size:,}
lots: {steps:,}
rate, C: {settings.learning_rate:.3g}, {C:.3g}
epsilon of a search there: {searched:upper}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
published: {published}
""")
LEARNED = [
    *BEST[:5],
    *BEST[6:8],
    ("networks before training", "{accuracy_before_training:.2%}"),
    ("no drawn digits", "{beside:.2%}"),
]
BEST_OF_ALL = [BEST[0], *BEST[-3:], ("with features learned from drawn digits", "{beside:.2%}")]
SWEEPS = columns("""
figure: {figure}
command: `{command}`
runs' time, minutes: {seconds_of_all_runs:minutes}
seeds: {seeds:items}
device: {device:listed}
ours: [picture](results/{stem}.png), [numbers](results/{stem}.json)
""")
LEVELS = columns("""
noise (sigma, sigma_pca): {key} ({sigma}, {sigma_pca})
epsilon, delta 1e-5: {epsilon:upper}
lots: {steps:,}
test accuracy: {self:spread}
training (not private): {train_accuracy_not_private:.2%}
seeds: {seeds}
""")
PANELS = columns("""
panel: {panel}
value: {value}
lots: {steps:,}
epochs: {epochs:.4g?0}
test accuracy: {self:spread}
seeds: {seeds}
""")
TUNED = [("lots of", "{x:,}"), ("rate", "{learning_rate.final:g}"), *PANELS[2:]]
CIFAR_RUNS = columns("""
run: {name:run}-seed{seed}
epsilon, delta 1e-5: {SPENT:upper}
lots of: {settings.expected_lot_size:,}
sigma: {SIGMA:.3g}
C: {C:.3g}
lots: {steps:,}
test accuracy: {test_accuracy:.2%}
over ten views: {test_accuracy_over_views:.2%}
""")
LEDGERS = columns("""
(sigma, sigma_pca): ({sigma}, {sigma_pca})
lots: {lots:,}
reported: {reported_epsilon:g?none}
2016 ledger, a comparison: {ledger_2016:.3f}
joint rule, moments: {joint_moments:upper}
joint rule, loss distribution: {joint_loss_distribution.upper:upper}
the same, balls in bins: {joint_balls_in_bins.upper:upper}
flat clipping, moments: {flat_moments:upper}
accuracy reported: {reported_accuracy:.0%?none}
today at the reported epsilon: {today.accuracy_at_reported_epsilon:.2%?none}
least epsilon seen today with that accuracy: {today.epsilon_of_reported_accuracy:g?none}
""")
CLAIMS = columns("""
published (sigma, epochs): ({sigma}, {epochs})
claimed epsilon: {claim:upper}
sigma by moments (certified epsilon): {accountants.moments.noise_multiplier:.4f} \
({accountants.moments.worth.upper:upper})
by CLT (certified epsilon): {accountants.gaussian_clt.noise_multiplier:.4f} \
({accountants.gaussian_clt.worth.upper:upper})
by loss distribution (certified epsilon): {accountants.loss_distribution.noise_multiplier:.4f} \
({accountants.loss_distribution.worth.upper:upper})
""")
OWN = columns("""
data: {about}
rows: {rows:,}
accuracy, or R2 (standard deviation): {score}
without privacy: {without_privacy:.3f?}
epsilon: {epsilon:upper}
delta: {delta:g}
""")
SAMPLERS = columns("""
`--sampler`: `{sampler}`
lots: {lots}
neighbours: {neighbours}
epsilon at most: {loss_distribution.upper:upper}
""")
LOTTERIES = columns("""
experiment: {experiment}
lots drawn: {sampler}
sigma: {SIGMA:g}
epsilon by loss distribution: {epsilon.loss_distribution.upper:upper}
lots: {steps:,}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
""")
STEPS = columns("""
workload: {workload}
gradients: {contender}
step, ms: {step_ms:ms}
to floor: {to.floor:.2f}
to PyTorch, not private: {to.torch:.2f}
""")
AGAINST = [
    *STEPS,
    ("to JAX, not private", "{to.jax:.2f}"),
    ("to Opacus, ghost clipping", "{to.opacus-ghost:.2f}"),
]
TRAINED = columns("""
optimizer: {optimizer:optimizer}
noise by: {by}
lots: {steps:,}
test accuracy: {self:spread}
seeds: {seeds}
""")
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
    """A data set at every budget, and what a private search of so many settings would cost."""
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
        "results": lambda: table(BEST_OF_ALL, beside(best(), "mnist_learned")),
    },
    "minidp/README.md": {
        "own data": lambda: table(OWN, scores()),
        "which sampler": listed(SAMPLERS, "samplers.json", "runs"),
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
        "figure 3": listed(LEVELS, "figure_3.json", "levels"),
        "figure 3 verdicts": lambda: verdicts("mnist_pca", "figure_3", "figure_sentences"),
        "figure 3 tight": listed(LEVELS, "figure_3-tight.json", "levels"),
        "figure 3 tight verdicts": lambda: verdicts(
            "mnist_sweeps", "figure_3-tight", "figure_3-averaged", prefix="levels."
        ),
        "figure 3 averaged": listed(LEVELS, "figure_3-averaged.json", "levels"),
        "figure 4": budgets,
        "figure 5": lambda: table(PANELS, panels()),
        "figure 5c tuned": listed(TUNED, "figure_5c-tuned.json", "panels.c-tuned.points"),
        "sentences": lambda: verdicts(
            "mnist_sweeps", "figure_sentences", "figure_5c-tuned", prefix="quantities."
        ),
        "figure 6": lambda: table(CIFAR_RUNS, transfer()),
        "figure 6 verdicts": lambda: verdicts("cifar_transfer", *TRANSFER),
        "ledgers": listed(LEDGERS, "paper_ledgers.json", "settings"),
        "ledgers verdicts": lambda: verdicts("paper_ledgers", "paper_ledgers"),
        "claims": listed(CLAIMS, "gdp.json", "claims"),
        "trained": listed(TRAINED, "gdp.json", "trained"),
        "cnn": lambda: table(
            CNN,
            [
                runs(f"setting{setting}", "mnist_cnn", published=published)
                for setting, published in enumerate(OTHERS, 1)
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
