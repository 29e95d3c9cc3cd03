r"""Docstring cards: the claims of a class or function, read from the syntax tree without running
code.

A card is a docstring with labelled equations under fixed headings; the line of code that computes
an equation ends in a comment that holds its label and nothing else:

    Forward
        [F1]  y_bo = sum_i x_bi W_io + b_o          y = x @ W + b  # [F1]
    Source
        [F1]  own derivation

A statement may break over several lines. Its label then stands for all of them; where the statement
has several labelled lines, each label stands for the lines after the label before it, up to its
own.

Labels belong to their card, so that two classes of a module may both have an [F1]. A labelled line
counts for the innermost class or function around it that has a card. A line outside every card (a
helper of the module) counts for the one card of the module that has the label.
"""

import ast
import inspect
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .names import card_name, place_of

PACKAGE = Path(__file__).parents[1]
HEADINGS = (
    "Shapes",
    "Forward",
    "Backward",
    "Sensitivity",
    "Event",
    "Bound",
    "Valid for",
    "Fails as",
    "Source",
    "Guarantees",
    "Raises",
)
_LABEL = r"\[[A-Z]\d+[a-z]?\]"
_LEADING_LABELS = re.compile(rf"(?:{_LABEL}[ ,]*)+")
_LABEL_COMMENT = re.compile(rf"#\s*(?:{_LABEL}\s*)+$")
_HEADING = re.compile(rf"({'|'.join(HEADINGS)})(?: ?[,:(].*| with .*)?$")


@dataclass(frozen=True)
class Card:
    """One docstring card and the lines of code that bear its labels."""

    module: str  # path of the file, as the reader was given it
    qualname: str  # for example Dense or Sanitizer.event
    line: int  # where the class or function begins
    labels: dict[str, str]  # label to equation, as written
    sources: dict[str, str]  # label to source; "" for a source that names no label
    headings: dict[str, str]  # label to the heading that it stands under
    # label to first and last line of the code that computes it
    code_lines: dict[str, tuple[tuple[int, int], ...]]
    wrong: tuple[str, ...] = ()  # what is wrong in the text itself, a sentence each

    @property
    def name(self):
        """Its name in the registry of checks: nn.dense.Dense."""
        module = self.module.removesuffix(".py").replace("/", ".")
        return card_name(module, self.qualname)

    def faults(self):
        """Yield a sentence for each fault of the card."""
        yield from self.wrong
        yield from (
            f"[{label}] has no line of code that ends in # [{label}]"
            for label in self.labels
            if label not in self.code_lines
        )
        yield from (
            f"[{label}] stands under Source but is not defined"
            for label in self.sources
            if label and label not in self.labels
        )
        if not any(self.sources.values()):
            yield "names no source"


def read_module(source, module):
    """(cards, strays) of the text of a Python file: its cards in order, and a list of (line, label,
    reason) for labels that belong to no card.

    `module` is the name for the cards, usually the file's path. Raises SyntaxError if a text with
    labels is not Python.
    """
    if not re.search(_LABEL, source):
        return [], []
    tree = ast.parse(source)
    scopes = list(_scopes(tree, ""))
    cards = [card for _, qualname, node in scopes if (card := _card(node, qualname, module))]
    by_name = {card.qualname: card for card in cards}
    strays = []
    labelled = list(_code_labels(source))
    spans = _spans(tree, {line for line, _ in labelled})
    for line, label in labelled:
        around = [qualname for span, qualname, _ in scopes if line in span and qualname in by_name]
        owners = [name for name in around or by_name if label in by_name[name].labels]
        if line not in spans:
            strays.append((line, label, "stands on a line without code"))
        elif not owners:
            where = f"the card of {around[-1]}" if around else "any card of this module"
            strays.append((line, label, f"is not in {where}"))
        elif not around and len(owners) > 1:
            strays.append(
                (line, label, f"could belong to {' or '.join(owners)}; put it inside one of them")
            )
        else:
            lines = by_name[owners[-1]].code_lines
            lines[label] = (*lines.get(label, ()), spans[line])
    return cards, strays


