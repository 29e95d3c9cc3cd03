"""The modules in which version 0.1.0 had the classes of a pickled estimator; pickle looks for them
there.
"""

import sys
from importlib import import_module

from ..layers import average_pool, standardise
from ..nn import pool, reshape

MOVED = {  # module of 0.1.0: where it is
    "nn.dropout": "layers.dropout",
    "nn.embedding": "layers.embedding",
    "nn.norm": "layers.norm",
    "nn.pieces": "fitting.pieces",
    "nn.recurrent": "layers.recurrent",
}


def known_again() -> None:
    """Make the old names of modules and classes find the classes."""
    package = __package__.partition(".")[0]
    for old, new in MOVED.items():
        sys.modules.setdefault(f"{package}.{old}", import_module(f"{package}.{new}"))
    for module, cls in ((reshape, standardise.Standardise), (pool, average_pool.AvgPool2D)):
        setattr(module, cls.__name__, cls)
