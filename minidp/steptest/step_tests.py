"""The tests of a step. Each yields (p, text): the probability that a right step looks as bad, and a
text on the fault. p = 0 means that no right step can give this result.
"""

import math
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..privacy import (
    JointGaussian,
    Ledger,
    LossDistributionAccountant,
    NeighbouringRelation,
    PoissonSampled,
)
from .step_calls import calls, directions
from .step_linear import divisor, independence
from .step_noise import noise, pairs
from .step_sums import finite, sensitivity, trained
from .step_trials import FEWEST, LOUD, Lot, Undecided

PERIODS, TOGETHER = (100, 500), 2000  # steps of a run's parts; rows of which pairs are counted
MOST_EMPTY, PROCESSES = 300, 200  # calls; fresh steps


def empty_lot(trials):
    """An empty lot releases only noise."""
    if not trials.empty:
        n = max(trials.for_sum, min(MOST_EMPTY, trials.needed(0, 1)))
        yield from (each[:2] for each in trials.moved(0, (1, Lot()), n=n))
    elif "poisson" in trials.stated.claims:
        yield 0.0, f"an empty lot raises {trials.empty!r:.200}"
    else:
        raise Undecided(
            f"it raises {trials.empty!r:.200}: a step of Poisson lots must take it. In JAX, pad "
            "the lot with rows of weight 0 to a fixed size before the gradient"
        )


def bits(trials):
    """The last bits of small values do not tell what was added to the noise.

    Floating-point noise that was large before the sum was added has no bits below its spacing; on a
    public grid the bits are always the same.
    """
    moved = np.abs(trials.mean(Lot(0, trials.copies, LOUD))[0])
    there = moved > moved.max() / 4
    if trials.empty or not moved.max() > 1:
        raise Undecided("the step does not take an empty lot, or no rows move it")
    copies = math.ceil(2 * trials.copies / moved.max())  # moves them by 0.5 to 2 times their noise
    wanted = math.ceil(15_000 / there.sum())
    lots = [np.array(list(trials.releases(lot, wanted))) for lot in (Lot(), Lot(0, copies, LOUD))]
    stds = trials.unit * trials.stated.expected_lot_size
    for dtype in (np.float32, np.float64):
        spacing, counts = np.spacing((0.4 * stds).astype(dtype)).astype(float), []
        for found in lots:
            steps = (found * stds / spacing)[there & (np.abs(found) < 1 / 64)]
            whole = np.sum(np.abs(steps - np.round(steps)) <= 1 / 8)
            counts.append((whole, len(steps) - whole))
        yield (
            stats.fisher_exact(counts).pvalue,
            f"the last bits of small values tell whether rows were there: {dtype.__name__} noise "
            "is added to the sum without a public grid",
        )


