"""The tests of what a step gives beside its releases: fresh starts, gradients, lots, an epsilon.

Each yields (p, text), as those of `step_tests` do.
"""

import math

import numpy as np
from scipy import stats

from ..privacy import (
    FixedSizeSampled,
    Gaussian,
    Ledger,
    LossDistributionAccountant,
    NeighbouringRelation,
    PoissonSampled,
)
from .step_trials import Undecided


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
            "a row's gradient changes with the other rows: a mean over the lot, or batch "
            "statistics",
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
        errors = np.abs(alone @ direction.ravel() - differences) / np.abs(differences).max()
        if errors.max() > allowed:
            yield (
                0.0,
                f"the gradient of row {errors.argmax()} is not the derivative of its loss: off by "
                f"{errors.max():.2g} of the largest derivative",
            )


def sampler(trials):
    """Lots are Poisson: every row with probability q, independently of other rows and steps."""
    q, lots = trials.stated.sampling_probability, trials.stated.lots
    if lots is None:
        raise Undecided("give lots and sampling_probability, which the claim is about")
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


def _event(stated, is_poisson):
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
    release, steps = _event(stated, sampled)
    ledger = Ledger(NeighbouringRelation(stated.relation), [(release, steps)])
    found = LossDistributionAccountant(ledger.relation).epsilon(ledger, stated.delta)
    text = (
        f"{stated.claimed_epsilon:g} is claimed; {steps} times {release} may be charged, which "
        f"costs from {found.lower or 0:.4g} to {found.upper:.4g}"
    )
    if stated.claimed_epsilon < (found.lower or 0):
        yield 0.0, text
    elif stated.claimed_epsilon < found.upper:
        raise Undecided(text)
