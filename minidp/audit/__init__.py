"""Measure whether the code is what its equations say; tests for layers and losses of one's own."""

from ..util.lazy import names_of

# module: its names, which __init__.pyi repeats for type checkers
__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        "layer_tests": "check_layer check_loss",
        ".steptest.step": "Stated StepReport check_step",
    },
)
