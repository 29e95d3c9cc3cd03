"""Statistical tests of both noises, ordinary and exact, as the sums get them.

    python -m tools.noise_statistics [--draws 1e9] [--std 17179869184] [--seed N] [--json FILE]

Moments, tails, pairs of neighbours and of numbers 256 and 512 apart (those that share words, and
stretches), the same number of successive releases, bands of the spectrum and its largest ordinate,
and the low bits of the grid's cells. Exits with 1 if a p-value is below 1e-4 divided by the number
of tests. Ctrl-C keeps what was counted.
"""

import math
import sys

import numpy as np
from scipy import stats
from tqdm import tqdm

from minidp.cli import Parser, number, user_errors, whole_number
from minidp.files import write_json
from minidp.host.discrete import total_variation
from minidp.run.progress import stop_on_interrupt
from minidp.streams import GENERATOR, Streams
from tools.bench.machine import available_cores, processor, vector_flags, versions

CHUNK = 2**18  # numbers of a release
GRID = 2.0**-20  # of the ordinary noise, whose standard deviation is 1
APART, BANDS, LOW, LEVEL = (1, 256, 512), 64, 1024, 1e-4
MOMENTS = ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96))  # power, its mean, its variance


def draw(draws, std):
    """(a chunk of noise with standard deviation 1, the numbers of its cells); std 0 is the ordinary
    noise.
    """
    out = np.zeros(CHUNK)
    if std:
        draws.add_integers(out, std)
        return out / std, out
    draws.add_normals(out, 1.0, GRID)
    return out, out / GRID


def counted(x, cells, before):
    """What the tests need of one chunk and of the one before: sums, and the spectrum's largest
    ordinate at the end.
    """
    square, size = x * x, abs(x)
    powers = [x.sum(), square.sum(), square @ x, square @ square]
    tails = [np.count_nonzero(size > k) for k in range(1, 7)]
    pairs = [(x[:-n], x[n:]) for n in APART] + [(x, before)]
    together = [value for a, b in pairs for value in (a @ b, (a * a - 1) @ (b * b - 1))]
    ordinates = (abs(np.fft.rfft(x)) ** 2)[1:-1] / CHUNK
    bands = [band.sum() for band in np.array_split(ordinates, BANDS)]
    low = np.bincount(cells.astype(np.int64) % LOW, minlength=LOW)
    return np.array([*powers, *tails, *together, *bands, *low]), ordinates.max()


def tests(sums, largest, chunks, grid):
    """(name, statistic, p-value) of each test of the sums over so many chunks."""
    n = chunks * CHUNK
    powers, tails, together, bands, low = np.split(
        sums, np.cumsum([4, 6, 2 * len(APART) + 2, BANDS])
    )

    def normal(name, total, mean, count, variance):
        z = (total - count * mean) / math.sqrt(count * variance)
        return name, z, 2 * stats.norm.sf(abs(z))

    for (power, mean, variance), total in zip(MOMENTS, powers):
        yield normal(f"moment {power}, z", total, mean, n, variance)
    for k, count in enumerate(tails, 1):  # a value beyond k was beyond k and half a cell
        p = math.erfc((k + grid / 2) / math.sqrt(2))
        yield (
            f"beyond {k} sigma, times expected",
            count / (n * p),
            stats.binomtest(int(count), n, p).pvalue,
        )
    places = [f"{apart} apart" for apart in APART] + ["successive releases"]
    counts = [chunks * (CHUNK - apart) for apart in APART] + [n]
    for place, count, (values, squares) in zip(places, counts, together.reshape((-1, 2))):
        yield normal(f"{place}: product, z", values, 0, count, 1)
        yield normal(f"{place}: product of squares less 1, z", squares, 0, count, 4)
    ordinates = CHUNK // 2 - 1
    sizes = [len(band) * chunks for band in np.array_split(np.empty(ordinates), BANDS)]
    scores = sum((band - size) ** 2 / size for band, size in zip(bands, sizes))
    yield f"{BANDS} bands of the spectrum, chi-square", scores, stats.chi2.sf(scores, BANDS)
    yield (
        "largest ordinate, times mean",
        largest,
        -math.expm1(ordinates * chunks * math.log1p(-math.exp(-largest))),
    )
    yield f"cells modulo {LOW}, chi-square", *stats.chisquare(low)


def main(argv=None):
    """Draw, test, print; the exit status is the verdict."""
    parser = Parser(prog="python -m tools.noise_statistics", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--draws", type=whole_number, default=10**9, help="of each noise, at least (default: 1e9)"
    )
    parser.add_argument(
        "--std", type=number, default=2.0**34, help="of the integers (default: 2^34)"
    )
    parser.add_argument(
        "--seed", type=whole_number, help="for numbers that repeat (default: the system's entropy)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    args = parser.parse_args(argv)
    noises, steps = (
        {"ordinary": (0, GRID), "exact": (args.std, 1 / args.std)},
        max(1, -(-args.draws // CHUNK)),
    )
    with (
        user_errors() as note,
        stop_on_interrupt() as stopped,
        tqdm(total=2 * steps * CHUNK, unit="draw", unit_scale=True, disable=None) as bar,
    ):
        note.saved, chunks, tau = "nothing was written", 0, total_variation(args.std)
        streams, sums, largest = (
            Streams(args.seed),
            dict.fromkeys(noises, 0),
            dict.fromkeys(noises, 0.0),
        )
        before = {
            name: draw(streams.noise(place), std)[0]
            for place, (name, (std, _)) in enumerate(noises.items())
        }
        while chunks < steps and not (chunks and stopped()):
            chunks += 1
            for place, (name, (std, _)) in enumerate(noises.items()):
                x, cells = draw(streams.noise(2 * chunks + place), std)
                found, ordinate = counted(x, cells, before[name])
                sums[name], largest[name], before[name] = (
                    sums[name] + found,
                    max(largest[name], ordinate),
                    x,
                )
                bar.update(CHUNK)
        rows = [
            {"noise": name, "test": test, "statistic": float(statistic), "p_value": float(p)}
            for name in noises
            for test, statistic, p in tests(sums[name], largest[name], chunks, noises[name][1])
        ]
        worst, level = min(row["p_value"] for row in rows), LEVEL / len(rows)
        verdict = "nothing found" if worst >= level else "FAIL"
        bar.close()
        for row in rows:
            print(
                f"{row['noise']:9} {row['test']:42} {row['statistic']:12.5g}  p "
                f"{row['p_value']:.3g}"
            )
        print(
            f"{verdict}: {chunks * CHUNK:.4g} draws of each noise, smallest p {worst:.2g}, level "
            f"{level:.2g}"
        )
        if args.json:
            write_json(
                args.json,
                {
                    "command": " ".join(
                        [
                            "python -m tools.noise_statistics",
                            *(sys.argv[1:] if argv is None else argv),
                        ]
                    ),
                    "device": {
                        "processor": processor(),
                        "vector": vector_flags(),
                        "cores": available_cores(),
                    },
                    "versions": versions(),
                    "generator": GENERATOR,
                    "reproducible": streams.reproducible,
                    "draws": chunks * CHUNK,
                    "std": args.std,
                    "total_variation": tau,
                    "tests": rows,
                    "smallest_p_value": worst,
                    "level": level,
                    "verdict": verdict,
                },
            )
    return int(verdict == "FAIL")


if __name__ == "__main__":
    sys.exit(main())
