"""An equation of a card as a paper would print it, in MathML for the audit's page.

It comes from the parse that is evaluated, so that what is read is what is measured.
"""

import re
from html import escape

from .notation import REDUCERS, equation_of, parse

GREEK = "alpha beta gamma delta epsilon eta theta lambda mu nu pi sigma Phi"
LETTERS = dict(zip(GREEK.split(), "αβγδεηθλμνπσΦ")) | {"inf": "∞"}
SIGNS = {"<-": "←", "<=": "≤", ">=": "≥", "~": "≈", "sum": "∑", "prod": "∏", "int": "∫"}
FENCES = {"floor": "⌊⌋", "ceil": "⌈⌉", "size": "||", "truth": "[]"}
# how closely a kind of tree binds; others bind more closely
BINDS = {"where": 0, "otherwise": 0, "plus": 1, "minus": 1, "negative": 1}
BINDS |= {"times": 2, "over": 2, "reduce": 2, "reduce_range": 2, "power": 3, "call": 3}
INFIX = {  # a digit is a part, in brackets if it does not bind as closely
    "plus": "1 + 1",
    "minus": "1 − 2",
    "negative": "− 2",
    "factorial": "3 !",
    "where": "0 where 0",
    "otherwise": "0 where 0 , else 0",
    "both": "0 and 0",
    "fails": "not 0",
    "member": "0 ∈ 0",
    "inside": "0 ∈ 0 … 0",
    "outside": "0 ∉ 0 … 0",
    "among": "0 ∈ 0",
    "such": "0 ∈ 0 , 0",
}
SPACE = '<mspace width="0.17em"/>'


def mathml(text):
    """The equation of a label's text: a <math> element for each part, between which lines may
    break, followed by its remark as text.
    """
    sides = [[_row(_show(side)) for side in part.children] for part in parse(text)]
    math = [f'<math displaystyle="true">{_row(*part)}</math>' for part in sides]
    remark = text.strip()[len(equation_of(text)) :].strip()
    return f"{', '.join(math)} {escape(remark)}".rstrip()


def _tag(tag, *parts):
    return f"<{tag}>{''.join(parts)}</{tag}>"


def _row(*parts):
    return _tag("mrow", *parts)


def _word(text):
    letters = LETTERS.get(text, text)
    variant = ' mathvariant="normal"' if len(letters) > 1 else ""
    return f"<mi{variant}>{letters}</mi>"


def _sign(text):
    """A sign, or a word between spaces."""
    sign = SIGNS.get(text, text)
    return _tag("mtext", "&#160;", sign, "&#160;") if sign.isalpha() else _tag("mo", escape(sign))


def _fenced(signs, inside):
    left, right = signs
    return _row(f'<mo form="prefix">{left}</mo>', inside, f'<mo form="postfix">{right}</mo>')


def _show(tree, least=0):
    """A tree, in brackets if it does not bind as closely as `least`."""
    if isinstance(tree, str):
        return _sign(tree) if tree.type == "RELATION" else _name(tree)
    kind, parts = tree.data, iter(tree.children)
    if kind in FENCES:
        shown = _fenced(FENCES[kind], *map(_show, parts))
    elif kind in INFIX:
        signs = INFIX[kind].split()
        shown = _row(
            *(_show(next(parts), int(sign)) if sign.isdigit() else _sign(sign) for sign in signs)
        )
    else:
        shown = SHOWN[kind](*parts)
    return shown if BINDS.get(kind, 4) >= least else _fenced("()", shown)


def _number(digits):
    digits, _, exponent = digits.partition("e")
    shown = _tag("mn", digits)
    return (
        _row(shown, _sign("·"), _tag("msup", "<mn>10</mn>", _tag("mn", exponent)))
        if exponent
        else shown
    )


def _name(name):
    """Letters with digits, primes and indices; the indices of a sum stand below its sign."""
    letters, digits, primes, tail = re.fullmatch(r"([A-Za-z]+)(\d*)('*)_?(.*)", name).groups()
    base = _sign(letters) if letters in SIGNS else _word(letters)
    if digits:
        base = _tag("msub", base, _number(digits))
    if primes:
        base = _tag("msup", base, _sign("′"))
    if not tail:
        return base
    whole = tail in LETTERS or re.fullmatch("std|[A-Z]{2,}|.{5,}", tail)
    words = [tail] if whole else re.findall(r"\d+|[A-Za-z,]", tail)
    below = letters in REDUCERS and letters != "mean"
    return _tag("munder" if below else "msub", base, _row(*map(_word, words)))


def _arguments(first, *others):
    return _row(_show(first), *(_sign(",") + _show(other) for other in others))


def _compare(*parts):
    return _row(*map(_show, parts))


def _times(left, right):
    between = _sign("·") if right.data == "number" else SPACE
    return _row(_show(left, 2), between, _show(right, 2))


def _over(above, below):
    return _tag("mfrac", _row(_show(above)), _row(_show(below)))


def _power(base, exponent):
    return _tag("msup", _row(_show(base, 4)), _row(_show(exponent)))


def _call(name, inside):
    name = name.removesuffix("(")
    function = name.removesuffix("^-1")
    base, _, indices = name.partition("_")
    if name == "sqrt":
        return _tag("msqrt", _show(inside))
    if name in FENCES:
        return _fenced(FENCES[name], _show(inside))
    if base not in REDUCERS and re.fullmatch("[a-z]+_[a-z]{1,3}|[A-Za-z]+_", name):  # an array
        indices = [*map(_word, indices), _sign(",")] if indices else []
        return _tag("msub", _word(base), _row(*indices, _show(inside)))
    head = _name(function)
    if function != name:
        head = _tag("msup", head, _row(_sign("−"), _number("1")))
    if inside.data == "arguments":
        return _row(head, _fenced("()", _show(inside)))
    return _row(head, SPACE, _show(inside, 2))


def _reduce(name, inside):
    return _row(_name(name), SPACE, _show(inside, 2))


def _reduce_range(name, limits, inside):
    name = _name(name.removesuffix("_("))
    if limits.data == "between":
        index, low, high = map(_show, limits.children)
        head = _tag("munderover", name, _row(index, _sign("="), low), high)
    else:
        head = _tag("munder", name, _show(limits))
    return _row(head, SPACE, _show(inside, 2))


SHOWN = {
    "number": _number,
    "name": _name,
    "arguments": _arguments,
    "compare": _compare,
    "times": _times,
    "over": _over,
    "power": _power,
    "call": _call,
    "reduce": _reduce,
    "reduce_range": _reduce_range,
}
