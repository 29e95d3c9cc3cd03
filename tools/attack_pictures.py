"""Two attacks on the arithmetic of private training, before and after, as pictures.

    python -m tools.attack_pictures [--out experiments/results] [--smoke]

"Before" is plain NumPy in float32, written out here: Box and Muller's noise, and sums of one
gradient after the other. "After" is the library in both arithmetics. attack_noise.png has the share
of pairs of released numbers that are products r cos t and r sin t of float32 numbers: where it
depends on the raw sum, one release tells neighbours apart. attack_sums.png has |S(D) - S(D')| / C
of the worst neighbours found in lots of each size, beside what is charged. attacks.json has the
figures.
"""

import sys
from pathlib import Path

import numpy as np

from minidp import plotting
from minidp.backend import to_host
from minidp.cli import Parser, user_errors
from minidp.files import write_json
from minidp.grads import Outer
from minidp.mechanism import Sanitizer, flat_group
from minidp.mechanism.rounding import DOUBLE, products
from minidp.streams import Streams
from tools.bench.machine import available_cores, processor, vector_flags, versions

KEY, BEFORE, ARITHMETICS = (
    ("layer", "W"),
    "before: float32",
    ("before: float32", "ordinary", "exact"),
)
SIGMAS, SEED = (1.0, 2.0, 4.0, 8.0, 16.0), 0


