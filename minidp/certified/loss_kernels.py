"""Numba kernels for privacy loss distributions on a grid of losses.

A pair (P, Q) has the loss L = ln(dP/dQ). For P = (1-q) N(0,1) + q N(m,1), Q = N(0,1) and r =
dN(m,1)/dN(0,1), L rises with x. The grid has knots l_k = offset + k h. All masses are kept as
logarithms, because far tails matter.
"""

import math

import numpy as np

from ..host.jit import CACHED, njit

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
NODES, WEIGHTS = 0.5 * (NODES + 1.0), 0.5 * WEIGHTS
CUT_OFF = (
    120.0  # an integral is cut off where it is e^-60 of its cell's peak; this is twice the exponent
)
# standard deviations from both peaks, 0 and m, beyond which masses (e^-800) leave float64
FAR = 40.0
SMALL_SHIFT = 0.05  # of the mean, in standard deviations of the noise


def log_tail(z):
    """An upper bound on ln P(N(0,1) > z)."""
    return -0.5 * z * z - math.log(z) - 0.5 * math.log(2 * math.pi)


@njit(cache=CACHED)
def log_ratio_at(q, m, above):
    """ln of (e^l - 1 + q) / q, the unsampled ratio at the loss l = ln(1-q) + above (l = above if q
    = 1).
    """
    if q == 1.0:
        return above
    if above <= 0.0:
        return -math.inf
    if m < SMALL_SHIFT:  # keep the digits of ratios near 1, which decide
        loss = math.log1p(-q) + above
        if abs(loss) < 0.5 * q:
            return math.log1p(math.expm1(loss) / q)
    log_growth = (
        above + math.log1p(-math.exp(-above)) if above > 30.0 else math.log(math.expm1(above))
    )
    return math.log1p(-q) - math.log(q) + log_growth


@njit(cache=CACHED)
def knots_between(low, high, h, base, share, widest):
    """Indices, from low to high, of the knots in use, at losses base + k h: all knots near loss 0,
    fewer further out.

    Gaps stay below `share` of the loss, so that moving it to a knot changes its square by little,
    and below `widest`.
    """
    knots = np.empty(high - low + 1, np.int64)
    count, k = 0, low
    while k < high:
        knots[count] = k
        count += 1
        ahead = base + k * h
        gap = min(share * (ahead if ahead > 0.0 else -ahead / (1.0 + share)), widest)
        k = min(high, k + max(1, int(gap / h)))
    knots[count] = high
    return knots[: count + 1]


@njit(cache=CACHED)
def _integrals(start, stop, anchor, m, peak):
    """Integrals over [start, stop] of w (t - 1), of w and of w t; w = e^((peak^2 - x^2)/2), t =
    e^(m (x - anchor)).

    Gauss-Legendre in pieces so short that eight nodes reach full precision (length 2.5 around 0
    would err by 1e-11, which 10^10 releases make a third of the mass).
    """
    excess = plain = tilted = 0.0
    while start < stop:
        length = min(stop - start, 1.25, 2.5 / (abs(start) + m + 1.0))
        for i in range(8):
            x = start + length * NODES[i]
            weight = length * WEIGHTS[i] * math.exp(0.5 * (peak - x) * (peak + x))
            excess += weight * math.expm1(m * (x - anchor))
            plain += weight
            tilted += weight * math.exp(m * (x - anchor))
        start = start + length if stop - start > length else stop
    return excess, plain, tilted


@njit(cache=CACHED)
def spread_gaussian_masses(q, m, h, lift, knots):
    """log P-masses at the knots of a pair that dominates P = (1-q) N(0,1) + q N(m,1), Q = N(0,1).

    Knots stand at ln(1-q) + lift + k h (lift + k h where q = 1). Each cell [a, b] in x between two
    knots i < j hands its mass to both so that P(cell) and Q(cell) stay what they are ("connecting
    the dots", Doroshenko et al. 2022):

        to knot j   (P - e^l_i Q) / (1 - e^(l_i - l_j))       P - e^l_i Q = q int phi (r - r_a)
        to knot i   (e^l_j Q - P) / (e^(l_j - l_i) - 1)       e^l_j Q - P = q int phi (r_b - r)
    """
    masses = np.full(len(knots), -math.inf)
    base = (math.log1p(-q) if q < 1.0 else 0.0) + lift
    b = (log_ratio_at(q, m, lift + knots[0] * h) + 0.5 * m * m) / m
    for k in range(len(knots) - 1):
        a = b
        log_ratio = log_ratio_at(q, m, lift + knots[k + 1] * h)
        b = (log_ratio + 0.5 * m * m) / m
        gap = (knots[k + 1] - knots[k]) * h
        low, high = base + knots[k] * h, base + knots[k + 1] * h
        if q < 1.0 and m < SMALL_SHIFT and max(abs(low), abs(high)) < 0.5 * q:
            gap = high - low  # of the losses as log_ratio_at rounds them
        # the x nearest 0 in the cell, and the part of the cell that is worth integrating
        peak = min(max(0.0, a), b)
        slope = max(0.0, -peak)
        start = max(a, peak - math.sqrt(slope * slope + CUT_OFF) + slope)
        slope = max(0.0, peak) - m
        stop = min(b, peak + math.sqrt(slope * slope + CUT_OFF) - slope)
        excess, _, tilted = _integrals(start, stop, b, m, peak)
        # r - r_a in units of r_b; without a lower end, r_a = 0 and r itself remains
        above_a = (
            tilted
            if a == -math.inf
            else math.exp(m * (a - b)) * _integrals(start, stop, a, m, peak)[0]
        )
        scale = math.log(q) + log_ratio - 0.5 * peak * peak - 0.5 * math.log(2.0 * math.pi)
        to_lower = scale + math.log(-excess) - math.log(math.expm1(gap))
        largest = max(masses[k], to_lower)
        masses[k] = largest + math.log(math.exp(masses[k] - largest) + math.exp(to_lower - largest))
        masses[k + 1] = scale + math.log(above_a) - math.log(-math.expm1(-gap))
    return masses


