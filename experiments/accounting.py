#!/usr/bin/env python3
"""Epsilon of published settings by each accountant.

    python experiments/accounting.py figure-2   # Abadi et al. 2016, Figure 2, and every accountant
    python experiments/accounting.py ledgers    # the paper's settings by each way of charging
    python experiments/accounting.py gdp        # Bu et al. 2020: noise by each accountant, trained

The code of 2016 charged each layer's noise as if each layer had its own lot. Both layers come from
the same lot, so a step is one sampled joint Gaussian, and epsilon is larger. For `gdp` the claim is
the epsilon of the moments accountant at a published noise level. The central limit theorem reaches
it with less noise but is an approximation; the loss distribution gives the certified epsilon of
that noise.
"""

import math
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

import common

common.start(__name__)

from common.config import FREE, command_of, main_of, option, tell
from common.curves import accountant_curve, save_epsilon_curves, save_tradeoff
from common.figures import Figure, constant, row
from common.plots import draw_claims
from common.results import RESULTS, compare, look_up, rows_of
from common.sweep_flags import DigitSweepFlags
from common.sweeps import Point

import numpy as np
from mnist_pca import NOISE

from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Ledger,
    MomentsAccountant,
    PoissonSampled,
    noise_multiplier_for,
    theorem_d1,
)
from minidp.privacy.accountants import called, every, make
from minidp.privacy.calibrate import max_steps
from minidp.privacy.moments import PAPER_ORDERS
from minidp.run import plotting
from minidp.run.versions import git_commit, versions
from minidp.util.files import read_json, write_json
from minidp.util.text import lower_text, upper_text

NAME = "accounting"
DELTA, Q, SIGMA, EPOCHS, POINTS = 1e-5, 0.01, 4.0, 400, 200  # Section 5.1 and Figure 2
# what the paper's text prints: epochs, epsilon
PRINTED = ((100, 1.26, "1.26"), (100, 9.34, "9.34"), (400, 2.55, "2.55"), (400, 24.22, "24.22"))
# Section 5.2, and one that no target is reported for, after 1,000 lots
SETTINGS = (*reversed(NOISE.values()), (1, 4, None, None, 1000))
TODAY = RESULTS / "mnist_best.json"  # whose accuracies stand beside the paper's
LAYERS = 2
# Appendix D: eps' = .5, delta = .05, one setting in 6,700 is good enough, a loss of 100 of 10,000
# examples
SEARCH = {"epsilon_prime": 0.5, "delta": 0.05, "good_share": 1 / 6700}
# Bu et al. 2020, MNIST: (sigma, epochs)
CLAIMED = ((1.3, 15), (1.1, 60), (0.7, 45), (0.6, 62), (0.55, 68), (0.5, 100))
CLAIMED_N, CLAIMED_LOT = 60_000, 256
BY = ("moments", "gaussian_clt", "loss_distribution")
# 784-100-10, all parameters clipped together: small, so that a run takes seconds and the
# accountants are what differs
NETWORK = "--projection none --hidden 100 --clipping flat --clip-norm 1.5 --no-train-metrics"
RATES = {"sgd": 0.25, "adam": 0.002}
SMOKE = "--smoke --epochs 1 --lot-size 60"


@dataclass(frozen=True)
class Config:
    """Flags of `figure-2` and `ledgers`."""

    out: str | None = option(None, "folder for result.json and pictures (default: runs/COMMAND)")
    smoke: bool = option(False, "compute fewer points")


@dataclass(frozen=True)
class GdpConfig(DigitSweepFlags):
    """Flags of `gdp`."""

    setting: int = option(
        1, "number of the published setting to train", choices=tuple(range(1, len(CLAIMED) + 1))
    )


def folder_of(config, command):
    """Make and return the folder of --out."""
    out = Path(config.out or f"runs/{command}")
    out.mkdir(parents=True, exist_ok=True)
    return out


