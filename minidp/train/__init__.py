"""Training: optimizers over released gradients, the trainer, metrics."""

from ..util.lazy import names_of

# module: its names, which __init__.pyi repeats for type checkers
__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        "averaging": "Averaged",
        "optimizer": "OPTIMIZERS SGD AdaGrad Adam AdamW Momentum Nesterov Optimizer",
        "progress": "Progress",
        "trainer": "TrainRecord Trainer",
        ".run.metrics": "Metrics evaluate",
    },
)
