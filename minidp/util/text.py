"""Bounds as text: an upper bound is rounded up and a lower bound down, so that no printed bound
claims too much.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from ..errors import ParameterError

EXACT = 1200  # enough digits for any float64 with any number of decimals that is printed


def upper_text(value: float | None, digits: int = 4, *, decimals: int | None = None) -> str:
    """The text of an upper bound: `digits` significant digits, or `decimals` after the point,
    rounded up.

    None is "unknown", and infinity is "infinite". Read back as a float, the text is never below
    `value`.

    >>> upper_text(0.50247925), upper_text(0.50247925, decimals=2), upper_text(None)
    ('0.5025', '0.51', 'unknown')
    """
    return _text(value, ROUND_CEILING, digits, decimals)


def lower_text(value: float | None, digits: int = 4, *, decimals: int | None = None) -> str:
    """The text of a lower bound, as `upper_text` but rounded down.

    >>> lower_text(0.50247925), lower_text(12345.6), lower_text(1e-9)
    ('0.5024', '1.234e+04', '1e-09')
    """
    return _text(value, ROUND_FLOOR, digits, decimals)


def estimate_text(value: Any, digits: int = 4) -> str:
    """The text of an estimate, which claims nothing: rounded to nearest."""
    return "unknown" if value is None else f"{float(value):.{digits}g}".replace("inf", "infinite")


def listed(names: Any) -> str:
    """The first twenty names, separated by commas; if there are more, their number too.

    >>> listed(["no", "yes"]), listed([])
    ('no, yes', 'none')
    """
    if len(names) > 20:
        return f"{', '.join(map(str, names[:20]))}, ... ({len(names)})"
    return ", ".join(map(str, names)) or "none"


def _text(value, rounding, digits, decimals):
    if value is None:
        return "unknown"
    exact = Decimal(repr(float(value)))  # the shortest decimal that reads back as this float
    if exact.is_nan():
        raise ParameterError("expected a bound to be a number, got nan")
    if exact.is_infinite():
        return "infinite" if exact > 0 else "-infinite"
    if decimals is not None:
        rounded = exact.quantize(Decimal(1).scaleb(-decimals), rounding, Context(prec=EXACT))
        return f"{rounded if rounded else abs(rounded):f}"
    context = Context(prec=digits, rounding=rounding)
    rounded = context.normalize(context.create_decimal(exact))
    exponent = rounded.adjusted()
    if not rounded:
        return "0"
    if -4 <= exponent < digits:  # as format's "g"
        return f"{rounded:f}"
    return f"{context.scaleb(rounded, -exponent):f}e{exponent:+03d}"
