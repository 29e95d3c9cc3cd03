"""minidp: neural networks trained with differential privacy, in plain NumPy and CuPy, every gradient by hand.

    from minidp import nn, mechanism, privacy, train

Subpackages load on first use; importing minidp itself loads no library, compiles nothing and changes nothing in
the process. `minidp.host.tune()` makes a process fast; command lines call it before NumPy loads.
"""
from importlib import import_module

__version__ = "0.1.0"
__all__ = ["audit", "backend", "data", "errors", "grads", "host", "mechanism", "nn", "privacy", "streams", "train"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def __dir__():
    return sorted({*globals(), *__all__})
