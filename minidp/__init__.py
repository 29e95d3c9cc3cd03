"""minidp: neural networks trained with differential privacy, in plain NumPy and CuPy, every gradient by hand.

    from minidp import nn, mechanism, privacy, train

Subpackages load on first use; importing minidp itself loads no library and compiles nothing. Imported before
NumPy it picks the kernels of matrix products (`blas`).
"""
from importlib import import_module

from .blas import choose_kernels

__version__ = "0.1.0"
__all__ = ["audit", "backend", "data", "errors", "grads", "mechanism", "nn", "privacy", "streams", "train"]


choose_kernels()


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__():
    return sorted({*globals(), *__all__})
