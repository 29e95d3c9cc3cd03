"""Check of the noisy mean that is subtracted from rows."""
import numpy as np

from ...mechanism.centring import shrunk
from . import measures, worst


@measures("mechanism.centring.shrunk", "F1", method="loop over numbers, where noise explains none, a part and all", tolerance=1e-14)
def shrinking_equals_a_loop(bench):
    yield worst(shrunk(np.array([3.0, 4.0]), 1e3), [3.0, 4.0])
    for noise_std in (0.0, 0.1, 0.7, 50.0):
        mean = bench.rng.standard_normal(9)
        share = 1 - 7 * noise_std * noise_std / sum(float(m) * float(m) for m in mean)
        yield worst(shrunk(mean, noise_std), [float(m) * share if share > 0 else 0.0 for m in mean])
