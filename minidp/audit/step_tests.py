"""The tests that every step gets: each yields (p, text), the chance that a right step looks as bad,
and what would be wrong.

A finding of p = 0 needs no chance: no right step gives that.
"""

import math

import numpy as np
from scipy import stats

from .step_trials import SCALES, Undecided

AT_HAND = "the sum is divided by the number of rows at hand, not by the expected lot size"


def sensitivity(trials):
    """One row moves the sum by at most C: m copies by m C, alone and beside other rows."""
    m, longest, moved = trials.copies, 0.0, set()
    beside = [(m, 1, "with made"), (m, 1000, "with made")] if trials.varies else []
    for lot in [*((m, scale) for scale in (*SCALES, 0)), *beside]:
        weights = {lot: 1, "made": -1} if lot in beside else {lot: 1}
        for part in trials.parts:
            p, norm = trials.longer(weights, part, m * part.bound)
            if trials.longer(weights, part, 0.0)[0] < 1e-6:
                moved.add(part.name)
            found = norm / part.bound
            longest = max(longest, found)
            cause = "rows are not clipped" if found > 4 * m else "clipped in pieces, or to more"
            yield (
                p,
                f"{m} copies of row 0 times {lot[1]:g}{' beside others' if lot in beside else ''} "
                f"move {part.name} by {found:.4g} C, {m} C is the most: {cause}",
            )
    for part in trials.parts:
        if part.name not in moved:
            yield (
                0.0,
                f"does not do what it states: no rows move {part.name}, which is charged: frozen "
                "weights, gradients that do not reach it, or a sum that is clipped as a whole",
            )
    if longest < m / 2:
        raise Undecided("no row comes near the clip norm: give make_rows with larger gradients")
    trials.enough(trials.for_shift, trials.stated.most_releases)


def divisor(trials):
    """Twice the rows move the release twice as far, and the noise is the same."""
    m, quiet = trials.copies, trials.quiet
    linear = {}
    for scale in SCALES:
        weights = {(2 * m, scale): 1, (m, scale): -2}
        for part in trials.parts:
            linear[scale, part.name] = trials.longer(weights, part, 0.0)[0]
    loud = [trials.of((copies, SCALES[-1])).mean(axis=0) for copies in (m, 2 * m)]
    shrinks = np.linalg.norm(loud[1]) < 1.5 * np.linalg.norm(loud[0])
    wide, narrow = trials.of((2 * m, 1), trials.for_noise), trials.of(quiet, trials.for_noise)
    for part in trials.parts:
        spread = [each[:, part.where].var(axis=0, ddof=1).mean() for each in (wide, narrow)]
        freedom = [part.size * (len(each) - 1) for each in (wide, narrow)]
        ratio = spread[0] / spread[1] if spread[1] else math.inf
        text = (
            f"the noise of {part.name} is {math.sqrt(ratio):.3g} times as large on {2 * m} rows "
            f"as on {len(trials.lot(quiet))}: "
        )
        averaged = "noise is averaged over batches, and not scaled with their number"
        yield 2 * stats.f.cdf(ratio, *freedom), text + (AT_HAND if shrinks else averaged)
        yield 2 * stats.f.sf(ratio, *freedom), text + "it is added once per batch, not once per lot"
    clipped_alike = linear[SCALES[-1], trials.parts[0].name] > 1e-9
    mean = "the loss is a mean over the lot, and 1/B is in the gradients that are clipped"
    text = f"{2 * m} rows do not move the release twice as far as {m}: "
    yield from ((p, text + (mean if clipped_alike else AT_HAND)) for p in linear.values())
    trials.enough(trials.for_shift, trials.stated.most_releases)


