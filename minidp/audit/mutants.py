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
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..util.waiting import say
from .card import own_lines
from .checks import load, run
from .report import PACKAGE, cards, named, need_extra

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
SECONDS = 180  # for one mutant; the slowest that ends takes a tenth of it

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
                    texts = ast.unparse(node), new, _replaced(lines, node, new)
                    found.append(Mutant(card.name, label, *place, *texts))
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


def killed_by(mutant, others=True):
    """What notices the mutant, in words, or None: the checks of its label, of its card, and then
    all `others`.
    """
    context = _context()
    with tempfile.TemporaryDirectory(prefix="minidp-mutant-") as folder:
        shutil.copytree(PACKAGE, Path(folder, "minidp"))
        Path(folder, mutant.path).write_text(mutant.source, encoding="utf-8")
        ours, theirs = context.Pipe(duplex=False)
        # which takes minutes, compiling it seconds
        interpreted = "njit" in mutant.source and "_cipher" not in mutant.source
        process = context.Process(
            target=_check_all,
            args=(folder, mutant.card, mutant.label, others, interpreted, theirs),
            daemon=True,
        )
        process.start()
        theirs.close()
        try:
            return ours.recv() if ours.poll(SECONDS) else f"no end in {SECONDS} s"
        except EOFError:
            return "the end of its process"
        finally:
            process.kill()
            process.join()


def _context():
    """Processes that start from one which holds the libraries already, but nothing of minidp."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["mpmath", "numba", "scipy.optimize", "scipy.special", "scipy.fft"]
    )
    return context


def _check_all(folder, card, label, others, interpreted, answer):
    """In a process of its own: import the package from `folder` and send what killed_by returns."""
    sys.stdout = sys.stderr = open(os.devnull, "w")
    for name in [name for name in sys.modules if name.partition(".")[0] == "minidp"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    if interpreted:  # to compile one mutant takes longer than to interpret it
        import numba

        numba.config.DISABLE_JIT = True
    try:
        from minidp.audit import checks

        registry = checks.load()
    except Exception as error:  # a module that cannot be imported is noticed by everybody
        answer.send(f"importing it: {type(error).__name__}")
        return
    places = sorted(registry, key=lambda place: (place != (card, label), place[0] != card))
    for check in dict.fromkeys(
        check for place in places if others or place[0] == card for check in registry[place]
    ):
        outcome = checks.run(check)
        if not outcome.passed:
            answer.send(str(outcome))
            return
    answer.send(None)


def judge(mutants, processes=2, on_result=print):
    """What is wrong with the tests of these mutants, a sentence each; on_result(text) is told of
    each mutant.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    faults = []
    with ThreadPoolExecutor(processes) as pool:
        for number, (mutant, killer) in enumerate(zip(mutants, pool.map(killed_by, mutants)), 1):
            listed = EQUIVALENT.get(mutant.name)
            if killer:
                fault, found = (
                    listed and f"listed as equivalent, but killed by {killer}: {mutant}",
                    f"killed by {killer}",
                )
            else:
                fault, found = None if listed else f"survived: {mutant}", listed or "SURVIVED"
            if fault:
                faults.append(fault)
            on_result(f"{number}/{len(mutants)} {'FAIL' if fault else 'ok  '} {mutant}: {found}")
    return faults


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
    faults += [
        f"fails before anything is broken: {card} [{label}] {outcome}"
        for card, label in sorted({(mutant.card, mutant.label) for mutant in mutants})
        for check in load()[card, label]
        if not (outcome := run(check)).passed
    ]
    say(f"{len(mutants)} mutants, about two seconds each")
    faults += judge(mutants, on_result=lambda text: print(text, flush=True))
    listed = sum(mutant.name in EQUIVALENT for mutant in mutants)
    print(
        "",
        *faults,
        f"{len(mutants)} mutants, {len(mutants) - listed} to be killed, {listed} listed as "
        f"equivalent, {len(faults)} faults",
        sep="\n",
    )
    return 1 if faults else 0
