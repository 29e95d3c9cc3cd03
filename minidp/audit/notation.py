"""Read an equation of a card as it is printed, and evaluate it by plain loops over its indices.

The grammar is notation.lark. `x_bi` is the array x at the indices b and i; each index runs over its
axis. Axes without an index are kept, so `x_b / |x_b|` divides a whole example, and `mean_S`
averages over the axes that S names.
"""

import itertools
import math
import operator
import re
from functools import cache, partial, reduce
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


def _extreme(better):
    """A function that reduces numbers or arrays to the largest or smallest, compared by real
    parts.
    """
    return partial(reduce, lambda a, b: np.where(better(np.real(b), np.real(a)), b, a)[()])


OPERATIONS = {
    "plus": operator.add,
    "minus": operator.sub,
    "over": operator.truediv,
    "power": operator.pow,
    "negative": operator.neg,
    "factorial": lambda a: math.factorial(int(a)),
    "size": _size,
    "truth": lambda a: np.where(a, 1.0, 0.0)[()],
    "both": operator.and_,
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
OF_NUMPY = "exp log log2 sqrt tanh sin cos floor ceil trunc rint sign"
FUNCTIONS = {
    **{name: getattr(np, name) for name in OF_NUMPY.split()},
    "ln": np.log,
    "erfc": special.erfc,
    "Phi": special.ndtr,
    "Phi^-1": special.ndtri,
    "C": math.comb,
    "finite": np.isfinite,
    "mod": operator.mod,
}
MPMATH = {"ln": "log", "Phi": "ncdf", "rint": "nint"}  # its names for them
REDUCERS = {
    "sum": sum,
    "prod": math.prod,
    "mean": lambda values: sum(values) / len(values),
    "max": _extreme(np.greater),
    "min": _extreme(np.less),
}
OVER_AXES = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@cache
def _parser():
    from lark import Lark  # in the extra `audit`

    grammar = Path(__file__).with_name("notation.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="equation", parser="lalr", propagate_positions=True)


def equation_of(text):
    """A label's text without the remark after two spaces."""
    return re.split(r"(?<![,;=])\s{2,}(?![=<])", text.strip(), maxsplit=1)[0]


@cache
def parse(text):
    """The parts of an equation, as trees with positions in `text`. Raises ValueError if it cannot
    be read.
    """
    from lark import UnexpectedInput

    readable = re.sub(r"(?<![\w)\]'])\|", "⟨", equation_of(text)).replace("|", "⟩")
    try:
        return _parser().parse(readable).children
    except UnexpectedInput as error:
        rest = readable[getattr(error, "pos_in_stream", None) or 0 :] or readable
        raise ValueError(
            f'cannot be read from "{rest.translate(BARS)}" on: products are written with a space, '
            "arguments in brackets, a remark after two spaces; see Notation in the README"
        ) from error


class Names:
    """Looks names up. given: {name: number, array or function}; ranges: {index: its numbers};
    defined: {name: (its indices, tree)}.
    """

    def __init__(self, given, ranges):
        self.given, self.ranges, self.defined = dict(given), dict(ranges), {}
        self.known, self.open = {}, set()
        self.split = cache(self.split)

    def split(self, name):
        """("x", "bi") for x_bi; ("noise_std", "") and ("m_1", "d") if noise_std and m_1 are given
        names.
        """
        head, _, tail = name.partition("_")
        digits = re.match(r"\d*", tail)[0]
        for base, indices in ((name, ""), (f"{head}_{digits}", tail[len(digits) :])):
            if base in self.given:
                return base, indices
        return head, tail.replace(",", "")

    def value(self, base, numbers, at):
        """The value of a defined name at the numbers of its indices, computed once. Other indices
        of its equation have the numbers in `at`.
        """
        place, tree = (base, *numbers.values()), self.defined[base][1]
        if base not in self.open and place not in self.known:
            try:
                self.known[place] = evaluate(tree, self, numbers)
            except NameError:
                self.open.add(base)
        return evaluate(tree, self, {**at, **numbers}) if base in self.open else self.known[place]

    def find_ranges(self, trees):
        """Add the ranges of all indices of arrays, in the trees and in the definitions that they
        use. Raises ValueError if two disagree.
        """
        stated, used, waiting = set(self.ranges), set(), [*trees]
        for name in (name for tree in waiting for name in names_in(tree)):  # `waiting` grows
            base, indices = self.split(name)
            if base in self.defined and base not in used:
                used.add(base)
                waiting.append(self.defined[base][1])
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
        """Yield every {index: number} for some indices."""
        for letter in letters:
            if letter not in self.ranges:
                raise NameError(f"nothing says what the index {letter} runs over")
        for numbers in itertools.product(*(self.ranges[letter] for letter in letters)):
            yield dict(zip(letters, numbers))


def names_in(tree):
    """Every name in a tree, with its indices."""
    tokens = tree.scan_values(lambda token: token.type in ("NAME", "CALL"))
    return [token.rstrip("(").rstrip("_") for token in tokens]


def evaluate(tree, names, at):
    """The value of a tree, with the numbers `at` for its indices."""
    special_case = SPECIAL.get(tree.data)
    if special_case:
        return special_case(names, at, *tree.children)
    return OPERATIONS[tree.data](*(evaluate(part, names, at) for part in tree.children))


def _number(names, at, digits):
    return int(digits) if digits.isdigit() else float(digits)


def _name(names, at, name):
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


def _call(names, at, name, inside):
    """A function, or a reducer like mean_S(x) or max(0, x), or an array like h_b(t - 1) at computed
    indices after those in its name; it is zero outside.
    """
    name = name.removesuffix("(")
    arguments = inside.children if inside.data == "arguments" else [inside]
    reducer = name.partition("_")[0]
    if reducer in REDUCERS and len(arguments) == 1:
        return _reduce(names, at, name, *arguments)
    values = [evaluate(part, names, at) for part in arguments]
    if reducer in REDUCERS:
        return REDUCERS[reducer](values)
    base, indices = names.split(name.removesuffix("_"))
    array = names.given.get(base)
    if base in names.defined or isinstance(array, np.ndarray):
        place = [*_place(indices, at), *(int(np.real(value)) for value in values)]
        if base in names.defined:
            return names.value(base, dict(zip(names.defined[base][0], place)), at)
        if all(0 <= i < size for i, size in zip(place, array.shape)):
            return array[tuple(place)]
        return 0 * array[(0,) * len(place)]
    function = names.given.get(name, FUNCTIONS.get(name))
    if function is None:
        raise NameError(f"{name} is no function; there are {', '.join(FUNCTIONS)}")
    if name in FUNCTIONS and hasattr(values[0], "context"):  # a number of mpmath
        function = getattr(values[0].context, MPMATH.get(name, name))
    return function(*values)


def _reduce(names, at, name, inside):
    """The value of a reducer: over its indices, over the axes that its name stands for, or over all
    remaining axes.
    """
    reducer, _, index = name.partition("_")
    axes = names.given.get(index)
    if not index or isinstance(axes, tuple):
        return OVER_AXES[reducer](evaluate(inside, names, at), axis=axes, keepdims=bool(index))
    places = names.places([index] if index in names.ranges else index)
    values = [evaluate(inside, names, {**at, **place}) for place in places]
    if reducer == "int":  # the trapezoidal rule
        low, high = names.ranges[index][:2]
        return sum(values) * (high - low)
    return REDUCERS[reducer](values)


def _reduce_range(names, at, reducer, limits, inside):
    name, first, *conditions = limits.children
    if limits.data == "between":
        low, high = (int(np.real(evaluate(limit, names, at))) for limit in (first, *conditions))
        members, conditions = range(low, high + 1), []
    else:
        members = _name(names, at, first)
    values = [
        evaluate(inside, names, {**at, name: member})
        for member in members
        if all(evaluate(condition, names, {**at, name: member}) for condition in conditions)
    ]
    return REDUCERS[reducer.removesuffix("_(")](values)


def _times(names, at, left, right):
    """A product; a false condition makes it 0, even if another factor is not finite."""
    value, first = evaluate(left, names, at), left
    while first.data == "times":
        first = first.children[0]
    if first.data == "truth" and np.ndim(value) == 0 and value == 0:
        return value
    return value * evaluate(right, names, at)


def _where(names, at, value, condition, other=None):
    """The first value if the condition is true, otherwise the second; UNSTATED if there is no
    second.
    """
    holds = evaluate(condition, names, at)
    if np.ndim(holds):
        return np.where(holds, evaluate(value, names, at), evaluate(other, names, at))
    if holds:
        return evaluate(value, names, at)
    return evaluate(other, names, at) if other else UNSTATED


def _compare(names, at, *parts):
    values = [np.real(evaluate(part, names, at)) for part in parts[::2]]
    holds = True
    for relation, left, right in zip(parts[1::2], values, values[1:]):
        holds = holds & RELATIONS[relation](left, right)
    return holds


SPECIAL = {
    "times": _times,
    "number": _number,
    "name": _name,
    "call": _call,
    "reduce": _reduce,
    "reduce_range": _reduce_range,
    "where": _where,
    "otherwise": _where,
    "compare": _compare,
}
