"""Data sets: MNIST and CIFAR, verified by hash; synthetic digits; augmentation. Modules are loaded
on first use.
"""

from ..util.lazy import names_of

# module: its names, which __init__.pyi repeats for type checkers
__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        "arrays": "Dataset",
        "augment": "centre_crop distort draw_distortions standardise_images",
        "cifar": "load_cifar10 load_public",
        "examples": "Block Examples LabelledExamples",
        "fetch": "cache_dir",
        "mnist": "load load_mnist",
        "persons": "Persons",
        "strokes": "load_strokes",
    },
)