def noise(trials):
    """The noise has the stated size in every coordinate, is new each time, and is Gaussian."""
    names = [trials.quiet, *(["made", "made twice"] if trials.varies else [])]
    lots = [trials.of(lot, trials.for_law) for lot in names[:1]]
    lots += [trials.of(lot, trials.for_noise) for lot in names[1:]]
    apart = np.concatenate([(each[1::2] - each[: len(each) // 2 * 2 : 2]) for each in lots])
    apart /= math.sqrt(2)
    sums, n = (apart**2).sum(axis=0), len(apart)
    frozen = ~np.any([each.any(axis=0) for each in lots], axis=0)
    if frozen.any():
        yield (
            0.0,
            f"does not do what it states: {frozen.sum()} coordinates are 0 in every release: "
            "frozen weights, which are charged and not trained",
        )
    right = not frozen.any()
    for part in trials.parts:
        total, freedom = sums[part.where].sum(), n * part.size
        share = math.sqrt(total / freedom)
        few, much = stats.chi2.cdf(total, freedom), stats.chi2.sf(total, freedom)
        right &= min(few, much) > 1e-9
        cause = "every release has the same noise, or none" if share < 1e-3 else "too little noise"
        yield few, f"{part.name}: the noise is {share:.3g} times the stated one: {cause}"
        twice = ", as if it were added twice" if abs(share - math.sqrt(2)) < 0.1 else ""
        yield (
            much,
            f"does not do what it states: {part.name} has {share:.3g} times the stated noise"
            f"{twice}",
        )
    each = stats.chi2.cdf(sums, n).min() * trials.size
    yield (
        each,
        f"coordinate {np.argmin(sums)} has {math.sqrt(sums.min() / n):.3g} times the stated noise",
    )
    quiet = lots[0]
    if trials.quiet != "none":
        quiet = (quiet - quiet.mean(axis=0)) / math.sqrt(1 - 1 / len(quiet))
    again = np.sum(quiet[1:] * quiet[:-1]) / math.sqrt(quiet[1:].size)
    yield 2 * stats.norm.sf(abs(again)), "the noise of a release is correlated with the one before"
    if trials.size > 1:
        power = np.abs(np.fft.rfft(quiet, 2 * trials.size)) ** 2
        pairs = len(quiet) * (trials.size - np.arange(trials.size))
        lags = np.abs(np.fft.irfft(power.sum(axis=0))[: trials.size]) / np.sqrt(pairs)
        lags[(pairs < 500) | (np.arange(trials.size) == 0)] = 0
        yield (
            2 * trials.size * stats.norm.sf(0.9 * lags.max()),
            f"coordinates {np.argmax(lags)} apart have the same noise, or correlated noise",
        )
    if right:
        law = quiet.ravel()[:20_000]
        yield stats.kstest(law, "norm").pvalue, "the noise is not Gaussian"
    trials.enough(max(trials.for_law, trials.for_noise), trials.stated.most_releases)


def empty_lot(trials):
    """An empty lot releases noise alone."""
    if trials.empty:
        yield 0.0, f"an empty lot raises {trials.empty!r:.200}"
        return
    for part in trials.parts:
        yield trials.longer({"none": 1}, part, 0.0)[0], f"an empty lot moves {part.name}"


def independence(trials):
    """What rows add does not change with the other rows."""
    for scale in (1, 1000):
        lot = (trials.copies, scale)
        weights = {(*lot, "with made"): 1, lot: -1, "made": -1}
        for part in trials.parts:
            yield (
                trials.longer(weights, part, 0.0)[0],
                f"what rows add to {part.name} depends on the other rows: batch statistics, a mean "
                f"over the lot, or a sum clipped as a whole ({trials.copies} made rows beside as "
                f"many copies of row 0 times {scale})",
            )
    moved = trials.longer({"made": 1}, trials.parts[0], 0.0)
    if moved[0] > 1e-9:
        raise Undecided(
            "the made rows do not move the release: give make_rows with larger gradients"
        )


def finite(trials):
    """Rows that are not finite change nothing but their own share."""
    m = trials.copies
    for value in (math.nan, math.inf):
        lot = (m, value, "with made")
        if not np.isfinite(trials.of(lot)).all():
            yield 0.0, f"a row of {value} makes the release NaN or infinite"
            continue
        for part in trials.parts:
            p, norm = trials.longer({lot: 1, "made": -1}, part, m * part.bound)
            yield p, f"{m} rows of {value} move {part.name} by {norm / part.bound:.3g} C"


def bits(trials):
    """The last bits of small values do not tell what was added to the noise.

    Floating-point noise that was large before the sum was added has no bits below its spacing; a
    public grid has the same bits always.
    """
    if trials.empty:
        raise Undecided("the step does not take an empty lot")
    moved = np.abs(trials.of((trials.copies, 1000)).mean(axis=0))
    loud = np.where(moved > 1.5, moved, 0) / trials.copies  # six deviations of the mean

    def within(copies):
        return (loud * copies > 0.5) & (loud * copies < 2)

    copies = max((2**power for power in range(12)), key=lambda copies: within(copies).sum())
    there = within(copies)
    wanted = math.ceil(60 / (0.004 * max(there.sum(), 1)))
    n = wanted if "bits" in trials.stated.claims else 64
    stds = (trials.unit * trials.stated.expected_lot_size)[there]
    for dtype in (np.float32, np.float64):
        spacing, counts = np.spacing((0.4 * stds).astype(dtype)).astype(float), []
        for lot in ("none", (copies, 1000)):
            found = trials.of(lot, n)[:, there]
            steps = (found * stds / spacing)[np.abs(found) < 1 / 64]
            whole = np.sum(np.abs(steps - np.round(steps)) <= 1 / 8)
            counts.append((whole, len(steps) - whole))
        yield (
            stats.fisher_exact(counts).pvalue,
            f"the last bits of small values tell whether rows were there: {dtype.__name__} noise "
            "is added to the sum without a public grid",
        )
    if min(map(sum, counts)) < 20:
        trials.enough(wanted, len(trials.of("none")))