def processes(trials):
    """Fresh steps do not repeat each other's noise, and have noise from their first call on."""
    lot, n = trials.quiet, max(2, -(-FEWEST // trials.size))
    mean = trials.mean(lot, trials.for_law)[0] if lot.rows else 0.0
    steps = (trials.stated.make_step() for _ in range(PROCESSES))
    found = np.array([list(trials.releases(lot, n, step)) for step in steps]) - mean
    for call, numbers in enumerate(found.transpose(1, 0, 2), 1):
        p = stats.chi2.cdf((numbers**2).sum(), numbers.size)
        yield p, f"call {call} of {PROCESSES} fresh steps has {numbers.std():.3g} times the noise"
    yield pairs("a fixed or short seed: fresh steps", found.reshape((PROCESSES, -1)))


def gradients(trials):
    """Per-example gradients are the derivatives of the loss."""
    stated, rows = trials.stated, trials.rows[:8]
    params = np.asarray(stated.params)
    given = np.asarray(stated.per_example(rows))
    fine = given.dtype == params.dtype == np.float64
    allowed, h = (1e-4, 1e-5) if fine else (0.02, 2**-7)
    direction = np.random.default_rng(0).standard_normal(params.shape)
    direction *= h / np.linalg.norm(direction)
    ends = [(params + by * direction).astype(params.dtype) for by in (1, -1)]
    high, low = (np.asarray(stated.loss(end, rows), float) for end in ends)
    if high.shape != (len(rows),) or not (high - low).any():
        raise Undecided("loss: expected one number per row, which params change")
    errors = np.abs(2 * given @ direction.ravel() - (high - low)) / np.abs(high - low).max()
    if not errors.max() <= allowed:
        yield (
            0.0,
            f"the gradient of row {errors.argmax()} is not the derivative of its loss: off by "
            f"{errors.max():.2g} of the largest derivative",
        )


def sampler(trials):
    """Lots are Poisson: every row with probability q, independently of other rows and steps."""
    stated, q, steps = trials.stated, trials.stated.sampling_probability, 1000
    size = min(10_000, max(2, round(stated.expected_lot_size / q)))
    lots = islice(stated.lots(size, steps), steps)
    there = np.array([np.bincount(np.asarray(lot, int), minlength=size) for lot in lots])
    if there.shape != (steps, size):
        raise Undecided(f"expected {steps} lots of rows below {size}, got an array {there.shape}")
    if there.max() > 1:
        yield 0.0, f"a lot holds a row {there.max()} times, which moves the sum as often"
    far = (there - q) / math.sqrt(q * (1 - q) or 1)
    p = 2 * stats.norm.sf(0.9 * abs(far.sum()) / math.sqrt(far.size))
    yield p, f"rows are drawn with probability {there.mean():.4g}, not {q:g}"
    sizes, times = (np.sum(far.sum(axis=axis) ** 2) / far.shape[axis] for axis in (1, 0))
    if q < 1:
        yield stats.chi2.sf(sizes / 1.05, steps), "lots vary too much: rows come together"
        yield stats.chi2.cdf(sizes, steps), "lots vary too little: fixed lots, not Poisson"
        yield stats.chi2.cdf(times, size), "rows come equally often: shuffled, not Poisson lots"
    z = (far[1:] * far[:-1]).sum() / math.sqrt(far[1:].size)
    yield 2 * stats.norm.sf(0.9 * abs(z)), "lots after each other have rows in common, or none"
    rarest = stats.binom.cdf(there.sum(axis=0).min(), steps, q) * size
    yield rarest, "a row is hardly ever drawn"
    for period, begin in ((each, begin) for each in PERIODS for begin in range(0, steps, each)):
        drawn = int(there[begin : begin + period].sum())
        law = stats.binom(period * size, q)
        p = 2 * min(law.cdf(drawn), law.sf(drawn - 1))
        yield p, f"the probability of a row changes: {drawn / period / size:.4g} from {begin} on"
    some = there[:, :TOGETHER].astype(np.float32)
    together = np.triu(some.T @ some, 1).max()
    p = stats.binom.sf(together - 1, steps, q * q) * some.shape[1] ** 2 / 2
    yield p, f"two rows come together in {together:.0f} of {steps} lots"
    yield stats.chi2.sf(times / 1.05, size), "some rows come more often, or lots come again"


def claim(trials):
    """The claimed epsilon is not below the cost of the steps."""
    stated, q = trials.stated, trials.stated.sampling_probability
    sigmas = np.array([sigma for _, _, sigma in stated.clipped.values()])
    event = PoissonSampled(q, JointGaussian(sigmas))
    ledger = Ledger(NeighbouringRelation(stated.relation), [(event, stated.steps)])
    found = LossDistributionAccountant(ledger.relation).epsilon(ledger, stated.delta)
    low = found.lower or 0
    text = f"{stated.claimed_epsilon:g} is claimed, the cost is {low:.4g} to {found.upper:.4g}"
    if stated.claimed_epsilon < low:
        yield 0.0, text
    elif not stated.claimed_epsilon >= found.upper:
        raise Undecided(text)


class Test(NamedTuple):
    """A row of TESTS. claim: claim without which a failure is only a note; needs: fields of
    `Stated`, except "bits". The test is left out if neither the claim nor the first field is given.
    """

    name: str
    run: Callable
    claim: str = ""
    needs: tuple = ("step",)


TESTS = (
    Test("sensitivity", sensitivity),
    Test("divisor", divisor),
    Test("noise", noise),
    Test("directions", directions, claim="directions"),
    Test("empty lot", empty_lot),
    Test("independence of rows", independence),
    Test("calls", calls),
    Test("trained", trained, claim="trained"),
    Test("finite", finite, claim="finite"),
    Test("bits", bits, claim="bits", needs=("bits",)),
    Test("processes", processes, claim="processes", needs=("make_step",)),
    Test("gradients", gradients, needs=("per_example", "loss", "params")),
    Test("sampler", sampler, claim="poisson", needs=("lots", "sampling_probability")),
    Test("claim", claim, needs=("claimed_epsilon", "sampling_probability", "steps", "delta")),
)
ANY_SIZE = {"divisor", "empty lot"}  # lots of one size may fail these
