"""What the tables of each page hold."""

from statistics import mean

from tools.cells import (
    TableError,
    entries,
    files,
    load,
    markdown,
    runs,
    spread,
    table,
    verdicts,
)

LITTLE = ("0.01", "0.02", "0.03", "0.05", "0.1", "0.2")  # budgets
USUAL = ("0.5", "1", "2", "2.93", "8")
TRANSFER = ("figure_6", "figure_6-finetuned", "cifar_transfer-sentences")
PUBLISHED = {
    ("mnist_best", "2.93"): "98.1% at 2.93, 98.7% at 3; tuning not counted",
    ("cifar_best", "1"): "60.9%; tuning not counted",
    ("cifar_best", "2"): "67.0%; tuning not counted",
}
STEPS = """
workload: {workload}
gradients: {contender}
step, ms: {step_ms:ms}
to floor: {to.floor:.2f?}
to PyTorch, not private: {to.torch:.2f?}
"""
TO_OTHERS = """\
to JAX, not private: {to.jax:.2f?}
to Opacus, ghost clipping: {to.opacus-ghost:.2f?}
"""
BENCHMARK = STEPS + TO_OTHERS


def front_page():
    """The tables of README.md."""
    return {
        "results": table(
            """
epsilon, delta 1e-5: {epsilon.loss_distribution.upper:upper}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
published: {published}
with features learned from synthetic digits: {beside:.2%}
""",
            learned(*USUAL),
        )
    }


def reference():
    """The tables of minidp/README.md."""
    return {
        "own data": table(
            """
data: {about}
rows: {rows:,}
accuracy, or R2 (standard deviation): {score}
without privacy: {without_privacy:.3f?}
epsilon: {epsilon:upper}
delta: {delta:g}
""",
            scores(),
        ),
        "persons": table(
            """
trained on: {key}
AUROC, five splits by person: {mean:.4f}
standard error: {standard_error:.4f}
""",
            entries("persons.json", "auroc"),
        ),
        "which sampler": table(
            """
`--sampler`: `{sampler}`
lots: {lots}
neighbours: {neighbours}
epsilon at most: {loss_distribution.upper:upper}
""",
            entries("samplers.json", "runs"),
        ),
    }


def developers():
    """The tables of tools/README.md."""
    two = "benchmark.json", "benchmark_avx2.json"
    every, avx2 = (sum(map(steps, load(file)["contests"]), []) for file in two)
    return {"benchmark": table(BENCHMARK, every), "avx2": table(STEPS, avx2)}


