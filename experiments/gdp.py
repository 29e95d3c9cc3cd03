#!/usr/bin/env python3
"""NoisySGD and NoisyAdam of Bu et al. 2020: how much noise each accountant asks for, and what its claim is worth.

    python experiments/gdp.py                # the six published MNIST settings; trains the first by each accountant

The claim is the epsilon that the moments accountant gives for a published noise level. The central limit theorem of
Gaussian differential privacy reaches the same claim with less noise, but it is no bound: the loss distribution says
what that noise is worth. What a tight and certified accountant may save without that risk stands beside it.
"""
import math
from dataclasses import dataclass

from common.config import option, parse, tell
from common.sweep_figures import Figure, row
from common.sweep_flags import DigitSweepFlags
from common.sweep_plots import draw_claims
from common.sweeps import Point

from minidp.cli import user_errors
from minidp.numbers import lower_text, upper_text
from minidp.privacy import Gaussian, Ledger, PoissonSampled, noise_multiplier_for
from minidp.privacy.catalogue import make

NAME = "gdp"
ACCOUNTANTS = ("moments", "gaussian_clt", "loss_distribution")
N, LOT, DELTA = 60_000, 256, 1e-5
# Bu et al. 2020, MNIST: (sigma, epochs)
SETTINGS = ((1.3, 15), (1.1, 60), (0.7, 45), (0.6, 62), (0.55, 68), (0.5, 100))
# 784-100-10, all parameters clipped together: small, so that a run takes seconds and the accountants are what differs
NETWORK = ("--projection", "none", "--hidden", 100, "--clipping", "flat", "--clip-norm", 1.5, "--no-train-metrics")
RATES = {"sgd": 0.25, "adam": 0.002}
SMOKE = ("--smoke", "--epochs", 1, "--lot-size", 60)


@dataclass(frozen=True)
class Config(DigitSweepFlags):
    """The flags."""

    setting: int = option(1, "the published setting that is trained", choices=tuple(range(1, len(SETTINGS) + 1)))


def ledger_of(sigma, epochs):
    """The ledger after `epochs` epochs; infinite noise costs nothing."""
    lots = math.ceil(epochs * N / LOT)
    return Ledger(entries=[] if math.isinf(sigma) else [(PoissonSampled(LOT / N, Gaussian(sigma)), lots)])


def claims_of(sigma, epochs):
    """One published setting: the claim, the noise each accountant asks for it, and that noise's certified epsilon."""
    claim = make("moments").epsilon(ledger_of(sigma, epochs), DELTA).upper
    found = {}
    for name in ACCOUNTANTS:
        accountant = make(name)
        # rounded up, so that the run's own figure stays within the claim
        noise = math.ceil(1e4 * noise_multiplier_for(accountant, lambda s: ledger_of(s, epochs), claim, DELTA)) / 1e4
        worth = make("loss_distribution", accountant.relation).epsilon(ledger_of(noise, epochs), DELTA)
        found[name] = {"noise_multiplier": noise, "kind": accountant.kind, "worth": worth.to_json(),
                       "certified": accountant.kind == "bound" and worth.upper <= claim}
    return {"sigma": sigma, "epochs": epochs, "claim": claim, "accountants": found}


def claim_text(claim):
    """One published setting in a line."""
    return f"sigma {claim['sigma']}, {claim['epochs']} epochs, claim {upper_text(claim['claim'])}: " + "; ".join(
        f"{name} {one['noise_multiplier']:.4f}, worth {lower_text(one['worth']['lower'])} to "
        f"{upper_text(one['worth']['upper'])}" for name, one in claim["accountants"].items())


def points_of(config, claims):
    """{(optimizer, accountant): point} of the trained setting."""
    claim = claims[config.setting - 1]
    length = SMOKE if config.smoke else ("--epochs", claim["epochs"], "--lot-size", LOT)
    return {(optimizer, name): Point(f"gdp-{config.setting}-{optimizer}-{name}", (
        *NETWORK, *length, "--optimizer", optimizer, "--learning-rate", rate, "--final-learning-rate", rate,
        "--noise-multiplier", one["noise_multiplier"]))
        for optimizer, rate in RATES.items() for name, one in claim["accountants"].items()}


def main(argv=None):
    """Calibrate, train, write the figure, return the summary."""
    with user_errors() as note:
        config = parse(Config, argv, prog=f"{NAME}.py", description=__doc__.splitlines()[0])
        note.saved = "finished runs and checkpoints are kept; the same command goes on"
        claims = []
        for setting in SETTINGS:
            claims.append(claims_of(*setting))
            tell(config, claim_text(claims[-1]))
        points = points_of(config, claims)

        def summarise(results, smoke):
            return {"claims": claims, "trained": [
                {"optimizer": optimizer, "by": name, **row(point.name, results[point.name])}
                for (optimizer, name), point in points.items() if point.name in results]}

        return config.make(NAME, Figure(lambda smoke: list(points.values()), summarise, draw_claims), NAME,
                           delta=DELTA, lot_size=LOT, setting=config.setting)


if __name__ == "__main__":
    main()
