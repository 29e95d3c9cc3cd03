"""Compare our accountants with those of dp_accounting on random settings.

    python -m tools.accountants --json experiments/results/accountants_beside.json

Needs dp-accounting (extra `peers`). A setting is a run of DP-SGD, with the noise of one to four
layers and now and then a private PCA before it. Settings whose epsilon by RDP is above 100 are
drawn again.
"""

import math
import random
import shlex
import sys
from importlib.metadata import version

from tqdm import tqdm

from minidp.commands.flags import Parser, user_errors, whole_number
from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Ledger,
    LossDistributionAccountant,
    PoissonSampled,
    RenyiAccountant,
)
from minidp.util.files import write_json
from tools import machine


def draw(rng):
    """q, the noise multiplier of each layer, that of PCA or None, steps and delta."""
    layers = rng.randint(2, 4) if rng.random() < 0.4 else 1
    noise = math.exp(rng.uniform(math.log(0.5), math.log(12)))
    return {
        "q": float(f"{10 ** rng.uniform(-4, math.log10(0.2)):.4g}"),
        "sigmas": [round(noise * rng.uniform(1, 2 if layers > 1 else 1), 4) for _ in range(layers)],
        "pca": round(rng.uniform(2, 16), 3) if layers > 1 else None,
        "steps": round(10 ** rng.uniform(0, math.log10(50_000))),
        "delta": float(f"{10 ** rng.uniform(-8, -5):.3g}"),
    }


def theirs(row):
    """{"pld", "rdp"}: epsilon by dp_accounting's accountants with their default settings."""
    import dp_accounting as dp
    from dp_accounting import pld, rdp

    noise = JointGaussian(row["sigmas"]).effective_noise_multiplier
    step = dp.PoissonSampledDpEvent(row["q"], dp.GaussianDpEvent(noise))
    events = [dp.SelfComposedDpEvent(step, row["steps"])]
    if row["pca"]:
        events.append(dp.GaussianDpEvent(row["pca"]))
    accountants = {"pld": pld.PLDAccountant(), "rdp": rdp.RdpAccountant()}
    spent = dp.ComposedDpEvent(events)
    return {
        name: float(each.compose(spent).get_epsilon(row["delta"]))
        for name, each in accountants.items()
    }


def ours(row):
    """{"lower", "upper"} of our pld, and "renyi", the upper end of our rdp."""
    step = PoissonSampled(row["q"], JointGaussian(row["sigmas"]))
    ledger = Ledger()
    if row["pca"]:
        ledger.append(Gaussian(row["pca"]))
    ledger.append(step, row["steps"])
    bound = LossDistributionAccountant().epsilon(ledger, row["delta"])
    renyi = RenyiAccountant().epsilon(ledger, row["delta"]).upper
    return {"lower": bound.lower, "upper": bound.upper, "renyi": renyi}


def main(argv=None):
    """Run the command line; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    parser = Parser(prog="python -m tools.accountants", description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=whole_number, default=50, help="how many")
    parser.add_argument("--seed", type=whole_number, default=7)
    parser.add_argument("--json", metavar="FILE", required=True)
    args = parser.parse_args(argv)
    rng, rows = random.Random(args.seed), []
    with user_errors(), tqdm(total=args.settings) as bar:
        while len(rows) < args.settings:
            row = draw(rng)
            row |= theirs(row)
            if row["rdp"] <= 100:
                rows.append(row | ours(row))
                bar.update()
        about = {
            "command": shlex.join(["python", "-m", "tools.accountants", *argv]),
            "dp-accounting": version("dp-accounting"),
            "versions": machine.versions(),
        }
        write_json(args.json, {**about, "seed": args.seed, "settings": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
