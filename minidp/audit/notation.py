"""Read an equation of a card as it is printed, and evaluate it by plain loops over its indices.

The grammar is notation.lark. `x_bi` is the array x at the indices b and i; an index runs over the
axis that it stands at. Axes without an index are kept, so `x_b / |x_b|` divides a whole example,
and `mean_S` averages over the axes that are given for S.
"""

import itertools
import math
import operator
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from scipy import special

CONSTANTS = {"e": math.e, "pi": math.pi}
BARS = str.maketrans("⟨⟩", "||")
UNSTATED = object()  # the value of an equation where its condition is false


def _size(value):
    """The absolute value of a number, the L2 norm of an array."""
    if np.ndim(value):
        return np.sqrt(np.sum(value * value))
    return value if np.real(value) >= 0 else -value


def _extreme(values, better):
    """The largest or smallest of numbers or arrays, by their real parts."""
    best, *others = values
    for other in others:
        best = np.where(better(np.real(other), np.real(best)), other, best)[()]
    return best


OPERATIONS = {
    "plus": lambda a, b: a + b,
    "minus": lambda a, b: a - b,
    "over": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "negative": lambda a: -a,
    "factorial": lambda a: math.factorial(int(a)),
    "size": _size,
    "truth": lambda a: np.where(a, 1.0, 0.0)[()],
    "both": lambda a, b: a & b,
    "fails": operator.not_,
    "member": lambda a, members: a in members,
    "inside": lambda a, low, high: (low <= np.real(a)) & (np.real(a) <= high),
    "outside": lambda a, low, high: (np.real(a) < low) | (high < np.real(a)),
}
RELATIONS = {
    "=": np.equal,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "<": np.less,
    ">": np.greater,
}
FUNCTIONS = {
    **{name: getattr(np, name) for name in ("exp", "log", "log2", "sqrt", "tanh", "sin", "cos")},
    **{name: getattr(np, name) for name in ("floor", "ceil", "trunc", "rint", "sign")},
    "ln": np.log,
    "erfc": special.erfc,
    "Phi": special.ndtr,
    "Phi^-1": special.ndtri,
    "C": math.comb,
    "finite": np.isfinite,
    "mod": operator.mod,
}
MPMATH = {"ln": "log", "Phi": "ncdf", "rint": "nint"}  # what it calls them
REDUCERS = {
    "sum": sum,
    "prod": math.prod,
    "mean": lambda values: sum(values) / len(values),
    "max": lambda values: _extreme(values, np.greater),
    "min": lambda values: _extreme(values, np.less),
}
OVER_AXES = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@cache
def _parser():
    from lark import Lark  # in the extra `audit`

    grammar = Path(__file__).with_name("notation.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="equation", parser="lalr", propagate_positions=True)


def equation_of(text):
    """A label's text without the remark that two spaces begin."""
    return re.split(r"(?<![,;=])\s{2,}(?![=<])", text.strip(), maxsplit=1)[0]


@cache
def parse(text):
    """The parts of an equation, trees whose positions are those of `text`. ValueError if it cannot
    be read.
    """
    from lark import UnexpectedInput

    opened, readable = [], ""
    for character in equation_of(text):
        if character == "|":
            closes = opened and opened[-1] == "|"
            opened = opened[:-1] if closes else [*opened, "|"]
            character = "⟩" if closes else "⟨"
        elif character in "([":
            opened.append(character)
        elif character in ")]":
            opened = opened[:-1]
        readable += character
    try:
        return _parser().parse(readable).children
    except UnexpectedInput as error:
        rest = readable[getattr(error, "pos_in_stream", None) or 0 :] or readable
        raise ValueError(
            f'cannot be read from "{rest.translate(BARS)}" on: products are written with a space, '
            "arguments in brackets, a remark after two spaces; see Notation in the README"
        ) from error


@dataclass
class Names:
    """Looks names up. `defined`: {name: (its indices, tree)}; `ranges`: {index: its numbers}."""

    given: dict
    ranges: dict
    defined: dict = field(default_factory=dict)

    def __post_init__(self):
        self.parted = {}
        self.known, self.open = {}, set()

    def split(self, name):
        """("x", "bi") of x_bi; ("noise_std", "") and ("m_1", "d") where these are known names."""
        if name not in self.parted:
            head, _, tail = name.partition("_")
            digits = re.match(r"\d*", tail)[0]
            candidates = [(name, ""), (f"{head}_{digits}", tail[len(digits) :]), (head, tail)]
            known = [
                pair for pair in candidates if pair[0] in self.given or pair[0] in self.defined
            ]
            base, indices = known[0] if known else candidates[-1]
            self.parted[name] = base, indices.replace(",", "")
        return self.parted[name]

    def value(self, base, numbers, at):
        """What a defined name stands for at the numbers of its indices, computed once; where its
        equation has other indices too, at those of `at`.
        """
        place, tree = (base, *numbers.values()), self.defined[base][1]
        if base not in self.open and place not in self.known:
            try:
                self.known[place] = evaluate(tree, self, numbers)
            except NameError:
                self.open.add(base)
        return evaluate(tree, self, {**at, **numbers}) if base in self.open else self.known[place]

    def find_ranges(self, trees):
        """Add the ranges of all indices that stand at an axis of an array, in the trees and in the
        definitions that these use. ValueError if two disagree.
        """
        stated, used, waiting = set(self.ranges), set(), [*trees]
        while waiting:
            waiting += self._find_ranges(waiting.pop(), stated, used)

    def _find_ranges(self, tree, stated, used):
        for name in names_in(tree):
            base, indices = self.split(name)
            if base in self.defined and base not in used:
                used.add(base)
                yield self.defined[base][1]
            array = self.given.get(base)
            if not isinstance(array, np.ndarray):
                continue
            if len(indices) > array.ndim:
                raise ValueError(f"{name} has more indices than {base} has axes")
            for index, size in zip(indices, array.shape):
                if index.isdigit() or index in stated:
                    continue
                if self.ranges.setdefault(index, range(size)) != range(size):
                    raise ValueError(f"{index} of {name} has {size} values, elsewhere others")

    def places(self, letters):
        """Every {index: number} of some indices."""
        for letter in letters:
            if letter not in self.ranges:
                raise NameError(f"nothing says what the index {letter} runs over")
        for numbers in itertools.product(*(self.ranges[letter] for letter in letters)):
            yield dict(zip(letters, numbers))


def names_in(tree):
    """Every name in a tree, with its indices."""
    tokens = tree.scan_values(lambda token: token.type in ("NAME", "CALL", "SHIFTED"))
    return [token.rstrip("(").rstrip("_") for token in tokens]


def evaluate(tree, names, at):
    """The value of a tree where the indices have the numbers `at`."""
    special_case = SPECIAL.get(tree.data)
    if special_case:
        return special_case(tree.children, names, at)
    return OPERATIONS[tree.data](*(evaluate(part, names, at) for part in tree.children))


def _number(parts, names, at):
    return int(parts[0]) if parts[0].isdigit() else float(parts[0])


def _name(parts, names, at):
    name = str(parts[0])
    if name in at:
        return at[name]
    base, indices = names.split(name)
    if base in names.defined:
        own = names.defined[base][0]
        value = names.value(base, dict(zip(own, _place(indices, at))), at)
        indices = indices[len(own) :]
    elif base in names.given:
        value = names.given[base]
    elif base in CONSTANTS:
        value = CONSTANTS[base]
    else:
        raise NameError(
            f"{name} is neither given nor defined; given: {', '.join(sorted(names.given))}"
        )
    return value[tuple(_place(indices, at))] if indices else value


def _place(indices, at):
    """The numbers of some indices."""
    for index in indices:
        if not index.isdigit() and index not in at:
            raise NameError(f"the index {index} is not on the left and not summed")
        yield int(index) if index.isdigit() else at[index]


def _shifted(parts, names, at):
    """An array at computed indices, after those in its name; zero outside."""
    base, indices = names.split(parts[0].rstrip("_("))
    computed = [int(np.real(evaluate(part, names, at))) for part in parts[1].children]
    place = [*_place(indices, at), *computed]
    if base in names.defined:
        return names.value(base, dict(zip(names.defined[base][0], place)), at)
    array = names.given[base]
    if all(0 <= i < size for i, size in zip(place, array.shape)):
        return array[tuple(place)]
    return 0 * array[(0,) * len(place)]


def _call(parts, names, at):
    """A function, or a reducer like mean_S(x) or max(0, x), or an array like h_b(t - 1)."""
    name, inside = parts[0].removesuffix("("), parts[1]
    arguments = inside.children if inside.data == "arguments" else [inside]
    reducer, _, index = name.partition("_")
    if reducer in REDUCERS and name not in names.given:
        if len(arguments) == 1:
            return _over(reducer, index, arguments[0], names, at)
        return REDUCERS[reducer]([evaluate(part, names, at) for part in arguments])
    base = names.split(name)[0]
    if base in names.defined or isinstance(names.given.get(base), np.ndarray):
        return _shifted(parts, names, at)
    values = [evaluate(part, names, at) for part in arguments]
    function = names.given.get(name, FUNCTIONS.get(name))
    if function is None:
        raise NameError(f"{name} is no function; there are {', '.join(FUNCTIONS)}")
    if name in FUNCTIONS and hasattr(values[0], "context"):  # a number of mpmath
        function = getattr(values[0].context, MPMATH.get(name, name))
    return function(*values)


def _reduce(parts, names, at):
    reducer, _, index = parts[0].partition("_")
    return _over(reducer, index, parts[1], names, at)


def _over(reducer, index, inside, names, at):
    """A reducer over its indices; over the axes that are given for its name; over all axes left."""
    axes = names.given.get(index)
    if not index or isinstance(axes, tuple):
        return OVER_AXES[reducer](evaluate(inside, names, at), axis=axes, keepdims=bool(index))
    places = names.places([index] if index in names.ranges else index)
    if reducer == "int":  # the trapezoidal rule
        low, high = names.ranges[index][:2]
        values = [evaluate(inside, names, {**at, **place}) for place in places]
        return sum(values) * (high - low)
    return REDUCERS[reducer]([evaluate(inside, names, {**at, **place}) for place in places])


def _times(parts, names, at):
    """A product; a condition that is false makes it 0, whatever the rest is."""
    left, first = evaluate(parts[0], names, at), parts[0]
    while first.data == "times":
        first = first.children[0]
    if first.data == "truth" and np.ndim(left) == 0 and left == 0:
        return left
    return left * evaluate(parts[1], names, at)


def _reduce_range(parts, names, at):
    reducer, (name, *limits), inside = parts[0].removesuffix("_("), parts[1].children, parts[2]
    if parts[1].data == "among":
        members = _name(limits[:1], names, at)
        for condition in limits[1:]:
            members = [m for m in members if evaluate(condition, names, {**at, name: m})]
    else:
        low, high = (int(np.real(evaluate(limit, names, at))) for limit in limits)
        members = range(low, high + 1)
    return REDUCERS[reducer]([evaluate(inside, names, {**at, name: m}) for m in members])


def _where(parts, names, at):
    """The first value where the condition is true, else the second; UNSTATED if there is none."""
    holds = evaluate(parts[1], names, at)
    if np.ndim(holds):
        return np.where(holds, evaluate(parts[0], names, at), evaluate(parts[2], names, at))
    if holds:
        return evaluate(parts[0], names, at)
    return evaluate(parts[2], names, at) if len(parts) > 2 else UNSTATED


def _compare(parts, names, at):
    values = [np.real(evaluate(part, names, at)) for part in parts[::2]]
    holds = True
    for relation, left, right in zip(parts[1::2], values, values[1:]):
        holds = holds & RELATIONS[relation](left, right)
    return holds


SPECIAL = {
    "times": _times,
    "number": _number,
    "name": _name,
    "shifted": _shifted,
    "call": _call,
    "reduce": _reduce,
    "reduce_range": _reduce_range,
    "where": _where,
    "compare": _compare,
}
