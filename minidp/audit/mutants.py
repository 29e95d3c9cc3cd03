"""Break every labelled line on purpose, one change at a time: some check has to notice.

The lines of code that bear a label are known, so the mutants are made from their syntax:

    sign    the right side with the other sign
    scale   the right side times 1 + 1e-3
    drop    a sum or difference without one of its terms
    swap    the operands of -, / and @ the other way round

The right side of a line that builds an object, a dictionary or a tuple is each of its parts; of a
call that writes into `out`, each argument. A mutant is killed if a check fails, raises or does not
come to an end. EQUIVALENT lists those that nobody could tell from the original, each with its
reason.
"""

import ast
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ..util.waiting import say
from . import texts
from .broken import noticed
from .card import PACKAGE, own_lines
from .report import cards, named, need_extra

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
SECONDS_EACH = 0.7  # of one core for one mutant, on average, measured

_GUARD = (
    "a guard of the last bits: without it the bound is below the truth by less than any check "
    "resolves"
)
_INFERRED = "reshape takes a negative number of examples as one to infer, which is the same number"
_TWICE = "both factors change their sign, and so their product does not"
_ANY_SIGN = "a direction's sign is arbitrary, as the card says"

EQUIVALENT = {  # name of a mutant: the reason why no measurement can tell it from the original
    "nn.norm.GroupNorm [F0] sign 1": _INFERRED,
    "nn.norm.LayerNorm [F0] sign 1": _INFERRED,
    "grads.forms.Outer [V1] sign 1": _TWICE,
    "grads.forms.OuterSum [V1] sign 1": _TWICE,
    "mechanism.before.pca.PrivatePCA [F4] sign 1": _ANY_SIGN,
    "mechanism.rounding.products [F2] drop 3": _GUARD,
    "privacy.moments.MomentsAccountant [M2] drop 1": _GUARD,
    "privacy.moments.MomentsAccountant [M4] drop 1": _GUARD,
    "privacy.composition.BasicAccountant [C1] drop 1": _GUARD,
    "privacy.composition.PairAccountant [M1] drop 1": _GUARD,
    "privacy.renyi.RenyiAccountant [M2] drop 1": _GUARD,
    "privacy.renyi.RenyiAccountant [M3] drop 1": _GUARD,
    "privacy.group_privacy.group_epsilon [C2] drop 7": _GUARD,
    "privacy.group_privacy.group_epsilon [C2] scale 3": "the bisection asks for the sign alone",
}


@dataclass(frozen=True)
class Mutant:
    """One change of one line: the text `old` of `path` becomes `new`; `source` is the whole module
    with it.
    """

    card: str
    label: str
    operator: str
    number: int  # among those of the label by this operator
    path: str
    line: int
    old: str
    new: str
    source: str

    @property
    def name(self):
        return f"{self.card} [{self.label}] {self.operator} {self.number}"

    def __str__(self):
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.name}  {self.path}:{self.line}  {old}  ->  {new}"


def generate():
    """Every Mutant of every labelled line of the package, in the order of the audit."""
    found = []
    for card, lines in cards():
        tree = ast.parse("\n".join(lines))
        statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
        for label, spans in card.code_lines.items():
            counts = Counter()
            for first, last in spans:
                around = [node for node in statements if last in own_lines(node)]
                statement = max(around, key=lambda node: node.lineno)
                for operator, node, new in _changes(statement, first, last):
                    counts[operator] += 1
                    place = operator, counts[operator], card.module, first
                    parts = ast.unparse(node), new, _replaced(lines, node, new)
                    found.append(Mutant(card.name, label, *place, *parts))
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


def _unbroken(mutant):
    """What fails of its card while nothing is broken: in loaded modules, and after a fresh import
    too.
    """
    control = replace(mutant, source=(PACKAGE.parent / mutant.path).read_text("utf-8"))
    loaded = noticed(control, fresh=False)
    return loaded, loaded and noticed(control)


def judge(mutants, on_result=print):
    """What is wrong with the tests of these mutants, a sentence each; on_result(text) is told of
    each mutant.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ThreadPoolExecutor(PROCESSES) as pool:
        cards_ = {mutant.card: mutant for mutant in mutants}
        fails = dict(zip(cards_, pool.map(_unbroken, cards_.values())))
        faults = [
            f"fails before anything is broken: {card} {found}"
            for card, (_, found) in fails.items()
            if found
        ]

        def killer_of(mutant):
            trusted = not fails[mutant.card][0]
            return (trusted and noticed(mutant, fresh=False)) or noticed(mutant, others=True)

        killers = pool.map(killer_of, mutants)
        return faults + texts.judged(mutants, killers, EQUIVALENT, on_result)


def unmatched(mutants):
    """Rows of EQUIVALENT that are no mutant's name: the line they spoke of is gone."""
    return [
        f"listed as equivalent, but no such mutant: {name}"
        for name in sorted(EQUIVALENT.keys() - {m.name for m in mutants})
    ]


def main(only=None):
    """Run all mutants, or those of the card `only` and its bases, print what notices each, return
    the exit status.
    """
    need_extra()
    mutants = generate()
    faults = unmatched(mutants)
    if only is not None:
        wanted = named(only, [card for card, _ in cards()])
        mutants = [mutant for mutant in mutants if mutant.card in wanted]
    broken = [each for each in texts.generate() if only is None or each.card in wanted]
    minutes = len(mutants) * SECONDS_EACH / PROCESSES / 60 + len(broken) / 1200 + 0.5  # to the next
    say(
        f"{len(mutants):,} mutants of code and {len(broken):,} of equations, about "
        f"{minutes:.0f} min on {PROCESSES} cores"
    )
    faults += judge(mutants, on_result=lambda text: print(text, flush=True))
    faults += texts.judge(broken, on_result=lambda text: print(text, flush=True))
    listed = sum(mutant.name in EQUIVALENT for mutant in mutants)
    print("", *faults, sep="\n")
    listed += sum(each.name in texts.EQUIVALENT for each in broken)
    number = len(mutants) + len(broken)
    print(f"{number} mutants, {listed} listed as equivalent, {len(faults)} faults")
    return 1 if faults else 0
