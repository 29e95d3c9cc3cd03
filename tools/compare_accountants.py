"""Our accountants beside those of other libraries, on random settings: figures and times.

    python -m tools.compare_accountants [--settings 50] [--seed 7] [--json FILE]

Needs the `peers` extra (dp-accounting; Opacus where it is installed too). Exits with 1 where our
certified lower end is above dp_accounting's pessimistic epsilon, our upper more than 0.3% or 2e-4
above it, our interval wider than 0.5% or 1e-4, or our Renyi figure more than 0.5% looser than its
own.
"""

import math
import random
import sys
import time

from minidp.cli import Parser
from minidp.files import write_json
from minidp.privacy import (
    Gaussian,
    JointGaussian,
    Ledger,
    LossDistributionAccountant,
    MomentsAccountant,
    PoissonSampled,
    RenyiAccountant,
    noise_multiplier_for,
)


def draw(rng):
    """One setting: sampling probability, noise of each layer, noise of PCA or None, steps,
    delta.
    """
    layers = rng.randint(2, 4) if rng.random() < 0.4 else 1
    noise = 10 ** rng.uniform(math.log10(0.5), math.log10(12))
    return {
        "q": float(f"{10 ** rng.uniform(-4, math.log10(0.2)):.4g}"),
        "sigmas": [
            round(noise * (rng.uniform(1, 2) if layers > 1 else 1), 4) for _ in range(layers)
        ],
        "pca": round(rng.uniform(2, 16), 3) if layers > 1 else None,
        "steps": round(10 ** rng.uniform(0, math.log10(50000))),
        "delta": float(f"{10 ** rng.uniform(-8, -5):.3g}"),
    }


def our_ledger(row):
    """The setting as a ledger."""
    pca = [(Gaussian(row["pca"]),)] if row["pca"] else []
    return Ledger(
        entries=[*pca, (PoissonSampled(row["q"], JointGaussian(row["sigmas"])), row["steps"])]
    )


def their_event(dp, row):
    """The setting as a dp_accounting event."""
    noise = JointGaussian(row["sigmas"]).effective_noise_multiplier
    events = [
        dp.SelfComposedDpEvent(
            dp.PoissonSampledDpEvent(row["q"], dp.GaussianDpEvent(noise)), row["steps"]
        )
    ]
    if row["pca"]:
        events.append(dp.GaussianDpEvent(row["pca"]))
    return dp.ComposedDpEvent(events)


def timed(call, repeat=1):
    """(result, seconds), the fastest of `repeat`."""
    best = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return result, best


def figures(settings, seed):
    """One row per setting whose Renyi epsilon is at most 100."""
    import dp_accounting as dp
    from dp_accounting import pld, rdp

    rng, rows = random.Random(seed), []
    LossDistributionAccountant().epsilon(
        our_ledger(draw(random.Random(0))), 1e-5
    )  # compiles the kernels
    while len(rows) < settings:
        row = draw(rng)
        event = their_event(dp, row)
        row["rdp"], row["rdp_seconds"] = timed(
            lambda: float(rdp.RdpAccountant().compose(event).get_epsilon(row["delta"]))
        )
        if row["rdp"] > 100:
            continue
        row["pld"], row["pld_seconds"] = timed(
            lambda: float(pld.PLDAccountant().compose(event).get_epsilon(row["delta"]))
        )
        bound, row["our_seconds"] = timed(
            lambda: LossDistributionAccountant().epsilon(our_ledger(row), row["delta"])
        )
        row["lower"], row["upper"] = bound.lower, bound.upper
        row["renyi"] = RenyiAccountant().epsilon(our_ledger(row), row["delta"]).upper
        row["faults"] = faults(row)
        rows.append(row)
    return rows


def faults(row):
    """What the comparison demands and the row does not keep."""
    lower, upper, pld, renyi = (row[name] for name in ("lower", "upper", "pld", "renyi"))
    return [
        what
        for what, wrong in (
            ("lower above PLD", lower > pld),
            ("upper", upper - pld > max(0.003 * pld, 2e-4)),
            ("width", upper - lower > max(0.005 * upper, 1e-4)),
            ("renyi", renyi > 1.005 * row["rdp"] + 1e-9),
        )
        if wrong
    ]


