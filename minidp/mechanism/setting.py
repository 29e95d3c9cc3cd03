"""A number, or a function of the step (0 is the first), such as those of `mechanism.schedule`."""

from collections.abc import Callable

Setting = float | Callable[[int], float]


def value_at(setting: Setting, step: int) -> float:
    """The value of a setting at a step; a plain number is constant."""
    return setting(step) if callable(setting) else setting