def tell_result(out, experiment, flags, command, found):
    """Write result.json and print a comparison with the paper's figures."""
    result = {
        "experiment": experiment,
        "command": command_of(f"{NAME}.py {command}", flags, FREE),
        **found,
        "versions": versions(),
        "commit": git_commit(),
    }
    write_json(out / "result.json", result)
    compare(result)


def figure_2(config):
    """Epsilon against epochs: strong composition beside the moments accountant, then every
    accountant with its band.
    """
    out, points = folder_of(config, "figure-2"), 4 if config.smoke else POINTS
    accountants = {each.name: each() for each in every() if each.name != "ledger_2016"}
    accountants["moments_paper_orders"] = MomentsAccountant(orders=PAPER_ORDERS)
    step = PoissonSampled(Q, Gaussian(SIGMA))

    def curves(epochs):
        ledgers = [Ledger(entries=[(step, round(each / Q))]) for each in epochs]
        return {
            name: [accountant.epsilon(ledger, DELTA) for ledger in ledgers]
            for name, accountant in accountants.items()
        }

    epochs = [EPOCHS * i / points for i in range(1, points + 1)]
    found, kinds = curves(epochs), {each.name: each.kind for each in every()}
    shown = {name: found[name] for name in ("paper_strong_composition", "moments_paper_orders")}
    title = "Figure 2: strong composition and moments accountant"
    save_epsilon_curves(out / "figure_2", epochs, shown, DELTA, title, kinds, PRINTED)
    del found["moments_paper_orders"]
    title = "Every accountant, with its certified band"
    save_epsilon_curves(
        out / "all_accountants", epochs, found, DELTA, title, kinds, logarithmic=True
    )
    ledger, alphas = Ledger(entries=[(step, round(EPOCHS / Q))]), np.linspace(0, 1, 501)
    tests = {
        name: accountant_curve(accountants[name], ledger, alphas)
        for name in ("moments", "renyi", "loss_distribution")
    }
    title = f"What an attacker can do after {EPOCHS} epochs"
    save_tradeoff(out / "tradeoff.png", alphas, tests, title, kinds)
    settings = {
        "sampling_probability": Q,
        "noise_multiplier": SIGMA,
        "delta": DELTA,
        "epochs": EPOCHS,
    }
    result = {"config": settings}
    for each in (100, 400):
        bounds = {name: bound.to_json() for name, (bound,) in curves([each]).items()}
        result[f"epsilon_at_{each}_epochs"] = bounds
    tell_result(out, "accountant_curves", config, "figure-2", result)
    print(
        f"quote: epsilon {upper_text(found['loss_distribution'][-1].upper)} at delta {DELTA:g} "
        f"after {EPOCHS} epochs (pld, the tightest certified bound)\n"
        f"read:  {out}/figure_2.png, {out}/all_accountants.png (CSV beside them, "
        f"{out}/tradeoff.png, {out}/result.json)\n"
        f"next:  python -m minidp epsilon --noise-multiplier {SIGMA:g} "
        f"--sampling-probability {Q:g} --epochs {EPOCHS} --delta {DELTA:g}"
    )
    return 0


@cache
def trained_today():
    """[(epsilon, mean accuracy)] of the committed runs of mnist_best.py, by epsilon."""
    found = {}
    for run in rows_of(read_json(TODAY)):
        found.setdefault(run["config"]["target_epsilon"], []).append(run["test_accuracy"])
    return sorted((epsilon, fmean(accuracies)) for epsilon, accuracies in found.items())


