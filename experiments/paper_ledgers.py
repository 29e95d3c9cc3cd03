#!/usr/bin/env python3
"""What the settings of Abadi et al. 2016 cost: by the ledger of their code, by the true joint rule, and tightly.

    python experiments/paper_ledgers.py              # a few seconds; JSON in runs/paper_ledgers

The code of 2016 charged each layer's noise as if it came from a lot of its own. Both layers come from the same lot,
so a step is one sampled joint Gaussian, and epsilon is larger. Also the cost of a search by Theorem D.1.
"""
from dataclasses import dataclass
from pathlib import Path

from common.config import FREE, command_of, option, parse
from common.verdicts import compare

from minidp.cli import user_errors
from minidp.files import write_json
from minidp.numbers import upper_text
from minidp.privacy import Gaussian, JointGaussian, Ledger, MomentsAccountant, PoissonSampled, theorem_d1
from minidp.privacy.budget import max_steps
from minidp.privacy.catalogue import make
from minidp.privacy.moments import PAPER_ORDERS
from minidp.run.record import git_commit, versions

NAME = "paper_ledgers"
DELTA, Q, LAYERS = 1e-5, 0.01, 2
# sigma, sigma_pca, the epsilon that Section 5.2 reports for it; lots where no target is reported
SETTINGS = ((8, 16, 0.5, None), (4, 7, 2.0, None), (2, 4, 8.0, None), (1, 4, None, 1000))
# Appendix D: eps' = .5, delta = .05, one setting in 6,700 is good enough, a loss of 100 of 10,000 examples
SEARCH = {"epsilon_prime": 0.5, "delta": 0.05, "good_share": 1 / 6700}


@dataclass(frozen=True)
class Config:
    """The flags."""

    out: str = option(f"runs/{NAME}", "folder for result.json")


def costs(sigma, sigma_pca, epsilon, lots):
    """Epsilon of one setting, PCA included, by each way of charging, after the lots that the 2016 ledger allows."""
    before = Ledger(entries=[(Gaussian(sigma_pca),)])
    step = PoissonSampled(Q, JointGaussian((sigma,) * LAYERS))
    alone = PoissonSampled(Q, Gaussian(sigma))
    theirs = make("ledger_2016", before.relation)
    moments = MomentsAccountant(orders=PAPER_ORDERS)
    lots = lots or max_steps(theirs, before, step, epsilon, DELTA)

    def spent(accountant, event):
        return accountant.epsilon(Ledger(before.relation, [*before.items(), (event, lots)]), DELTA)

    tight = spent(make("loss_distribution", before.relation), step)
    return {"sigma": sigma, "sigma_pca": sigma_pca, "reported_epsilon": epsilon, "lots": lots, "epochs": lots * Q,
            "ledger_2016": spent(theirs, step).upper, "joint_moments": spent(moments, step).upper,
            "flat_moments": spent(moments, alone).upper, "joint_loss_distribution": tight.to_json()}


def main(argv=None):
    """Compute, write, return the result."""
    with user_errors():
        config = parse(Config, argv, prog=f"{NAME}.py", description=__doc__.splitlines()[0])
        out = Path(config.out)
        out.mkdir(parents=True, exist_ok=True)
        search = theorem_d1(0.0, **SEARCH)
        result = {"experiment": NAME, "command": command_of(f"{NAME}.py", config, FREE), "delta": DELTA,
                  "sampling_probability": Q, "layers": LAYERS,
                  "settings": {f"{sigma}-{pca}": costs(sigma, pca, epsilon, lots)
                               for sigma, pca, epsilon, lots in SETTINGS},
                  "search": {**SEARCH, "settings": round(1 / SEARCH["good_share"]), "calls": search.calls,
                             "accuracy_loss": search.accuracy_loss, "epsilon_validation": search.epsilon_validation,
                             "years_at_a_minute_each": search.calls / (60 * 24 * 365.25)},
                  "versions": versions(), "commit": git_commit()}
        write_json(out / "result.json", result)
        for row in result["settings"].values():
            print(f"sigma {row['sigma']}, PCA {row['sigma_pca']}, {row['lots']:,} lots: 2016 ledger "
                  f"{row['ledger_2016']:.4g}, joint {row['joint_moments']:.4g}, one charge (flat clipping) "
                  f"{row['flat_moments']:.4g}, joint by loss distribution {row['joint_loss_distribution']['upper']:.4g}")
        print(f"a search of {result['search']['settings']:,} settings: epsilon {search.epsilon_validation:g} for the "
              f"validation set alone, {search.calls:.2g} runs")
        compare(result)
        medium = result["settings"]["4-7"]
        print(f"quote: epsilon {upper_text(medium['joint_loss_distribution']['upper'])} at delta {DELTA:g} for sigma 4, PCA 7, "
              f"{medium['lots']:,} lots, which the paper reports as {medium['reported_epsilon']:g}\nread:  {out}/result.json\n"
              f"next:  python -m minidp epsilon --noise-multipliers 4,4 --pca-noise-multiplier 7 --sampling-probability {Q:g} "
              f"--steps {medium['lots']} --delta {DELTA:g}")
    return result


if __name__ == "__main__":
    main()
