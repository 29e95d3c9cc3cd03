"""Compare the noise that a risk needs, and its time, with riskcal and gdpnum.

    python -m tools.risks --json experiments/results/risks.json

Needs riskcal 1.5.1 and gdpnum 0.1.2 beside minidp's own requirements. Twenty settings were fixed
before anything was computed. riskcal searches from 3% below our noise to 2% above, because each of
its evaluations takes seconds; an answer at an end of that would say nothing, and counts as a fault.
Of mu, gdpnum's reading of our noise stands beside ours, which leaves out rates below 1e-6. Exits
with 1 where our noise does not certify the risk, or is more than 1% above riskcal's and 1% less
than ours is not proved to be too little. The file is written after every row.
"""

import argparse
import sys
import time
from importlib.metadata import version

import numpy as np

from minidp.privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled
from minidp.privacy.risk import Risk
from minidp.util.files import write_json

STEPS, SHARES = (100, 1000, 10_000, 100_000), (1e-4, 1e-3, 0.01, 0.03, 0.1)
RISKS = (
    Risk(fpr=0.01, tpr=0.05),
    Risk(advantage=0.1),
    Risk(mu=0.5),
    Risk(fpr=0.1, tpr=0.2),
)
LIBRARIES = ("riskcal", "gdpnum", "dp-accounting", "numpy", "scipy", "numba")
MOST = 0.01  # above riskcal
BELOW, ABOVE, CLOSE = 1 / 1.03, 1.02, 1e-4  # where riskcal searches, and how closely in the risk


def peer(risk, share, steps, noise):
    """What the peer finds: riskcal's noise, or the mu that gdpnum reads at ours."""
    from gdpnum.dpsgd import get_mu_and_regret_for_dpsgd
    from riskcal.calibration.dpsgd import (
        find_noise_multiplier_for_advantage,
        find_noise_multiplier_for_err_rates,
    )

    run = {"sample_rate": share, "num_steps": steps}
    ends = {"noise_min": BELOW * noise, "noise_max": ABOVE * noise}
    if risk.mu is not None:
        mu, regret = get_mu_and_regret_for_dpsgd(noise, **run)
        return {"gdpnum_mu": float(mu), "gdpnum_regret": float(regret)}
    try:
        if risk.fpr is None:
            found = find_noise_multiplier_for_advantage(
                risk.target, **run, **ends, advantage_tol=CLOSE
            )
        else:
            found = find_noise_multiplier_for_err_rates(
                risk.fpr, 1 - risk.target, **run, **ends, beta_tol=CLOSE
            )
    except RuntimeError:  # no answer in the bracket
        return {"riskcal": None, "above": 1 / BELOW - 1}
    inside = 1.001 * BELOW * noise < found < 0.999 * ABOVE * noise
    return {"riskcal": float(found), "above": noise / found - 1, "found": inside}


def row(steps, share, risk):
    """One setting, as a row of the file."""

    def ledger_of(sigma):
        return Ledger(entries=[(PoissonSampled(share, Gaussian(sigma)), steps)])

    began = time.process_time()
    noise = risk.noise_multiplier(ledger_of)
    seconds = time.process_time() - began
    found = {
        "asked": risk.given,
        "noise_multiplier": noise,
        "reached": risk.reached(ledger_of(noise)),
        "sampling_alone": risk.by_sampling(ledger_of),
        "cpu_seconds": seconds,
    }
    if not found["sampling_alone"]:
        found |= peer(risk, share, steps, noise)
    if found.get("above", 0.0) > MOST and risk.fpr is not None:
        found["least_at_a_percent_less"] = least_rate(risk.fpr, ledger_of(noise / (1 + MOST)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", required=True)
    args = parser.parse_args()
    for risk in RISKS:  # compile
        risk.noise_multiplier(
            lambda sigma: Ledger(entries=[(PoissonSampled(0.1, Gaussian(sigma)), 10)])
        )
    rows = []
    for number, (steps, share) in enumerate((t, q) for t in STEPS for q in SHARES):
        found = row(steps, share, RISKS[number % len(RISKS)])
        rows.append({"setting": [steps, share], **found})
        print(rows[-1], flush=True)
        write_json(
            args.json,
            {
                "command": "python -m tools.risks --json experiments/results/risks.json",
                "device": "cpu",
                "versions": {name: version(name) for name in LIBRARIES},
                "comparisons": rows,
            },
        )
    return not all(map(is_right, rows))


def is_right(found):
    """Whether a row shows what it should. Our noise may be further above riskcal's where 1% less
    than ours is proved to be too little.
    """
    target = Risk.of(found["asked"]).target
    close = found.get("above", 0.0) <= MOST or found.get("least_at_a_percent_less", 0.0) > target
    return found["reached"] <= target and found.get("found", True) and close


def least_rate(rate, ledger):
    """A certified lower bound on the true positive rate at this false one that the exact (epsilon,
    delta) curve of both directions allows: of each interval between tangents, the least.
    """
    accountant, slopes = LossDistributionAccountant(), np.linspace(0, 2, 201)
    deltas = np.array([accountant.delta(ledger, float(e)).lower for e in slopes])
    steep = np.exp(slopes[:-1]) * rate + deltas[1:]
    flat = 1 - np.exp(-slopes[:-1]) * (1 - rate - deltas[1:])
    last = np.exp(slopes[-1])
    return float(min(steep.min(), flat.min(), last * rate, 1 - (1 - rate) / last))


if __name__ == "__main__":
    sys.exit(main())
