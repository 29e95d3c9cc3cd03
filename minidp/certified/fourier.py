"""Discrete Fourier transforms of masses, with a bound on the rounding."""

import math

import numpy as np

ROUNDING = 2.0**-53  # unit roundoff of float64


def spectrum_of(mass, knots, points):
    """(discrete Fourier transform of the folded masses, a bound on the error of each value).

    The error of the transform is a multiple of the masses' 2-norm (Higham 2002, Theorem 24.2). So a
    single atom with most of the mass is transformed by its formula instead; without this, 10^7
    steps would not compose.
    """
    main = int(np.argmax(mass))
    rest = mass.copy()
    rest[main] = 0.0
    folded = np.bincount(knots % points, rest, points)
    angle = (int(knots[main]) * np.arange(points // 2 + 1) % points) * (-2 * math.pi / points)
    spectrum = np.fft.rfft(folded) + mass[main] * (np.cos(angle) + 1j * np.sin(angle))
    error = (
        8 * ROUNDING * math.log2(points) * math.sqrt(points * square_sum(folded))
        + 16 * ROUNDING * mass[main]
    )
    return spectrum, error


def square_sum(values):
    # not a BLAS product: starting its threads takes longer than the sum
    return float(np.sum(values * values))