def figures():
    """The tables of experiments/README.md."""
    bests = """
epsilon, delta 1e-5: {epsilon.loss_distribution.upper:upper}
sigma, of the mean: {SIGMA:.3g}, {settings.mean_noise_multiplier:.3g}
lots of: {settings.expected_lot_size:,}
lots: {steps:,}
rate, C: {settings.learning_rate:.3g}, {C:.3g}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
published: {published}
"""
    return {
        "commands": table(
            """
figure: {figure}
command: `{command}`
runs' time, minutes: {seconds_of_all_runs:minutes}
seeds: {seeds:items}
device: {device:listed}
ours: [picture](results/{stem}.png), [numbers](results/{stem}.json)
""",
            [row for row in files("figure_*.json") if row[0]["experiment"] == "mnist_sweeps"],
        ),
        "figure 2": verdicts("accountant_curves", "accountant_curves"),
        "figure 3": table(
            """
stopped by: {how}
noise (sigma, sigma_pca): {key} ({sigma}, {sigma_pca})
epsilon, delta 1e-5: {epsilon:upper}
lots: {steps:,}
test accuracy: {self:spread}
training (not private): {train_accuracy_not_private:.2%}
seeds: {seeds}
""",
            [
                *entries("figure_3.json", "levels", how="moments"),
                *entries("figure_3-tight.json", "levels", how="loss distribution"),
                *entries(
                    "figure_3-averaged.json", "levels", how="loss distribution, weights averaged"
                ),
            ],
        ),
        "figure 3 verdicts": [
            *verdicts("mnist_pca", "figure_3", "figure_sentences"),
            *verdicts("mnist_sweeps", "figure_3-tight", "figure_3-averaged", prefix="levels.")[2:],
        ],
        "figure 4": budgets(),
        "figure 5": table(
            """
panel: {panel}
value: {value}
lots: {steps:,}
epochs: {epochs:.4g?0}
test accuracy: {self:spread}
seeds: {seeds}
""",
            panels(),
            grouped=True,
        ),
        "figure 5c tuned": table(
            """
lots of: {x:,}
rate: {learning_rate.final:g}
lots: {steps:,}
epochs: {epochs:.4g?0}
test accuracy: {self:spread}
seeds: {seeds}
""",
            entries("figure_5c-tuned.json", "panels.c-tuned.points"),
        ),
        "sentences": verdicts(
            "mnist_sweeps", "figure_sentences", "figure_5c-tuned", prefix="quantities."
        ),
        "figure 6": table(
            """
run: {name:run}
epsilon, delta 1e-5: {SPENT:upper}
sigma, of the mean: {SIGMA:.3g}, {settings.mean_noise_multiplier:.3g?none}
C: {C:.3g}
lots of: {settings.expected_lot_size:,}
lots: {steps:,}
trained: {config.train_layers:?one layer, on fixed features}
network, on the public classes: {pretrained.test_accuracy:.1%}
test accuracy, mean (range): {test_accuracy:spread}
over ten views: {test_accuracy_over_views:spread}
seeds: {seed:count}
the paper: {paper}
""",
            transfer(),
        ),
        "figure 6 verdicts": verdicts("cifar_transfer", *TRANSFER),
        "ledgers": table(
            """
(sigma, sigma_pca): ({sigma}, {sigma_pca})
lots: {lots:,}
reported: {reported_epsilon:g?none}
2016 ledger, a comparison: {ledger_2016:.3f}
joint rule, moments: {joint_moments:upper}
joint rule, loss distribution: {joint_loss_distribution.upper:upper}
flat clipping, moments: {flat_moments:upper}
accuracy reported: {reported_accuracy:.0%?none}
today at the reported epsilon: {today.accuracy_at_reported_epsilon:.2%?none}
least epsilon seen today with that accuracy: {today.epsilon_of_reported_accuracy:g?none}
""",
            entries("paper_ledgers.json", "settings"),
        ),
        "ledgers verdicts": verdicts("paper_ledgers", "paper_ledgers"),
        "claims": table(
            """
published (sigma, epochs): ({sigma}, {epochs})
claimed epsilon: {claim:upper}
sigma by moments (certified epsilon): {accountants.moments.noise_multiplier:.4f} \
({accountants.moments.worth.upper:upper})
by CLT (certified epsilon): {accountants.gaussian_clt.noise_multiplier:.4f} \
({accountants.gaussian_clt.worth.upper:upper})
by loss distribution (certified epsilon): {accountants.loss_distribution.noise_multiplier:.4f} \
({accountants.loss_distribution.worth.upper:upper})
""",
            entries("gdp.json", "claims"),
        ),
        "trained": table(
            """
optimizer: {optimizer:optimizer}
noise by: {by}
lots: {steps:,}
test accuracy: {self:spread}
seeds: {seeds}
""",
            entries("gdp.json", "trained"),
            grouped=True,
        ),
        "cnn": table(
            """
setting: {config.setting}: sigma {SIGMA:g}, {epochs:.0f} epochs, \
rate {settings.learning_rate:g}, C {C:g}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
published: {published}
loss_distribution: {epsilon.loss_distribution.upper:upper}
renyi: {epsilon.renyi.upper:upper}
moments: {epsilon.moments.upper:upper}
gaussian_clt: {epsilon.gaussian_clt.upper:upper}
""",
            [
                runs("setting1", "mnist_cnn", published="95.0% at 1.19"),
                runs("setting2", "mnist_cnn", published="96.6% at 3.01"),
                runs("setting3", "mnist_cnn", published="97.0% at 7.10"),
            ],
        ),
        "best": table(
            """
epsilon, delta 1e-5: {epsilon.loss_distribution.upper:upper}
sigma, of the mean: {SIGMA:.3g}, {settings.mean_noise_multiplier:.3g}
lots of: {settings.expected_lot_size:,}
lots: {steps:,}
rate, C: {settings.learning_rate:.3g}, {C:.3g}
without other data, mean (range): {test_accuracy:spread}
with learned features, mean (range): {learned}
networks before training: {before:.2%}
seeds: {seed:count}
published: {published}
""",
            learned(*LITTLE, *USUAL),
        ),
        "adult": table(
            """
model: {key}
accuracy, five splits: {accuracy:.2%}
AUROC: {auroc:.4f}
seconds a fit: {seconds:.1f}
""",
            [*entries("adult.json", "figures"), *entries("adult_diffprivlib.json", "figures")],
        ),
        "scratch": table(bests, best("cifar_best", "0.5", "1", "2", "4", "8")),
        "names": table(
            """
epsilon: {key}
lstm: {network.mean:.3f}
bigrams: {bigrams.mean:.3f}
trigrams: {trigrams.mean:.3f}
different names made: {different:,.0f}
of which trained on: {in_training_set:,.0f}
by chance: {by_chance:,.0f}
seeds: {seeds}
""",
            names(),
        ),
        "earlier programs": table(
            """
file: [{stem}](results/{stem}.json)
made by: `{command}`
last commit: {last_commit}
""",
            [row for row in files("*.json") if "last_commit" in row[0]],
        ),
    }


