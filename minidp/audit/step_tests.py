"""The tests of a step: each yields (p, text), the chance that a right step looks as bad, and what
would be wrong.

A finding of p = 0 needs no chance: the step raised, or gave what no right step gives.
"""

import math

import numpy as np
from scipy import stats

from ..privacy import (
    FixedSizeSampled,
    Gaussian,
    JointGaussian,
    Ledger,
    LossDistributionAccountant,
    NeighbouringRelation,
    PoissonSampled,
)
from .step_trials import FAULT, LAW, SCALES, SPREAD


class Undecided(Exception):
    """Why a test could not decide, and what would let it."""


def _copies(trials, *others):
    return [(trials.copies, scale, *others) for scale in (*SCALES, 0)]


def sensitivity(trials):
    """One row moves the sum by at most C: m copies by m C, alone and beside other rows."""
    m, longest = trials.copies, dict.fromkeys([part.name for part in trials.parts], 0.0)
    for lot in [*_copies(trials), (m, 1, "with made"), (m, 1000, "with made")]:
        weights = {lot: 1, "made": -1} if len(lot) > 2 else {lot: 1}
        for part in trials.parts:
            p, norm = trials.longer(weights, part, m * part.bound)
            found = norm / part.bound
            longest[part.name] = max(longest[part.name], found)
            cause = (
                "rows are not clipped"
                if found > 4 * m
                else "they are clipped in pieces, or to more"
            )
            yield (
                p,
                f"{m} copies of row 0 times {lot[1]:g}{' beside others' * (len(lot) > 2)} move "
                f"{part.name} by {found:.4g} C, {m} C is the most: {cause}",
            )
    for name, found in longest.items():
        if found < 0.01 * m:
            yield (
                0.0,
                f"does not do what it states: no rows move {name}, which is charged: frozen "
                "weights, or gradients that do not reach it",
            )
    if max(longest.values()) < m / 2:
        raise Undecided("no row comes near the clip norm: give make_rows with larger gradients")
    _enough(trials, trials.needed(trials.copies / 4, 6))


def divisor(trials):
    """Twice the rows move the release twice as far, and the noise is the same."""
    m, quiet = trials.copies, trials.quiet
    linear = {}
    for scale in SCALES:
        weights = {(2 * m, scale): 1, (m, scale): -2}
        for part in trials.parts:
            linear[scale, part.name] = trials.longer(weights, part, 0.0)[0]
    wide, narrow = trials.of((2 * m, 1), trials.for_noise), trials.of(quiet, trials.for_noise)
    for part in trials.parts:
        spread = [each[:, part.where].var(axis=0, ddof=1).mean() for each in (wide, narrow)]
        freedom = [part.size * (len(each) - 1) for each in (wide, narrow)]
        ratio = spread[0] / spread[1] if spread[1] else math.inf
        text = f"the noise of {part.name} is {math.sqrt(ratio):.3g} times as large on {2 * m} rows as on {len(trials.lot(quiet))}: "
        few = text + (
            "the sum is divided by the number of rows at hand, not by the expected lot size"
            if min(linear.values()) < 1e-9
            else "noise is averaged over batches, and not scaled with their number"
        )
        yield 2 * stats.f.cdf(ratio, *freedom), few
        yield 2 * stats.f.sf(ratio, *freedom), text + "it is added once per batch, not once per lot"
    # a mean over the lot is gone from the sum when the rows are clipped all the same
    mean = linear[SCALES[-1], trials.parts[0].name] > 1e-9
    text = f"{2 * m} rows do not move the release twice as far as {m}: " + (
        "the loss is a mean over the lot, and 1/B is in the gradients that are clipped"
        if mean
        else "the sum is divided by the number of rows at hand, or clipped as a whole"
    )
    yield from ((p, text) for p in linear.values())
    _enough(trials, trials.needed(m / 4, 6))


