"""Layers, losses and networks, each with its gradients written by hand."""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
