"""Standard normal numbers in float32, twice as fast as the library's, on two cores if there are two."""
import math

import numpy as np

from . import threads

BLOCK = 2**16  # numbers per block: in a core's cache, and long enough to hand over to another thread


def float32_normals(rng, size):
    r"""Independent standard normal numbers from pairs of uniform ones (Box and Muller).

    Shapes
        returns (size,) float32; rng a NumPy generator, of which every block takes 2 h doubles for 2 h numbers

    Forward
        [F1]  r_j = sqrt(-2 ln(1 - u_j)), t_j = 2 pi v_j, with u_j, v_j uniform in [0, 1), of 53 bits
        [F2]  z_j = r_j cos t_j, z_{h+j} = r_j sin t_j, j < h, in blocks of 2 h = 65,536 numbers

    Source
        [F1]  Box and Muller 1958, Annals of Mathematical Statistics 29(2)
        [F2]  Box and Muller 1958, Annals of Mathematical Statistics 29(2)

    Guarantees
        The values follow from the generator alone, not from the number or the timing of threads. All are
        finite: |z| <= sqrt(106 ln 2) = 8.6. u is a double until its logarithm is taken, so that small
        and large r are resolved alike; the time does not depend on the values.
    """
    out = np.empty(size, dtype=np.float32)
    blocks = [out[start : start + BLOCK] for start in range(0, size, BLOCK)]
    threads.pipeline(lambda block: (block, *rng.random((2, (block.size + 1) // 2))), _transform, blocks)
    return out


def _transform(drawn):
    z, u, v = drawn
    half = u.size
    np.subtract(1, u, out=u)
    np.log(u, out=u)
    r, t = np.empty((2, half), dtype=np.float32)
    r[...], t[...] = u, v  # rounded before they are multiplied: NumPy converts fast only where it does nothing else
    r *= -2  # [F1]
    np.sqrt(r, out=r)  # [F1]
    t *= 2 * math.pi  # [F1]
    np.multiply(r, np.cos(t, out=z[:half]), out=z[:half])  # [F2]
    rest = z.size - half
    np.multiply(r[:rest], np.sin(t[:rest], out=z[half:]), out=z[half:])  # [F2]
