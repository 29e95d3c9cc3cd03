"""The Gaussian noise of a release."""
import math

import numpy as np
from numpy.typing import NDArray

from ..backend import namespace_of, standard_normal
from ..errors import ParameterError
from ..validate import non_negative


def add_gaussian(raw: NDArray, noise_std: float, rng: np.random.Generator) -> NDArray:
    r"""raw + N(0, noise_std^2 I), added in place and returned: from here on the array is released.

    Shapes
        raw any shape, float32 or float64   noise_std a number, in the units of raw

    Forward
        [F1]  released = raw + noise_std z, z standard normal, independent in every coordinate

    Source
        [F1]  Abadi et al. 2016, Algorithm 1, "Add noise"

    Guarantees
        noise_std 0 draws nothing and changes nothing. The noise is drawn in the dtype of raw.
        Floating-point attacks (Mironov 2012) are not defended against; the privacy statement says so.

    Raises
        ParameterError   noise_std is negative, infinite or not a number
    """
    non_negative(noise_std=noise_std)
    if math.isinf(noise_std):
        raise ParameterError("expected a finite noise_std: noise needs a finite clip norm")
    if noise_std == 0:
        return raw
    noise = standard_normal(rng, raw.shape, raw.dtype, namespace_of(raw))
    noise *= noise_std
    raw += noise  # [F1]
    return raw