def costs(sigma, sigma_pca, epsilon, accuracy, lots=None):
    """Epsilon of one setting, PCA included, by each way of charging, after the lots that the 2016
    ledger allows.

    today: the accuracy of committed runs at the reported epsilon, and the least epsilon at which
    they reached the reported accuracy.
    """
    before = Ledger(entries=[(Gaussian(sigma_pca),)])
    step = PoissonSampled(Q, JointGaussian((sigma,) * LAYERS))
    theirs, moments = make("ledger_2016", before.relation), MomentsAccountant(orders=PAPER_ORDERS)
    lots = lots or max_steps(theirs, before, step, epsilon, DELTA)

    def spent(accountant, event, count=lots):
        return accountant.epsilon(Ledger(before.relation, [*before.items(), (event, count)]), DELTA)

    tight = make("loss_distribution", before.relation)
    same_epsilon = [reached for at, reached in trained_today() if epsilon and at <= epsilon]
    same_accuracy = [at for at, reached in trained_today() if accuracy and reached >= accuracy]
    return {
        "sigma": sigma,
        "sigma_pca": sigma_pca,
        "reported_epsilon": epsilon,
        "reported_accuracy": accuracy,
        "lots": lots,
        "epochs": lots * Q,
        "today": {
            "accuracy_at_reported_epsilon": max(same_epsilon, default=None),
            "epsilon_of_reported_accuracy": min(same_accuracy, default=None),
        },
        "ledger_2016": spent(theirs, step).upper,
        "joint_moments": spent(moments, step).upper,
        "flat_moments": spent(moments, PoissonSampled(Q, Gaussian(sigma))).upper,
        "joint_loss_distribution": spent(tight, step).to_json(),
    }


def draw_prices(path, settings):
    """Picture of the paper's accuracies at the epsilon of each way of charging, beside today's
    runs.
    """
    figure, (axis,) = plotting.new_figure(
        title="MNIST: what the paper's settings cost, and what the same buys today"
    )
    ways = {
        "the 2016 ledger": "ledger_2016",
        "both layers from one lot, moments": "joint_moments",
        "the same, loss distribution": "joint_loss_distribution.upper",
    }
    paper = [one for one in settings if one["reported_accuracy"]]
    accuracies = [one["reported_accuracy"] for one in paper]
    hollow = {"linestyle": "none", "markersize": 9, "markerfacecolor": "none"}
    for i, (name, figure_of) in enumerate(ways.items()):
        epsilons = [look_up(one, figure_of) for one in paper]
        style = plotting.line(i) | hollow
        axis.plot(epsilons, accuracies, label=f"the paper: {name}", **style)
    axis.plot(
        *zip(*trained_today()),
        label="fixed features, mnist_best.py, loss distribution",
        **plotting.line(len(ways)),
    )
    axis.set(xlabel=f"epsilon, delta {DELTA:g}", ylabel="test accuracy", xscale="log")
    axis.xaxis.set_major_formatter("{x:g}")
    plotting.legend(figure, axis.get_legend_handles_labels()[0], columns=2)
    plotting.save(figure, path)


def ledgers(config):
    """Epsilon of the paper's settings by its ledger, by the joint rule, and tightly; today's
    accuracies at that epsilon; the cost of a search by Theorem D.1.
    """
    out, search = folder_of(config, "ledgers"), theorem_d1(0.0, **SEARCH)
    settings = {f"{setting[0]}-{setting[1]}": costs(*setting) for setting in SETTINGS}
    for one in settings.values():
        print(
            f"sigma {one['sigma']}, PCA {one['sigma_pca']}, {one['lots']:,} lots: 2016 ledger "
            f"{one['ledger_2016']:.4g}, joint {one['joint_moments']:.4g}, one charge (flat "
            f"clipping) {one['flat_moments']:.4g}, joint by loss distribution "
            f"{one['joint_loss_distribution']['upper']:.4g}"
        )
    found = {
        "delta": DELTA,
        "sampling_probability": Q,
        "layers": LAYERS,
        "settings": settings,
        "search": {
            **SEARCH,
            "settings": round(1 / SEARCH["good_share"]),
            "calls": search.calls,
            "accuracy_loss": search.accuracy_loss,
            "epsilon_validation": search.epsilon_validation,
            "years_at_a_minute_each": search.calls / (60 * 24 * 365.25),
        },
    }
    tell_result(out, "paper_ledgers", config, "ledgers", found)
    draw_prices(out / "prices.png", settings.values())
    medium = settings["4-7"]
    print(
        f"quote: epsilon {upper_text(medium['joint_loss_distribution']['upper'])} at delta "
        f"{DELTA:g} for sigma 4, PCA 7, {medium['lots']:,} lots, which the paper reports as "
        f"{medium['reported_epsilon']:g}\nread:  {out}/prices.png, {out}/result.json\nnext:  "
        f"python -m minidp epsilon --noise-multipliers 4,4 --pca-noise-multiplier 7 "
        f"--sampling-probability {Q:g} --steps {medium['lots']} --delta {DELTA:g}"
    )
    return 0


