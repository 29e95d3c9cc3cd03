"""Data sets: MNIST and CIFAR, verified; offline digits; augmentation. Modules are loaded on first use."""
from importlib import import_module

_EXPORTS = {
    "Dataset": "dataset",
    "Examples": "examples",
    "LabelledExamples": "examples",
    "cache_dir": "fetch",
    "centre_crop": "augment",
    "distort": "augment",
    "draw_distortions": "augment",
    "load": "choose",
    "load_cifar10": "cifar",
    "load_cifar100": "cifar",
    "load_mnist": "mnist",
    "load_public": "cifar",
    "load_strokes": "strokes",
    "standardise_images": "augment",
}
__all__ = list(_EXPORTS)


def __getattr__(name):
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)


def __dir__():
    return sorted({*globals(), *__all__})
