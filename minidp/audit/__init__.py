"""Measure whether the code does what its equations say; tests for your own layers and losses."""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
