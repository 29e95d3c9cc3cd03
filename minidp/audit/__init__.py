"""Measure whether the code is what its equations say; tests for layers and losses of one's own."""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