def speeds():
    """{what: {who: seconds}} for the queries that people make."""
    import dp_accounting as dp
    from dp_accounting import pld

    def row(steps=10000, noise=4.0):
        return {"q": 0.01, "sigmas": [noise], "pca": None, "steps": steps}

    def ledger(*args):
        return our_ledger(row(*args))

    points, curve, moments = (
        range(25, 10001, 25),
        LossDistributionAccountant(),
        MomentsAccountant(orders=range(1, 65)),
    )
    moments.epsilon(ledger(), 1e-5)
    found = {
        "loss distribution, (0.01, 4, 10000)": {
            "minidp": timed(lambda: LossDistributionAccountant().epsilon(ledger(), 1e-5), 7)[1],
            "dp_accounting": timed(
                lambda: pld.PLDAccountant().compose(their_event(dp, row())).get_epsilon(1e-5), 3
            )[1],
        },
        "moments, 64 orders by integration": {
            "minidp": timed(
                lambda: MomentsAccountant(orders=range(1, 65)).epsilon(ledger(), 1e-5), 7
            )[1]
        },
        "400 points, moments": {
            "minidp": timed(lambda: [moments.epsilon(ledger(n), 1e-5) for n in points], 3)[1]
        },
        "400 points, loss distribution": {
            "minidp": timed(lambda: [curve.epsilon(ledger(n), 1e-5) for n in points])[1]
        },
        "calibrate to epsilon 2, loss distribution": {
            "minidp": timed(
                lambda: noise_multiplier_for(
                    LossDistributionAccountant(), lambda s: ledger(10000, s), 2.0, 1e-5
                ),
                3,
            )[1],
            "dp_accounting": timed(
                lambda: dp.calibrate_dp_mechanism(
                    pld.PLDAccountant, lambda s: their_event(dp, row(10000, s)), 2.0, 1e-5
                )
            )[1],
        },
    }
    try:
        from opacus.accountants import RDPAccountant
    except ImportError:
        return found
    opacus = RDPAccountant()
    opacus.history = [(4.0, 0.01, 10000)]
    found["Renyi, (0.01, 4, 10000)"] = {
        "minidp": timed(lambda: RenyiAccountant().epsilon(ledger(), 1e-5), 7)[1],
        "opacus": timed(lambda: opacus.get_epsilon(1e-5), 3)[1],
    }
    return found


def main(argv=None):
    """Print the comparison; the exit status says whether every demand is kept."""
    parser = Parser(prog="python -m tools.compare_accountants", description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", metavar="FILE", help="write all rows there")
    args = parser.parse_args(argv)
    try:
        rows, times = figures(args.settings, args.seed), speeds()
    except ImportError as error:
        print(f"error: {error}; install the extra with: pip install '.[peers]'", file=sys.stderr)
        return 2
    print(
        "q          sigmas / pca / steps / delta".ljust(70),
        "ours".ljust(22),
        "PLD".ljust(11),
        "Renyi: ours, theirs; ms",
    )
    for row in rows:
        setting = (
            f"{row['q']:<10g} {row['sigmas']} / {row['pca']} / {row['steps']} / {row['delta']:g}"
        )
        print(
            setting.ljust(70),
            f"[{row['lower']:.6f}, {row['upper']:.6f}]".ljust(22),
            f"{row['pld']:<11.6f}",
            f"{row['renyi']:.5g}, {row['rdp']:.5g}; {row['our_seconds'] * 1e3:.1f}, "
            f"{row['pld_seconds'] * 1e3:.1f}",
            " ".join(row["faults"]),
        )
    for what, who in times.items():
        print(
            f"{what}: "
            + ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in who.items())
        )
    bad = [row for row in rows if row["faults"]]
    widest = max((row["upper"] - row["lower"]) / row["upper"] for row in rows if row["upper"] > 0)
    print(
        f"{len(rows)} settings, {len(bad)} outside; widest interval {widest:.2%} of epsilon; "
        f"slowest of ours {max(row['our_seconds'] for row in rows) * 1e3:.0f} ms"
    )
    if args.json:
        write_json(args.json, {"rows": rows, "seconds": times})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