@njit(cache=CACHED)
def merged_gaussian_masses(q, m, h, lift, knots, begin):
    """(log P-masses at the knots of a coarser view of the same pair, outcomes merged into atoms;
    the x at which it ends).

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
            break  # the remaining mass does not reach this knot, or any further one
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


@njit(cache=CACHED)
def tilted_masses(log_mass, losses, tilt):
    """(masses times e^(tilt * loss), normalised; ln of their sum)."""
    largest = np.max(log_mass + tilt * losses)
    mass = np.empty(len(log_mass))
    total = 0.0
    for k in range(len(log_mass)):
        mass[k] = math.exp(log_mass[k] + tilt * losses[k] - largest)
        total += mass[k]
    return mass / total, largest + math.log(total)


@njit(cache=CACHED)
def crossing(mass, h, first, tilt, centre, factor, weighted_error, plain_error, target, safe_up):
    """The epsilon at which delta, from tilted masses at losses first + k h, crosses `target`.

    Bound
        [C1]  target = factor delta(epsilon) + s (weighted e^(-tilt (l - centre)) + plain)    with
              delta of `delta_at`; errors are added (safe_up, s = 1) or taken (s = -1), those of the
              knot l at or below epsilon
        Returns an epsilon on or above which that is certainly at most the target (safe_up; infinity
        if there is none), or one at which it certainly is at least the target (-infinity if there
        is none), as tight as the errors allow.

    Source
        [C1]  own derivation: between knots delta is linear in e^epsilon
    """
    sign = 1.0 if safe_up else -1.0
    knots = len(mass)
    hockey = 0.0  # sum of the terms above knot k, at e = l_k
    beyond = 0.0  # sum over l_i > l_k of a_i e^(l_k - l_i)
    for k in range(knots - 1, -1, -1):
        loss = first + k * h
        if k < knots - 1:
            beyond = (beyond + mass[k + 1] * math.exp(-tilt * (loss + h - centre))) * math.exp(
                -h
            )  # [C1]
            hockey += beyond * math.expm1(h)  # [C1]
        value = factor * hockey + sign * (
            weighted_error * math.exp(-tilt * (loss - centre)) + plain_error
        )  # [C1]
        if value > target or (not safe_up and value == target):
            if k == knots - 1:
                return math.inf if safe_up else loss
            # between knots delta(e) = hockey(next) + (1 - e^(e - l_next)) (mass at and beyond
            # l_next)
            above = beyond * math.exp(h)
            error = weighted_error * math.exp(-tilt * (loss - centre)) + plain_error
            wanted = (
                (target - sign * error) / factor - (hockey - beyond * math.expm1(h))
            ) / above  # [C1]
            return loss + h + math.log1p(-min(max(wanted, 0.0), -math.expm1(-h)))  # [C1]
    return first if safe_up else -math.inf


@njit(cache=CACHED)
def delta_at(mass, h, first, tilt, centre, epsilon):
    """delta at `epsilon`, from tilted masses at losses l = first + k h.

    Bound
        [C1]  delta(epsilon) = sum_k [l_k > epsilon] m_k e^(-tilt (l_k - centre)) (1 -
              e^(epsilon - l_k))    masses m at losses l

    Source
        [C1]  Sommer, Meiser, Mohammadi 2019, Lemma 10
    """
    total = 0.0
    for k in range(len(mass) - 1, -1, -1):
        loss = first + k * h
        if loss <= epsilon:
            break
        total += mass[k] * math.exp(-tilt * (loss - centre)) * -math.expm1(epsilon - loss)  # [C1]
    return total
