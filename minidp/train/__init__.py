"""Training: optimizers over released gradients, the trainer, metrics."""

from ..util.lazy import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
