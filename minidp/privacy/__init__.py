"""What was released, and what it costs: events, the ledger, and the accountants that read it.

Names load on first use, so that importing this package loads neither Numba nor SciPy.
"""
from importlib import import_module

_WHERE = {
    "events": ("NeighbouringRelation", "Event", "Gaussian", "JointGaussian", "Laplace", "PureDP", "PoissonSampled",
               "FixedSizeSampled", "Composed", "Repeated", "RandomlyStopped", "NonPrivate", "Unknown"),
    "ledger": ("Ledger",),
    "accountant": ("Accountant", "Bound"),
    "moments": ("MomentsAccountant",),
    "renyi": ("RenyiAccountant",),
    "pld.accountant": ("LossDistributionAccountant",),
    "gaussian": ("GaussianAccountant",),
    "composition": ("AdvancedAccountant", "BasicAccountant", "PaperStrongComposition", "PerTensorAccountant2016"),
    "group_privacy": ("group_epsilon",),
    "budget": ("Odometer", "Filter", "max_steps"),
    "calibrate": ("noise_multiplier_for", "sampling_probability_for"),
    "search_cost": ("theorem_d1", "liu_talwar", "poisson_stopped_epsilon"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = list(_MODULE_OF)


def __getattr__(name):
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__():
    return sorted(__all__)
