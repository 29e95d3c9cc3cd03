"""What was released, and what it costs: events, the ledger, and the accountants that read it.

Names load on first use, so that importing this package loads neither Numba nor SciPy.
"""
from importlib import import_module

_WHERE = {
    "events": ("NeighbouringRelation", "Event", "Gaussian", "JointGaussian", "Laplace", "PoissonSampled",
               "FixedSizeSampled", "Composed", "Repeated", "NonPrivate", "Unknown"),
    "ledger": ("Ledger",),
    "accountant": ("Accountant", "Bound"),
    "moments": ("MomentsAccountant",),
    "loss_distribution": ("LossDistributionAccountant",),
    "budget": ("Odometer", "Filter", "max_steps"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = list(_MODULE_OF)


def __getattr__(name):
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__():
    return sorted(__all__)
