"""Data sets: MNIST and CIFAR, verified; drawn digits; augmentation. Modules are loaded on first
use.
"""

from ..lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)  # the names of __init__.pyi
