"""Everything that touches the private data: sampling, clipping, noise and private projections; and
the plan that joins them.
"""

from ..util.words import hint
from .clip import ClipGroup, clip_weights, flat_group, per_layer_groups
from .columns import ColumnLook
from .mean import mean_sanitizer, noisy_mean, shrunk
from .noise import add_gaussian
from .pca import PrivatePCA, random_projection
from .plan import Plan
from .samplers import PoissonSampler, ShuffleSampler
from .sanitizer import Sanitizer
from .schedule import LinearDecay, Stages

__all__ = [
    "ClipGroup",
    "ColumnLook",
    "LinearDecay",
    "Plan",
    "PoissonSampler",
    "PrivatePCA",
    "Sanitizer",
    "ShuffleSampler",
    "Stages",
    "add_gaussian",
    "clip_weights",
    "flat_group",
    "mean_sanitizer",
    "noisy_mean",
    "per_layer_groups",
    "random_projection",
    "shrunk",
]


def __getattr__(name):
    raise AttributeError(f"minidp.mechanism has no {name}; {hint(name, __all__)}")
