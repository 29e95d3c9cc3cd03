"""Break every labelled line on purpose, one change at a time: some check has to notice.

The lines of code that bear a label are known, so the mutants are made from their syntax:

    sign    the right side with the other sign
    scale   the right side times 1 + 1e-3
    drop    a sum or difference without one of its terms
    swap    the operands of -, / and @ the other way round

The right side of a line that builds an object, a dictionary or a tuple is each of its parts; of a
call that writes into `out`, each argument. A mutant is killed if a check fails, raises or does not
come to an end. EQUIVALENT lists those that nobody could tell from the original, and those that no
check of the audit reaches, each with its reason.
"""

import ast
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from minidp.audit.card import PACKAGE, statement_at
from minidp.audit.report import cards

from .changes import Change, judged, noticed

PARTS = {
    ast.Dict: ["values"],
    ast.Tuple: ["elts"],
    ast.List: ["elts"],
    ast.GeneratorExp: ["elt"],
    ast.ListComp: ["elt"],
    ast.IfExp: ["body", "orelse"],
    ast.Compare: ["left"],
    ast.Yield: ["value"],
    ast.Starred: ["value"],
}
PROCESSES = 2

_GUARD = (
    "a guard of the last bits: without it the bound is below the truth by less than any check "
    "resolves"
)
_INFERRED = "reshape takes a negative number of examples as one to infer, which is the same number"
_TWICE = "both factors change their sign, and so their product does not"
_SHAPE = "of x only the shape is asked: its patches are cut from what forward kept"
_DEVICE = "runs on a device alone, where tests/train/test_flat.py compares it with the host's bits"
_ANY_SIGN = "a direction's sign is arbitrary, as the card says"

EQUIVALENT = {  # name of a mutant: the reason why no measurement can tell it from the original
    "nn.embedding.Embedding [P1] scale 1": "ids are rounded",
    "nn.conv.Conv2D [P1] sign 2": _SHAPE,
    "nn.conv.Conv2D [P1] scale 2": _SHAPE,
    "nn.norm.GroupNorm [F0] sign 1": _INFERRED,
    "nn.norm.LayerNorm [F0] sign 1": _INFERRED,
    "grads.forms.Outer [V1] sign 1": _TWICE,
    "grads.forms.OuterSum [V1] sign 1": _TWICE,
    "mechanism.pca.PrivatePCA [F4] sign 1": _ANY_SIGN,
    **{
        f"mechanism.sanitizer.Sanitizer [F2] {operator} {number}": _DEVICE
        for operator in ("sign", "scale")
        for number in (2, 3, 4, 5)
    },
    "mechanism.rounding.products [F2] drop 3": _GUARD,
    "privacy.gaussian.gaussian_delta [C1] swap 2": "a product of two vectors has no order",
    "privacy.moments.MomentsAccountant [M2] drop 1": _GUARD,
    "privacy.moments.MomentsAccountant [M3] drop 1": _GUARD,
    "privacy.composition.BasicAccountant [C1] drop 1": _GUARD,
    "privacy.composition.PairAccountant [M1] drop 1": _GUARD,
    "privacy.renyi.RenyiAccountant [M2] drop 1": _GUARD,
    "privacy.group_privacy.group_epsilon [C1] drop 1": _GUARD,
}


def generate():
    """A Change for every mutant of every labelled line of the package, in the order of the
    audit.
    """
    found = []
    for card, lines in cards():
        tree = ast.parse("\n".join(lines))
        for label, spans in card.code_lines.items():
            counts = Counter()
            for first, last in spans:
                for operator, node, new in _changes(statement_at(tree, last), first, last):
                    counts[operator] += 1
                    what = card.name, label, operator, counts[operator], ast.unparse(node), new
                    source = _replaced(lines, node, new)
                    found.append(Change(*what, card.module, first, source))
    return found


def _changes(statement, first, last):
    """(operator, node, text in its place) of what a statement has on the lines from `first` to
    `last`.
    """
    values = (getattr(statement, name, None) for name in ("value", "iter", "test"))
    value = next(filter(None, values), None)
    if value is None:
        return

    def inside(node):
        return node.lineno <= last and first <= node.end_lineno

    for node in _right_sides(value, statement):
        text = ast.unparse(node)
        if inside(node) and text not in ("0", "0.0", "None"):
            yield "sign", node, f"(-({text}))"
            if text != "math.inf":
                yield "scale", node, f"(({text}) * (1 + 1e-3))"
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Sub)):
        yield "drop", statement, "pass"
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and inside(node):
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            sign = {ast.Add: "+", ast.Sub: "-", ast.Div: "/", ast.MatMult: "@"}.get(type(node.op))
            if sign in ("+", "-"):
                yield "drop", node, f"({left})"
                yield "drop", node, f"({'-' if sign == '-' else ''}({right}))"
            if sign in ("-", "/", "@"):
                yield "swap", node, f"(({right}) {sign} ({left}))"


def _right_sides(node, parent=None):
    """The expressions whose sign and size a line decides."""
    parts = [part for name in PARTS.get(type(node), ()) if (part := getattr(node, name))]
    parts = parts[0] if parts and isinstance(parts[0], list) else parts
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        others = [keyword.value for keyword in node.keywords if keyword.arg != "out"]
        into_out = len(others) < len(node.keywords)
        if name[:1].isupper() or isinstance(parent, ast.Expr) or into_out:
            parts = [*node.args, *others]
    for part in parts:
        yield from _right_sides(part)
    if not parts:
        yield node


def _replaced(lines, node, new):
    """The module's text with `new` in place of a node, on as many lines as before."""
    head = lines[node.lineno - 1].encode()[: node.col_offset].decode()
    tail = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
    changed = [head + new + tail, *[""] * (node.end_lineno - node.lineno)]
    return "\n".join([*lines[: node.lineno - 1], *changed, *lines[node.end_lineno :], ""])


def judge(mutants):
    """What is wrong with the tests of these mutants, a sentence each."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    unbroken = {
        mutant.card: replace(mutant, source=(PACKAGE.parent / mutant.path).read_text("utf-8"))
        for mutant in mutants
    }
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = pool.map(partial(noticed, others=False), unbroken.values())
        faults = [
            f"fails before anything is broken: {card} {problem}"
            for card, problem in zip(unbroken, found)
            if problem
        ]
        return faults + judged(mutants, pool.map(noticed, mutants), EQUIVALENT)
