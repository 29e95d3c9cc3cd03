"""Figure 2 of Abadi et al. 2016: epsilon against epochs, strong composition beside the moments accountant; then the
same with every accountant and the certified band.

    python experiments/accountant_curves.py                 # a few seconds; CSV, PNG and JSON in runs/accountant_curves
"""
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.config import FREE, POSITIVE, Checked, command_of, option, parse, to_json
from common.verdicts import compare

from minidp.cli import user_errors
from minidp.files import write_json
from minidp.numbers import upper_text
from minidp.privacy import Gaussian, Ledger, MomentsAccountant, PoissonSampled
from minidp.privacy.catalogue import ACCOUNTANTS, make
from minidp.privacy.plots import save_epsilon_curves
from minidp.privacy.moments import PAPER_ORDERS
from minidp.run.record import git_commit, versions
from minidp.validate import in_range, positive_finite

FIGURE_2 = ("paper_strong_composition", "moments_paper_orders")
# what the paper's text prints: epochs, epsilon
PRINTED = ((100, 1.26, "1.26"), (100, 9.34, "9.34"), (400, 2.55, "2.55"), (400, 24.22, "24.22"))


@dataclass(frozen=True)
class Config(Checked):
    """Section 5.1, Figure 2."""

    sampling_probability: float = option(0.01, "q", partial(in_range, 0, 1, open_low=True))
    noise_multiplier: float = option(4.0, "sigma", positive_finite)
    delta: float = option(1e-5, "delta", partial(in_range, 0, 1, open_low=True, open_high=True))
    epochs: float = option(400.0, "E = q T, at the right end", partial(in_range, 0, 1e6, open_low=True))
    points: int = option(200, "points on each curve", POSITIVE)
    out: str = option("runs/accountant_curves", "folder for figure_2, all_accountants and result.json")
    smoke: bool = option(False, "a few points only")


def accountants():
    """{name: accountant}, moments also with the paper's orders."""
    found = {name: make(name) for name in ACCOUNTANTS if name != "ledger_2016"}
    return {**found, "moments_paper_orders": MomentsAccountant(orders=PAPER_ORDERS)}


def ledger_of(config, epochs):
    """The ledger after `epochs` epochs, at least one lot."""
    q = config.sampling_probability
    return Ledger(entries=[(PoissonSampled(q, Gaussian(config.noise_multiplier)), max(1, round(epochs / q)))])


def curves(config, epochs):
    """{name of an accountant: a Bound for each of `epochs`}."""
    ledgers = [ledger_of(config, each) for each in epochs]
    return {name: [accountant.epsilon(ledger, config.delta) for ledger in ledgers]
            for name, accountant in accountants().items()}


def with_square(config, epochs):
    """The paper's strong composition with T e^2 in place of T e (exp(e) - 1), delta split evenly."""
    q, steps = config.sampling_probability, epochs / config.sampling_probability
    each = q * math.sqrt(2 * math.log(1.25 * 2 * q * steps / config.delta)) / config.noise_multiplier
    return each * math.sqrt(2 * steps * math.log(2 / config.delta)) + steps * each**2


def fractional(config, epochs):
    """The tail bound of the moments accountant over fractional orders up to the paper's 32."""
    orders = [1 + i / 50 for i in range(31 * 50 + 1)]
    return MomentsAccountant(orders=orders).epsilon(ledger_of(config, epochs), config.delta).upper


def remarks(config, found):
    """{figure that the paper prints: what comes out here}; found {epochs: {name: epsilon}}."""
    said = {}
    for epochs, printed, label in PRINTED:
        strong = label in ("9.34", "24.22")
        value = found[epochs]["paper_strong_composition" if strong else "moments_paper_orders"]["upper"]
        verdict = "reproduced" if abs(value - printed) < 0.02 else "not reproduced"
        detail = (f"{with_square(config, epochs):.4g} with T e^2 in place of T e (exp(e) - 1)" if strong else
                  f"{fractional(config, epochs):.5g} over fractional orders, "
                  f"{found[epochs]['renyi']['upper']:.4g} by the sharper conversion")
        said[label] = f"{verdict}: {value:.5g} after {epochs} epochs; {detail}"
    return said


@user_errors()
def main(argv=None):
    """Run the experiment; returns its result."""
    config = parse(Config, argv, description=__doc__.splitlines()[0])
    out = Path(config.out)
    out.mkdir(parents=True, exist_ok=True)
    points, q = 4 if config.smoke else config.points, config.sampling_probability
    epochs = [q * max(1, round(config.epochs * i / points / q)) for i in range(1, points + 1)]
    found = curves(config, epochs)
    kinds = {name: make(name).kind for name in ACCOUNTANTS}
    save_epsilon_curves(out / "figure_2", epochs, {name: found[name] for name in FIGURE_2}, config.delta,
                        "Figure 2: strong composition and moments accountant", PRINTED, kinds)
    every = {name: bounds for name, bounds in found.items() if name != "moments_paper_orders"}
    save_epsilon_curves(out / "all_accountants", epochs, every, config.delta,
                        "Every accountant, with its certified band", kinds=kinds, logarithmic=True)
    printed = {each: {name: bound.to_json() for name, (bound,) in curves(config, [each]).items()} for each in (100, 400)}
    result = {"experiment": "accountant_curves", "command": command_of("accountant_curves.py", config, FREE),
              "config": {key: value for key, value in to_json(config).items() if key not in FREE},
              "epsilon_at_100_epochs": printed[100], "epsilon_at_400_epochs": printed[400],
              "remarks": remarks(config, printed), "versions": versions(), "commit": git_commit()}
    write_json(out / "result.json", result)
    compare(result)
    for figure, remark in result["remarks"].items():
        print(f"the paper's {figure}: {remark}")
    epsilon = found["loss_distribution"][-1].upper
    print(f"quote: epsilon {upper_text(epsilon)} at delta {config.delta:g} after {epochs[-1]:g} epochs (loss_distribution, the "
          f"tightest certified bound)\nread:  {out}/figure_2.png, {out}/all_accountants.png (CSV beside them, {out}/result.json)\n"
          f"next:  python -m minidp epsilon --noise-multiplier {config.noise_multiplier:g} --sampling-probability {q:g} "
          f"--epochs {config.epochs:g} --delta {config.delta:g}")
    return result


if __name__ == "__main__":
    main()
