"""What correlated noise gains at equal epsilon: the error of sums of noise over steps, beside that
of independent noise.

    python -m tools.correlated_noise --json experiments/results/correlated_noise.json

For each setting and number of bands: the noise multiplier that epsilon asks for with those bands,
and the root mean square over the steps t of the noise in the sum of the first t gradients. Plain
descent ends where such sums lead.
"""

import sys

import numpy as np
from scipy.signal import lfilter

from minidp.cli import Parser
from minidp.files import write_json
from minidp.mechanism import BandedNoise, PoissonSampler
from minidp.mechanism.banded import with_bands
from minidp.privacy import Gaussian, Ledger
from minidp.privacy.calibrate import noise_multiplier_for
from minidp.privacy.catalogue import make
from minidp.run.record import git_commit, versions

SIZE, DELTA = 60_000, 1e-5
SETTINGS = [  # what, expected lot size, steps, target epsilon
    *(
        ("main job", 600, steps, epsilon)
        for steps, epsilon in ((2000, 0.5), (10_000, 2.0), (10_000, 8.0), (30_000, 8.0))
    ),
    *(
        ("convolutional network", 256, steps, epsilon)
        for steps, epsilon in ((3516, 1.0), (10_547, 3.0), (14_063, 8.0))
    ),
    *(("scattering, large lots", 8192, 302, epsilon) for epsilon in (2.0, 8.0)),
]


def error_of_sums(bands, steps):
    """Root mean square over t of the standard deviation of y_1 + ... + y_t, for z of standard
    deviation 1.
    """
    sums = np.cumsum(lfilter([1.0], BandedNoise(bands).coefficients, np.eye(1, steps)[0]))
    return float(np.sqrt(np.cumsum(sums**2).mean()))


def measure(what, lot, steps, epsilon):
    """The figures of one setting, for 1, 2, 4, ... bands, at most an epoch's lots."""
    rows, accountant = [], make("loss_distribution")
    for bands in (2**k for k in range((SIZE // lot).bit_length())):

        def ledger_of(sigma, sampler=with_bands(PoissonSampler(lot / SIZE), bands)):
            ledger = Ledger(sampler.relation)
            ledger.append(*sampler.charges(Gaussian(sigma), steps))
            return ledger

        sigma = noise_multiplier_for(accountant, ledger_of, epsilon, DELTA)
        rows.append(
            {
                "bands": bands,
                "noise_multiplier": sigma,
                "error": sigma * error_of_sums(bands, steps),
            }
        )
    for row in rows:
        row["relative_error"] = row["error"] / rows[0]["error"]
    return {
        "what": what,
        "lot_size": lot,
        "steps": steps,
        "epsilon": epsilon,
        "bands": rows,
        "independent": rows[0],
        "best": min(rows, key=lambda row: row["error"]),
        "most": rows[-1],
    }  # for the table


def main(argv=None):
    """Measure, print, and write JSON; returns the exit status."""
    parser = Parser(prog="python -m tools.correlated_noise", description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    args = parser.parse_args(argv)
    found = [measure(*setting) for setting in SETTINGS]
    for row in found:
        print(
            f"{row['what']}, {row['steps']} lots of {row['lot_size']}, epsilon {row['epsilon']:g}: "
            + ", ".join(
                f"{each['bands']} bands {each['relative_error']:.3f}" for each in row["bands"]
            )
        )
    if args.json:
        write_json(
            args.json,
            {
                "command": f"python -m tools.correlated_noise --json {args.json}",
                "dataset_size": SIZE,
                "delta": DELTA,
                "settings": found,
                "versions": versions(),
                "commit": git_commit(),
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