def box_muller(rng, size, sigma):
    """Noise as it was: pairs sigma r cos t and sigma r sin t in float32, the first of all pairs and
    then the second.
    """
    u, v = rng.random((2, size // 2), np.float32)
    r, t = np.sqrt(-2 * np.log1p(-u)), np.float32(2 * np.pi) * v
    return np.concatenate([r * np.cos(t), r * np.sin(t)]) * np.float32(sigma)


def on_lattice(x, y, sigma):
    """Whether pairs are products r cos t and r sin t of float32 numbers r, t, as Box and Muller's
    method makes them.
    """
    x, y = x.astype("float64"), y.astype("float64")
    r0, t0 = (
        (np.hypot(x, y) / sigma).astype("float32"),
        (np.arctan2(y, x) % (2 * np.pi)).astype("float32"),
    )
    found = np.zeros(len(x), bool)
    for dr in range(-3, 4):
        for dt in range(-3, 4):
            r, t = (_moved(v, steps) for v, steps in ((r0, dr), (t0, dt)))
            found |= (r * np.cos(t) * np.float32(sigma) == x) & (
                r * np.sin(t) * np.float32(sigma) == y
            )
    return found


def _moved(v, steps):
    for _ in range(abs(steps)):
        v = np.nextafter(v, np.float32(np.inf if steps > 0 else -np.inf))
    return v


def share_on_lattice(arithmetic, value, sigma, size, streams, place, asarray=np.asarray):
    """The share of pairs on the lattice in one release of a raw sum that has the same value
    everywhere, at C = 1.

    asarray: puts the raw sum where it is released.
    """
    if arithmetic == BEFORE:
        released = np.float32(value) + box_muller(np.random.default_rng(place), size, sigma)
    else:
        raw = asarray(np.full(size, np.trunc(value * 2.0**32) if arithmetic == "exact" else value))
        sanitizer = Sanitizer(flat_group([KEY], 1.0, sigma), arithmetic=arithmetic)
        released = to_host(
            sanitizer.release({KEY: raw}, streams.noise(place), dtype=np.float32)[KEY]
        )
    return float(on_lattice(released[: size // 2], released[size // 2 :], sigma).mean())


def aligned(n, value, extra, half_ulps):
    """n numbers: `value` until their sum is about a power of two, `extra` more or fewer, then just
    over half an ulp each.

    With the first of them the sum crosses the power of two, and every small number is rounded up;
    without it none is.
    """
    power = int(np.log2(n * 0.66))
    large = int(2**power / value) + extra
    return np.array([value] * large + [half_ulps * 2.0 ** (power - 24)] * (n - large), "float32")


def worst_neighbours(arithmetic, n, asarray=np.asarray):
    """(the largest |S(D) - S(D')| / C found, what is charged) in lots of n examples, the first of
    which D' does not have.

    asarray: puts the gradients where they are summed.
    """
    sanitizer, how = (
        Sanitizer(
            flat_group([KEY], 1.0, 1.0),
            "factored",
            arithmetic if arithmetic != BEFORE else "ordinary",
        ),
        DOUBLE,
    )
    if arithmetic == "ordinary":
        how = products(n, "factored")

    def total(v):
        if arithmetic == BEFORE:
            return float(np.add.accumulate(np.minimum(v, np.float32(1)))[-1])
        grad = Outer(asarray(np.ones((len(v), 1), "float32")), asarray(v[:, None]))
        return float(to_host(sanitizer.add_clipped({KEY: grad}, products=how)[KEY])[0, 0]) / (
            2.0**32 if sanitizer.exact else 1
        )

    rng = np.random.default_rng(SEED)
    lots = [
        aligned(n, 1 - 2**-10, extra, half_ulps)
        for extra in (-1, 0, 1)
        for half_ulps in (0.51, 1.01, 1.25, 2.51)
    ]
    lots += [rng.uniform(1, 2, n).astype("float32") for _ in range(20)]
    return max(abs(total(v) - total(v[1:])) for v in lots), how.factor


def main(argv=None):
    """Run both attacks, draw, write."""
    parser = Parser(prog="python -m tools.attack_pictures", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results"),
        help="folder (default: %(default)s)",
    )
    parser.add_argument("--smoke", action="store_true", help="few and small, to see that it works")
    args = parser.parse_args(argv)
    size, lots = (
        (2000, (60, 2500))
        if args.smoke
        else (20_000, (60, 150, 300, 600, 1200, 2048, 4096, 8192, 16_384))
    )
    streams, values = Streams(SEED), {"0": 0.0, "C/sqrt(P)": size**-0.5}
    with user_errors():
        noise = {
            arithmetic: {
                name: [
                    share_on_lattice(arithmetic, value, sigma, size, streams, 100 * k + 10 * i + j)
                    for j, sigma in enumerate(SIGMAS)
                ]
                for i, (name, value) in enumerate(values.items())
            }
            for k, arithmetic in enumerate(ARITHMETICS)
        }
        sums = {
            arithmetic: [worst_neighbours(arithmetic, n) for n in lots]
            for arithmetic in ARITHMETICS
        }
        figure, panels = plotting.new_figure(
            1,
            3,
            title="Pairs of one release on the lattice of float32 noise",
            panel=(3.4, 3),
            sharey=True,
        )
        for axis, (arithmetic, shares) in zip(panels, noise.items()):
            lines = [
                axis.plot(SIGMAS, share, label=f"raw sum {name} everywhere", **plotting.line(i))[0]
                for i, (name, share) in enumerate(shares.items())
            ]
            axis.set(title=arithmetic, xlabel="noise multiplier", ylim=(-0.05, 1.05))
        panels[0].set_ylabel("share of pairs")
        plotting.legend(figure, lines)
        plotting.save(figure, args.out / "attack_noise.png")
        figure, (axis,) = plotting.new_figure(
            title="How far one example of norm C moved the sum of a lot, at worst"
        )
        lines = [
            axis.plot(lots, [found for found, _ in rows], label=name, **plotting.line(i))[0]
            for i, (name, rows) in enumerate(sums.items())
        ]
        lines += axis.plot(
            lots,
            [charged for _, charged in sums["ordinary"]],
            color="0.4",
            label="charged, ordinary",
        )
        axis.set(xscale="log", xlabel="examples of the lot", ylabel="|S(D) - S(D')| / C")
        plotting.legend(figure, lines)
        plotting.save(figure, args.out / "attack_sums.png")
        write_json(
            args.out / "attacks.json",
            {
                "command": " ".join(
                    ["python -m tools.attack_pictures", *(sys.argv[1:] if argv is None else argv)]
                ),
                "device": {
                    "processor": processor(),
                    "vector": vector_flags(),
                    "cores": available_cores(),
                },
                "versions": versions(),
                "seed": SEED,
                "pairs": size // 2,
                "noise_multipliers": SIGMAS,
                "on_lattice": noise,
                "lots": lots,
                "worst": {name: [found for found, _ in rows] for name, rows in sums.items()},
                "charged": [charged for _, charged in sums["ordinary"]],
            },
        )


if __name__ == "__main__":
    sys.exit(main())
