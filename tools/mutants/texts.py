"""Break the printed equations on purpose: the comparison with the code has to notice.

sign      a + that becomes a -, or the other way round; a right side with the other sign
scale     a right side times 1 + 1e-3; times 1 - 1e-3 where it is an upper bound
drop      a sum or difference without one of its terms
exchange  two neighbouring indices of a name exchanged
index     a reducer over another index of the equation
"""

import re
from collections import Counter
from itertools import pairwise

import numpy as np

from minidp.audit.card import labels_of
from minidp.audit.checks import STATED, bench_for, load, printed, texts_of
from minidp.audit.notation import equation_of, parse

from .changes import Change, judged

SHIFT = "any shift gives the same quotient; the largest only keeps exp from overflowing"
LESS = "true, but it speaks of fewer targets"
ANY = "any power of two gives the same logarithm; this one keeps m near 1"
SYMMETRIC = "a matrix of products of positions is symmetric"
EQUIVALENT = {  # name of a broken text: the reason why it says the same
    "nn.activation.Softmax [F1] sign 4": SHIFT,
    "nn.activation.Softmax [F1] scale 2": SHIFT,
    "nn.activation.Softmax [F1] index 2": SHIFT,
    "nn.loss.SoftmaxCrossEntropy [F2] sign 1": LESS,
    "privacy.moments.MomentsAccountant [M1] sign 7": "mirrored, the moments are the same",
    "nn.loss.SoftmaxCrossEntropy [F2] drop 1": LESS,
    "nn.loss.SoftmaxCrossEntropy [B2] sign 1": LESS,
    "nn.loss.SoftmaxCrossEntropy [B2] drop 1": LESS,
    "host.chacha.normals [M1] scale 4": ANY,
    "host.chacha.normals [M1] drop 11": ANY,
    "mechanism.pca.PrivatePCA [F3] exchange 5": "true, but it speaks of one half only",
    "grads.forms.OuterSum [N1] exchange 2": SYMMETRIC,
    "grads.forms.OuterSum [N1] exchange 4": SYMMETRIC,
    "grads.forms.OuterSum [N3] sign 3": "it is squared",
    "nn.embedding.RowsGrad [N3] sign 3": "it is squared",
}


def generate():
    """A Change for every way to break every label that is evaluated."""
    load()
    found = []
    for card, label in STATED:
        text, counts = equation_of(labels_of(card)[label]), Counter()
        for operator, start, end, new in _changes(text):
            counts[operator] += 1
            changed = text[:start] + new + text[end:]
            found.append(Change(card, label, operator, counts[operator], text, changed))
    return found


def _changes(text):
    """(operator, start, end, what stands there instead)."""
    parts = parse(text)
    letters = {i for part in parts for name in _tokens(part, "NAME") for i in _indices(name)}
    for part in parts:
        _, relation, right = part.children
        scale = "0.999" if relation == "<=" else "1.001"
        for value in _values(right):
            start, end = _span(value, text)
            if text[start:end] == "0":
                continue
            yield "sign", start, end, f"(-({text[start:end]}))"
            yield "scale", start, end, f"({scale} ({text[start:end]}))"
        for tree in right.iter_subtrees():
            if tree.data in ("plus", "minus"):
                (start, middle), (second, end) = (_span(each, text) for each in tree.children)
                other = "-" if tree.data == "plus" else "+"
                sign = re.sub("[+-]", other, text[middle:second], count=1)
                yield "sign", middle, second, sign
                yield "drop", start, end, text[start:middle]
                yield "drop", start, end, text[second:end]
        for token in _tokens(right, "NAME"):
            indices = _indices(token)
            first = token.end_pos - len(indices)
            for at, (index, following) in enumerate(pairwise(indices), first):
                if index != following:
                    yield "exchange", at, at + 2, following + index
        for token in _tokens(right, "REDUCER"):
            indices = _indices(token)
            first = token.end_pos - len(indices)
            for other in sorted(letters.difference(indices))[:1]:
                yield from (("index", at, at + 1, other) for at in range(first, token.end_pos))


def _values(tree):
    """What a part gives: both values of a `where`."""
    if tree.data in ("where", "otherwise"):
        return [tree.children[0], *(each for part in tree.children[2:] for each in _values(part))]
    return [tree]


def _span(tree, text):
    """Where a tree stands, with the brackets that the parse has left out."""
    start, end = tree.meta.start_pos, tree.meta.end_pos
    while text[start:end].count("(") < text[start:end].count(")"):
        start = text.rindex("(", 0, start)
    while text[start:end].count("(") > text[start:end].count(")"):
        end = text.index(")", end) + 1
    return start, end


def _tokens(tree, kind):
    return list(tree.scan_values(lambda token: token.type == kind))


def _indices(name):
    """The letters behind a name's underscore, if they are indices and no word."""
    letters = name.partition("_")[2]
    return letters if re.fullmatch("[a-z]{1,4}", letters) else ""


def killed(broken, tolerance=1e-9):
    """What notices a broken text, in words; None if nothing does."""
    texts = {**texts_of(broken.card), broken.label: broken.new}
    try:
        with np.errstate(all="ignore"):
            errors = [
                printed(texts, broken.label, case)
                for function in STATED[broken.card, broken.label]
                for case in function(bench_for(broken.card))
            ]
    except Exception as error:  # it cannot be read, or has no value
        return f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
    return None if max(errors) <= tolerance else f"a difference of {max(errors):.1e} from the code"


def judge(broken):
    """What is wrong with these broken texts, a sentence each."""
    return judged(broken, map(killed, broken), EQUIVALENT)