def claims_of(sigma, epochs):
    """One published setting: the claim, the noise each accountant asks for it, and that noise's
    certified epsilon.
    """

    def ledger_of(sigma):
        lots = math.ceil(epochs * CLAIMED_N / CLAIMED_LOT)
        return Ledger(entries=[(PoissonSampled(CLAIMED_LOT / CLAIMED_N, Gaussian(sigma)), lots)])

    claim, found = make("moments").epsilon(ledger_of(sigma), DELTA).upper, {}
    for name in BY:
        accountant = make(name)
        # rounded up, so that the run's own figure stays within the claim
        noise = math.ceil(1e4 * noise_multiplier_for(accountant, ledger_of, claim, DELTA)) / 1e4
        worth = make("loss_distribution", accountant.relation).epsilon(ledger_of(noise), DELTA)
        found[name] = {
            "noise_multiplier": noise,
            "kind": accountant.kind,
            "worth": worth.to_json(),
            "certified": accountant.kind == "bound" and worth.upper <= claim,
        }
    return {"sigma": sigma, "epochs": epochs, "claim": claim, "accountants": found}


def claim_text(claim):
    """One published setting in a line."""
    return (
        f"sigma {claim['sigma']}, {claim['epochs']} epochs, claim {upper_text(claim['claim'])}: "
        + "; ".join(
            f"{called(name)} {one['noise_multiplier']:.4f}, worth "
            f"{lower_text(one['worth']['lower'])} to {upper_text(one['worth']['upper'])}"
            for name, one in claim["accountants"].items()
        )
    )


def gdp(config):
    """Calibrate every claim, train one by each accountant's noise, and draw both."""
    claims = []
    for setting in CLAIMED:
        claims.append(claims_of(*setting))
        tell(config, claim_text(claims[-1]))
    claim = claims[config.setting - 1]
    length = SMOKE if config.smoke else f"--epochs {claim['epochs']} --lot-size {CLAIMED_LOT}"
    points = {
        (optimizer, name): Point(
            f"gdp-{config.setting}-{optimizer}-{name}",
            f"{NETWORK} {length} --optimizer {optimizer} {constant(rate)} "
            f"--noise-multiplier {one['noise_multiplier']}",
        )
        for optimizer, rate in RATES.items()
        for name, one in claim["accountants"].items()
    }

    def summarise(results, smoke):
        return {
            "claims": claims,
            "trained": [
                {"optimizer": optimizer, "by": name, **row(point.name, results[point.name])}
                for (optimizer, name), point in points.items()
            ],
        }

    config.make(
        NAME,
        Figure(lambda smoke: list(points.values()), summarise, draw_claims),
        "gdp",
        subcommand="gdp",
        delta=DELTA,
        lot_size=CLAIMED_LOT,
        setting=config.setting,
    )
    return 0


main = main_of(
    f"{NAME}.py",
    __doc__,
    {"figure-2": (Config, figure_2), "ledgers": (Config, ledgers), "gdp": (GdpConfig, gdp)},
)

if __name__ == "__main__":
    sys.exit(main())