def noise(trials):
    """The noise has the stated size in every coordinate, is new each time, and is Gaussian."""
    lots = [trials.of(lot, trials.for_noise) for lot in (trials.quiet, "made", "made twice")]
    apart = np.concatenate([(each[1::2] - each[: len(each) // 2 * 2 : 2]) for each in lots])
    apart /= math.sqrt(2)
    sums, n = (apart**2).sum(axis=0), len(apart)
    frozen = ~np.any([each.any(axis=0) for each in lots], axis=0)
    if frozen.any():
        yield (
            0.0,
            f"does not do what it states: {frozen.sum()} coordinates are 0 in every release: frozen "
            "weights, which are charged and not trained",
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
            f"does not do what it states: {part.name} has {share:.3g} times the stated noise{twice}",
        )
    each = stats.chi2.cdf(sums, n).min() * trials.size
    yield (
        each,
        f"coordinate {np.argmin(sums)} has {math.sqrt(sums.min() / n):.3g} times the stated noise",
    )
    quiet = lots[0] - (lots[0].mean(axis=0) if trials.empty else 0)
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
        law = apart.ravel()[:20_000]
        yield stats.kstest(law, "norm").pvalue, "the noise is not Gaussian"
        if law.size < LAW:
            _enough(trials, trials.for_law)
    _enough(trials, max(SPREAD // min(part.size for part in trials.parts), 16))


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
    loud = trials.of((trials.copies, 1000)).mean(axis=0)
    copies = max(1, round(1.5 * trials.copies / max(np.abs(loud).max(), 1e-9)))
    within = np.abs(loud) * copies / trials.copies > 0.5
    wanted = math.ceil(40 / (0.006 * max(within.sum(), 1)))
    n = wanted if "bits" in trials.stated.claims else 64
    stds = (trials.unit * trials.stated.expected_lot_size)[within]
    for dtype in (np.float32, np.float64):
        spacing, counts = np.spacing((0.4 * stds).astype(dtype)).astype(float), []
        for lot in ("none", (copies, 1000)):
            found = trials.of(lot, n)[:, within]
            steps = (found * stds / spacing)[np.abs(found) < 1 / 64]
            whole = np.sum(np.abs(steps - np.round(steps)) <= 1 / 8)
            counts.append((whole, len(steps) - whole))
        yield (
            stats.fisher_exact(counts).pvalue,
            f"the last bits of small values tell whether rows were there: {dtype.__name__} noise "
            "is added to the sum without a public grid",
        )
    if min(map(sum, counts)) < 20:
        _enough(trials, wanted, len(trials.of("none")))


def processes(trials):
    """Fresh steps do not repeat each other's noise."""
    if trials.stated.make_step is None:
        raise Undecided("give make_step, which starts a fresh step as a new process would")
    rows = trials.lot(trials.quiet)
    fresh = [trials.stated.make_step() for _ in range(4)]
    n = max(8, -(-500 // trials.size))
    series = [np.array([trials.call(rows, step) for _ in range(n)]) / trials.unit for step in fresh]
    series = [each - each.mean(axis=0) for each in series]
    for first, second in zip(series, series[1:]):
        alike = np.sum(first * second) / math.sqrt(first.size)
        yield 2 * stats.norm.sf(abs(alike)), "fresh steps have the same noise: a fixed seed"


def gradients(trials):
    """Per-example gradients are the derivatives of the loss, and know nothing of other rows."""
    stated, rows = trials.stated, trials.rows[:8]
    with np.errstate(all="ignore"):
        given = np.asarray(stated.per_example(rows))
        alone = np.concatenate(
            [np.asarray(stated.per_example(rows[i : i + 1])) for i in range(len(rows))]
        )
    fine = given.dtype == np.float64 and np.asarray(stated.params).dtype == np.float64
    allowed, h = (1e-6, 1e-4) if fine else (0.02, 2**-7)
    scale = np.linalg.norm(alone, axis=1).max()
    if np.linalg.norm(given - alone, axis=1).max() > allowed * scale:
        yield (
            0.0,
            "a row's gradient changes with the other rows: a mean over the lot, or batch statistics",
        )
    for seed in range(3):
        direction = np.random.default_rng(seed).standard_normal(np.shape(stated.params))
        direction /= np.linalg.norm(direction)

        def central(h):
            ends = [
                stated.loss((stated.params + by * direction).astype(stated.params.dtype), rows)
                for by in (h, -h)
            ]
            return (np.asarray(ends[0], float) - np.asarray(ends[1], float)) / (2 * h)

        differences = (4 * central(h / 2) - central(h)) / 3
        errors = np.abs(alone @ direction.ravel() - differences)
        if errors.max() > allowed * scale:
            yield (
                0.0,
                f"the gradient of row {errors.argmax()} is not the derivative of its loss: off by {errors.max() / scale:.2g} of the longest gradient",
            )


def sampler(trials):
    """Lots are Poisson: every row with probability q, independently of other rows and steps."""
    q, lots = trials.stated.sampling_probability, trials.stated.lots
    size = min(1000, max(2, round(trials.stated.expected_lot_size / q)))
    steps = int(min(20_000, max(200, math.ceil(60 / (size * q * q)))))
    there = np.zeros((steps, size))
    for row, lot in zip(there, lots(size, steps)):
        row += np.bincount(np.asarray(lot, np.int64), minlength=size)
    if there.max() > 1:
        yield 0.0, f"a lot holds a row {there.max():.0f} times, which moves the sum as often"
    variance, total = q * (1 - q), there.sum()
    few = min(stats.binom.cdf(total, there.size, q), stats.binom.sf(total - 1, there.size, q))
    yield 2 * few, f"rows are drawn with probability {total / there.size:.4g}, not {q:g}"
    sizes = np.sum((there.sum(axis=1) - size * q) ** 2) / (size * variance)
    yield stats.chi2.cdf(sizes, steps), "lots vary too little in size: fixed lots, not Poisson"
    rows = np.sum((there.sum(axis=0) - steps * q) ** 2) / (steps * variance)
    yield stats.chi2.cdf(rows, size), "rows come equally often: shuffled epochs, not Poisson lots"
    yield stats.chi2.sf(rows / 1.05, size), "some rows come more often than others"
    both, pairs = np.sum(there[1:] * there[:-1]), there[1:].size
    far = (both - pairs * q * q) / math.sqrt(pairs * q * q * (1 - q) * (1 + 3 * q))
    yield (
        2 * stats.norm.sf(0.9 * abs(far)),
        "lots of neighbouring steps are not independent: shuffled, not Poisson",
    )


def event(stated, is_poisson):
    """(event, count) that the steps may be charged as."""
    found = [1 / sigma for _, _, sigma in (stated.parts or {}).values()]
    multiplier = 1 / math.hypot(*found) if found else stated.noise_multiplier
    q, steps = stated.sampling_probability, stated.steps
    if stated.relation == "replace_one":
        release = Gaussian(multiplier / 2)
        size = round(stated.expected_lot_size / q)
        return FixedSizeSampled(size, round(stated.expected_lot_size), release), steps
    if is_poisson and q < 1:
        return PoissonSampled(q, Gaussian(multiplier)), steps
    return Gaussian(multiplier), steps


def claim(trials):
    """The claimed epsilon is not below what the steps cost."""
    stated = trials.stated
    sampled = stated.lots is None or min([p for p, _ in sampler(trials)], default=1) > 1e-6
    release, steps = event(stated, sampled)
    ledger = Ledger(NeighbouringRelation(stated.relation), [(release, steps)])
    found = LossDistributionAccountant(ledger.relation).epsilon(ledger, stated.delta)
    text = f"{stated.claimed_epsilon:g} is claimed; {release} x {steps} costs from {found.lower or 0:.4g} to {found.upper:.4g}"
    if stated.claimed_epsilon < (found.lower or 0):
        yield 0.0, text
    elif stated.claimed_epsilon < found.upper:
        raise Undecided(text)


def _enough(trials, needed, had=None):
    had = trials.for_shift if had is None else had
    had = max(had, len(trials.of(trials.quiet)))
    if needed > had:
        raise Undecided(
            f"{needed} releases of each lot would decide, and {had} were made: raise most_releases"
        )
