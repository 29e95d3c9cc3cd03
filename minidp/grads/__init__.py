"""Per-example gradients: their forms, and sums over many parameters at once."""

from .forms import STRATEGIES, Arrays, Explicit, Key, Outer, OuterSum, PerExampleGrad

__all__ = ["STRATEGIES", "Arrays", "Explicit", "Key", "Outer", "OuterSum", "PerExampleGrad"]
