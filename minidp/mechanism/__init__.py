"""What is done to the data: sampling, clipping, noise, private projections; and the plan that joins
them.
"""

from .centring import mean_sanitizer, noisy_mean, shrunk
from .clip import ClipGroup, clip_weights, flat_group, per_layer_groups
from .noise import add_gaussian
from .pca import PrivatePCA, random_projection
from .plan import Plan
from .sampling import BallsInBinsSampler, FixedSizeSampler, PoissonSampler, ShuffleSampler
from .sanitizer import Sanitizer
from .scaling import PrivateScaling
from .schedule import LinearDecay, Stages

__all__ = [
    "BallsInBinsSampler",
    "ClipGroup",
    "FixedSizeSampler",
    "LinearDecay",
    "Plan",
    "PoissonSampler",
    "PrivatePCA",
    "PrivateScaling",
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
