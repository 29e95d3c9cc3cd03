"""Masses that a sampled Gaussian's loss dominates, for lower ends of intervals."""

import math

import numpy as np

from ...host.jit import njit
from .kernels import _integrals, log_ratio_at
from .masses import ADD, Masses

FAR = (
    40.0  # standard deviations from both peaks, 0 and m, beyond which masses (e^-800) leave float64
)


def dominated(q, m, direction, step, base, low, knots, z):
    if q < 1 and low == 0:
        # Most of the mass may lie within a fraction of a step above ln(1-q): the lowest atom takes
        # all up to some fraction of a step, and the grid starts at its loss. Where the losses thin
        # out fast, half a step leaves too little above it for an atom at the next knot, and a
        # larger fraction is tried.
        reach = -math.inf
        for fraction in (0.5, 0.7, 0.85, 0.95):
            begin, lift, log_q_mass = _lowest_atom(q, m, fraction * step)
            log_mass, end = merged_gaussian_masses(q, m, step, lift, knots, begin)
            log_mass[0] = log_q_mass + base + lift
            if end > reach:
                reach, best = end, (log_mass, lift)
            if reach > 0.7 * z:
                break
        log_mass, lift = best
    else:
        lift, begin = 0.0, (log_ratio_at(q, m, (low - 0.5) * step) + 0.5 * m * m) / m
        log_mass, reach = merged_gaussian_masses(q, m, step, lift, knots, begin)
    filled = np.flatnonzero(log_mass > -math.inf)
    if not len(filled):
        # the steps are so wide that no knot is reached: all outcomes merged have the loss 0
        return Masses(np.zeros(1), np.zeros(1, np.int64), 0.0, -math.inf)
    masses = Masses(log_mass, knots, base + lift, -math.inf)
    if direction == ADD:
        return masses.mirrored(step, -math.inf)
    # what reached no atom of its own counts as having the loss of the last one
    beyond = np.logaddexp(
        math.log1p(-q) + _log_normal_cdf(-reach) if q < 1 else -math.inf,
        math.log(q) + _log_normal_cdf(m - reach),
    )
    log_mass[filled[-1]] = np.logaddexp(log_mass[filled[-1]], beyond)
    return masses


def _lowest_atom(q, m, height):
    """(x, lift, ln Q) of the atom of all outcomes below x: its loss is ln(1-q) + lift, `height`
    below that of x.
    """

    def atom(above):
        x = (log_ratio_at(q, m, above) + 0.5 * m * m) / m
        log_q_mass = _log_normal_cdf(x)
        lift = math.log1p(q / (1 - q) * math.exp(_log_normal_cdf(x - m) - log_q_mass))
        return x, lift, log_q_mass

    low, high = height, 2 * height
    while high - atom(high)[1] < height:
        low, high = high, 2 * high
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle - atom(middle)[1] < height else (low, middle)
    return atom(high)


def _log_normal_cdf(x):
    """ln P(N(0,1) < x)."""
    from scipy.special import log_ndtr

    return float(log_ndtr(x))


@njit(cache=True)
def merged_gaussian_masses(q, m, h, lift, knots, begin):
    """(log P-masses at the knots of a coarser view of the same pair, outcomes merged into atoms;
    the x up to which it goes).

    Knots stand at ln(1-q) + lift + k h (lift + k h where q = 1). From x = begin on, each atom takes
    outcomes up to the x at which its own ln(P/Q) is exactly the knot's loss, the zero of int phi (r
    - r_knot); knots already passed stay empty. Merging outcomes only loses information, so (P, Q)
    dominates the result, in both directions; what lies below `begin`, or is too thin to reach the
    next knot, is left out.
    """
    masses = np.full(len(knots), -math.inf)
    start = max(begin, -FAR)
    for k in range(len(knots)):
        above = lift + knots[k] * h
        knot = (log_ratio_at(q, m, above) + 0.5 * m * m) / m
        if knot <= start:
            continue
        if max(knot - max(start, m), start - m) > FAR:
            break  # too little mass is left to reach this knot, or any further one
        peak = min(max(0.0, start), knot)
        missing, plain, _ = _integrals(start, knot, knot, m, peak)
        left, width, reached = knot, knot - start, False
        for _ in range(60):
            gain, more, _ = _integrals(left, left + width, knot, m, peak)
            reached = missing + gain >= 0.0
            if reached or left + width - max(knot, m) > FAR:
                break
            missing += gain
            plain += more
            left += width
        if not reached:
            break
        stop = left + width
        low_end, high_end = left, stop
        for _ in range(60):  # Newton's method, kept inside the bracket
            gain, more, _ = _integrals(left, stop, knot, m, peak)
            total = missing + gain
            low_end, high_end = (low_end, stop) if total >= 0.0 else (stop, high_end)
            slope = math.exp(0.5 * (peak - stop) * (peak + stop)) * math.expm1(m * (stop - knot))
            change = total / slope if slope > 0.0 else 0.0
            if abs(change) <= 1e-14 * (1.0 + abs(stop)) or high_end - low_end <= 1e-14 * (
                1.0 + abs(stop)
            ):
                break
            stop -= change
            if not low_end < stop < high_end:
                stop = 0.5 * (low_end + high_end)
        loss = (math.log1p(-q) if q < 1.0 else 0.0) + above
        masses[k] = (
            loss + math.log(plain + more) - 0.5 * peak * peak - 0.5 * math.log(2.0 * math.pi)
        )
        start = stop
    return masses, start