@cache
def _cards_in(path):
    """{name: (card, lines of its file)} of one file of the package."""
    text = path.read_text(encoding="utf-8")
    cards, _ = read_module(text, path.relative_to(PACKAGE.parent).as_posix())
    return {card.name: (card, text.splitlines()) for card in cards}


def package():
    """{name: (card, lines of its file)} of the whole package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        found |= _cards_in(path)
    return found


def card_of_class(cls):
    """(card, lines of its file) of any class; (None, lines) without a card. Raises OSError or
    TypeError if its source is unknown.
    """
    path = inspect.getsourcefile(cls)
    text = Path(path).read_text(encoding="utf-8")
    qualname = cls.__qualname__.replace(".<locals>", "")
    held = [card for card in read_module(text, path)[0] if card.qualname == qualname]
    return (held[0] if held else None), text.splitlines()


def labels_of(name):
    """{label: equation as written} of the card with this name."""
    path = PACKAGE.joinpath(*place_of(name).split("."))
    while not path.with_suffix(".py").is_file():
        path = path.parent
    return _cards_in(path.with_suffix(".py"))[name][0].labels


def _scopes(node, prefix):
    """Every class and function with its lines and qualified name; outer ones come first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield range(child.lineno, child.end_lineno + 1), prefix + child.name, child
            yield from _scopes(child, f"{prefix}{child.name}.")
        else:
            yield from _scopes(child, prefix)


def _code_labels(source):
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and _LABEL_COMMENT.match(token.string):
            yield from ((token.start[0], label) for label in _names(token.string))


def _spans(tree, labelled):
    """{labelled line: (first, last) line of the code that its label stands for}."""
    spans = {}
    for line in labelled:
        statement = statement_at(tree, line)
        if statement is None:
            continue
        lines = _own_lines(statement)
        others = labelled.intersection(lines)
        before = [other for other in others if other < line]
        last = line if len(others) > 1 else lines[-1]
        spans[line] = (max(before) + 1 if before else lines[0], last)
    return spans


def statement_at(tree, line):
    """The innermost statement on a line; None if there is none."""
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    around = [node for node in statements if line in _own_lines(node)]
    return max(around, key=lambda node: node.lineno, default=None)


def _own_lines(statement):
    """The lines of a statement without those of its body."""
    body = getattr(statement, "body", None)
    return range(statement.lineno, body[0].lineno if body else statement.end_lineno + 1)


def _card(node, qualname, module):
    docstring = ast.get_docstring(node, clean=False)
    if docstring is None:
        return None
    labels, sources, headings, wrong = {}, {}, {}, []
    heading, current, indent = None, (), 0
    for line in inspect.cleandoc(docstring).splitlines():
        text, leading = line.strip(), _LEADING_LABELS.match(line.strip())
        names = _names(leading[0]) if leading else ()
        if line and not line[0].isspace():
            match = _HEADING.match(line)
            heading, current = match and match[1], ()
            if match:
                continue
        elif leading:
            current, text = names, text[leading.end() :].strip()
            indent = len(line) - len(line.lstrip())
        elif text and len(line) - len(line.lstrip()) <= indent:
            current = ()  # prose below the labels
        if heading is None:
            wrong += (f"[{label}] stands under no heading of a card" for label in names)
            continue
        if heading != "Source":
            wrong += (f"[{label}] is defined twice" for label in names if label in labels)
            headings |= dict.fromkeys(names, heading)
        held = sources if heading == "Source" else labels
        for label in current or ("",) * (heading == "Source"):
            held[label] = f"{held.get(label, '')} {text}".strip()
    if not (labels or wrong):
        return None
    return Card(module, qualname, node.lineno, labels, sources, headings, {}, tuple(wrong))


def _names(labels):
    return tuple(label[1:-1] for label in re.findall(_LABEL, labels))