PAGES = {
    "README.md": front_page,
    "minidp/README.md": reference,
    "tools/README.md": developers,
    "experiments/README.md": figures,
}


def best(job, *budgets):
    """A row for each budget of an experiment."""
    return [runs(f"eps{name}", job, published=PUBLISHED.get((job, name), "")) for name in budgets]


def learned(*budgets):
    """The rows of mnist_best, each beside mnist_learned at its budget, whose settings are equal."""
    for row in best("mnist_best", *budgets):
        others = runs(row[0]["name"], "mnist_learned")
        if others[0]["settings"] != row[0]["settings"] or len(others) != len(row):
            raise TableError(f"{others[0]['where']}: other settings or seeds than mnist_best has")
        accuracies = [one["test_accuracy"] for one in others]
        yield having(
            row,
            learned=spread(accuracies),
            beside=mean(accuracies),
            before=others[0]["accuracy_before_training"],
        )


def having(row, **words):
    """The row with further values of each object."""
    return [{**one, **words} for one in row]


def scores():
    """The defaults of `minidp.fit` on data they were not tuned on."""
    for row in entries("own_data.json", "data"):
        (one,) = row
        form = "{:.3f} ({:.3f})" if "without_privacy" in one else "{:.2%} ({:.2%})"
        yield having(row, score=form.format(one["mean"], one["spread"]))


def steps(contest):
    """A row for each of our steps on a workload, with its ratios to the floor and the peers as
    "to".
    """
    found = []
    for row in contest["rows"]:
        name = row["contender"]
        to = {pair["to"]: pair["ratio"] for pair in contest["ratios"] if pair["of"] == name}
        if to:
            found.append([{**contest, **row, "to": to, "where": contest["workload"]}])
    return found


def panels():
    """Every point of Figure 5, and the horizontal lines of its panels."""
    for row in entries("figure_5.json", "panels"):
        (panel,) = row
        for point in panel["points"] + panel["lines"]:
            value = str(point["x"]).removeprefix("projection-")
            value += " (reference)" if point["x"] == panel["reference"] else ""
            yield [{**point, "panel": panel["label"], "value": value, "where": panel["where"]}]


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


def names():
    """Bits per character of the network and the tables, and copies of names, at each epsilon."""
    made = load("names_lstm.json")["runs"]
    for row in entries("names_lstm.json", "bits"):
        epsilon = float(row[0]["key"])
        found = [run["generated"] for run in made if float(run["target_epsilon"]) == epsilon]
        copies = ("different", "in_training_set", "by_chance")
        yield having(row, **{key: mean(run[key] for run in found) for key in copies})


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
