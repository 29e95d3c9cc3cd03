"""Both sides of a printed equation, and its value."""

from typing import NamedTuple

import numpy as np

from .notation import UNSTATED, Names, evaluate, names_in, parse


class Case(NamedTuple):
    """Values for the names of an equation.

    given: {name: number, array or function}; after: values of names on the left of `<-` afterwards;
    ranges: {index: its numbers}, for indices that are at no array's axis; through: the label whose
    equation is compared, if the other equations of its card only define names.
    """

    given: dict
    after: dict = {}
    ranges: dict = {}
    through: str = ""


def _left(part, names):
    """(base, indices) of the left side of a part; ("", indices) if it is more than a name."""
    left = part.children[0]
    if left.data == "name":
        base, indices = names.split(str(left.children[0]))
        return base, [index for index in indices if not index.isdigit()]
    used = {index for name in names_in(left) for index in names.split(name)[1]}
    free = used | {*names_in(left)}
    return "", [index for index in names.ranges if index in free]


def _prepared(text, case, context):
    """(names, parts) for the evaluation of a text with the definitions of other texts."""
    names = Names(case.given, case.ranges)
    parts = parse(text)
    for part in [part for other in context for part in parse(other)] + list(parts):
        base, indices = _left(part, names)
        if base and base not in case.given and base not in case.after:
            names.defined[base] = indices, part.children[2]
    names.find_ranges(parts)
    return names, parts


def sides(text, case, context=()):
    """Yield (relation, left, right) for each part whose left side the code computes: arrays of the
    values at all places for which the equation holds.

    context: texts whose parts define names too.
    """
    names, parts = _prepared(text, case, context)
    for part in parts:
        left, relation, right = part.children
        base, indices = _left(part, names)
        if base in names.defined:
            continue
        places = list(names.places(indices))
        stated = [evaluate(right, names, at) for at in places]
        if relation == "<-":
            names.given[base] = case.after[base]
            names.known.clear()
        pairs = [
            (evaluate(left, names, at), value)
            for at, value in zip(places, stated)
            if value is not UNSTATED
        ]
        if not pairs:
            continue
        shapes = [np.shape(side) for side in pairs[0]]
        if relation == "=" and shapes[0] != shapes[1]:
            raise ValueError(
                f"the left side has the shape {shapes[0]} at each place of its indices, the right "
                f"{shapes[1]}: an axis has an index on one side only; w of shape (1,) is w_0"
            )
        yield str(relation), *(np.array(side) for side in zip(*pairs))


def value(text, case, context=()):
    """(name, array) of the left side of a text's first part."""
    names, parts = _prepared(text, case, context)
    base, indices = _left(parts[0], names)
    values = np.array([evaluate(parts[0].children[2], names, at) for at in names.places(indices)])
    shape = [len(names.ranges[index]) for index in indices]
    return base, values.reshape((*shape, *values.shape[1:]))
