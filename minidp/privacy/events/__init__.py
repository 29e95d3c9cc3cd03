"""Events: what was released, kept apart from what it costs.

An event says exactly what was done and nothing about epsilon; accountants read events. The meaning
of an event never changes once it is written down, and an accountant refuses what it does not know.
Each family of events has a file with its rules. If an event has no rule for something, `base.Event`
refuses it.
"""

from .base import Event, NeighbouringRelation, NonPrivate, Unknown
from .composed import Composed, Repeated
from .noise import Gaussian, JointGaussian, Laplace
from .pure import ApproximateDP, PureDP
from .sampled import PoissonSampled

__all__ = [
    "ApproximateDP",
    "Composed",
    "Event",
    "Gaussian",
    "JointGaussian",
    "Laplace",
    "NeighbouringRelation",
    "NonPrivate",
    "PoissonSampled",
    "PureDP",
    "Repeated",
    "Unknown",
]
