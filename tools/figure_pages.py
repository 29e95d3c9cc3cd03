"""What the tables of the pages of experiments hold."""

from functools import cache

from tools.cells import entries, files, runs, table, verdicts
from tools.page_rows import (
    TRANSFER,
    best,
    budgets,
    learned,
    names,
    over_epsilons,
    panels,
    transfer,
)

LITTLE = ("0.01", "0.02", "0.03", "0.05", "0.1", "0.2")  # budgets
USUAL = ("0.5", "1", "2", "2.93", "8")


@cache
def figures():
    """The tables of the pages of experiments."""
    parts = (
        figures_3_and_4,
        figures_5_and_6,
        ledgers_and_claims,
        best_accuracies,
        of_tables,
        other_data,
    )
    return {name: lines for part in parts for name, lines in part().items()}


def figures_3_and_4():
    """Which commands made the figures; Figures 2, 3, 4."""
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
    }


def figures_5_and_6():
    """Figures 5 and 6, and the sentences beside them."""
    return {
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
    }


def ledgers_and_claims():
    """The 2016 ledger, and the claims of Gaussian DP."""
    return {
        "ledgers": table(
            """
(sigma, sigma_pca): ({sigma}, {sigma_pca})
lots: {lots:,}
reported: {reported_epsilon:g?none}
2016 ledger, a comparison: {ledger_2016:.3f}
both layers as one release, moments: {joint_moments:upper}
the same, pld: {joint_loss_distribution.upper:upper}
all layers clipped together, moments: {flat_moments:upper}
""",
            entries("paper_ledgers.json", "settings"),
        ),
        "today": table(
            """
(sigma, sigma_pca): ({sigma}, {sigma_pca})
reported epsilon: {reported_epsilon:g?none}
reported accuracy: {reported_accuracy:.0%?none}
today's accuracy at that epsilon: {today.accuracy_at_reported_epsilon:.2%?none}
today's least epsilon with that accuracy: {today.epsilon_of_reported_accuracy:g?none}
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
by pld (certified epsilon): {accountants.loss_distribution.noise_multiplier:.4f} \
({accountants.loss_distribution.worth.upper:upper})
""",
            entries("gdp.json", "claims"),
        ),
        "trained": table(
            """
optimizer: {optimizer:optimizer}
noise by: {by:accountant}
lots: {steps:,}
test accuracy: {self:spread}
seeds: {seeds}
""",
            entries("gdp.json", "trained"),
            grouped=True,
        ),
    }


def best_accuracies():
    """The most accurate models at each epsilon."""
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
        "cnn": table(
            """
setting: {config.setting}: sigma {SIGMA:g}, {epochs:.0f} epochs, \
rate {settings.learning_rate:g}, C {C:g}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
published: {published}
pld: {epsilon.loss_distribution.upper:upper}
rdp: {epsilon.renyi.upper:upper}
moments: {epsilon.moments.upper:upper}
gdp (CLT, an approximation): {epsilon.gaussian_clt.upper:upper}
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
        "scratch": table(bests, best("cifar_best", "0.5", "1", "2", "4", "8")),
    }


def of_tables():
    """Adult, and tables at several epsilons."""
    return {
        "adult": table(
            """
model: {key}
accuracy, five splits: {accuracy:.2%}
AUROC: {auroc:.4f}
seconds a fit: {seconds:.1f}
""",
            entries("adult.json", "figures"),
        ),
        "over epsilons": table(
            """
table: {key}
constant: {constant:.3f}
epsilon 0.5: {half}
epsilon 1: {one}
epsilon 4: {four}
without privacy: {inf}
""",
            over_epsilons(),
        ),
        "regressions": table(
            """
columns: {key}
bounds: {bounds.mean:.3f}
3 times too wide: {bounds 3 times too wide.mean:.3f}
10 times too wide: {bounds 10 times too wide.mean:.3f}
no bounds: {no bounds.mean:.3f}
no bounds, numbers near 1e6: {no bounds, numbers near 1e6.mean:.3f}
ridge without privacy: {ridge without privacy.mean:.3f}
""",
            entries("tables.json", "regressions"),
        ),
    }


def other_data():
    """Names, and results whose programs are gone."""
    return {
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


def of(*names):
    """Some of the tables of the pages of experiments."""
    return lambda: {name: figures()[name] for name in names}
