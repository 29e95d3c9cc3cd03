"""An equation of a card as a paper would print it: MathML for the audit's page, LaTeX for a text.

Both come from the parse that is evaluated, so that what is read is what is measured.
"""

import re
from html import escape

from .notation import equation_of, parse

GREEK = "alpha beta gamma delta epsilon eta theta lambda mu nu pi sigma Phi"
LETTERS = dict(zip(GREEK.split(), "αβγδεηθλμνπσΦ")) | {"inf": "∞"}
SIGNS = {"<-": "←", "<=": "≤", ">=": "≥", "~": "≈"}
LATEX = {
    "←": r"\leftarrow",
    "≤": r"\le",
    "≥": r"\ge",
    "≈": r"\approx",
    "∑": r"\sum",
    "∏": r"\prod",
    "∫": r"\int",
}
LATEX |= {"∈": r"\in", "⌊": r"\lfloor", "⌋": r"\rfloor", "⌈": r"\lceil", "⌉": r"\rceil"}
LATEX |= {name: rf"\{name}" for name in ("exp", "ln", "log", "max", "min", "sin", "cos", "tanh")}
LATEX |= {letter: rf"\{name}" for name, letter in LETTERS.items()} | {"−": "-", "·": r"\cdot"}
LATEX |= {"∞": r"\infty", "′": r"\prime"}
ESCAPES = str.maketrans(
    {sign: rf"\{sign}" for sign in "_&%$#{}"}
    | {sign: f"${sign}$" for sign in "<>|"}
    | {"^": r"\^{}", "~": r"\~{}", "\\": r"\textbackslash{}"}
)
FENCES = {"floor": "⌊⌋", "ceil": "⌈⌉", "size": "||", "truth": "[]"}
BIG = {"sum": "∑", "prod": "∏", "int": "∫"}
SUMS = ("plus", "minus", "negative", "where")
PRODUCTS = ("times", "over", "reduce", "reduce_range")
BETWEEN = {  # the parts of a kind: signs, " words ", and numbers of its children
    "arguments": (",",),
    "among": ("∈", ","),
    "member": ("∈",),
    "both": (" and ",),
    "where": (" where ", ", else "),
    "inside": (" in ", "…"),
    "outside": (" not in ", "…"),
}


class MathML:
    """Builds elements of MathML."""

    number = "<mn>{}</mn>".format
    below = "<munder>{}{}</munder>".format
    between = "<munderover>{}{}{}</munderover>".format
    subscript = "<msub>{}{}</msub>".format
    power = "<msup>{}{}</msup>".format
    fraction = "<mfrac>{}{}</mfrac>".format
    root = "<msqrt>{}</msqrt>".format
    fences = "<mrow>{}{}{}</mrow>".format
    space = '<mspace width="0.17em"/>'

    @staticmethod
    def row(*parts):
        return f"<mrow>{''.join(parts)}</mrow>"

    @staticmethod
    def word(text):
        letters = LETTERS.get(text, text)
        variant = ' mathvariant="normal"' if len(letters) > 1 else ""
        return f"<mi{variant}>{escape(letters)}</mi>"

    @staticmethod
    def sign(text):
        return f"<mo>{escape(text)}</mo>"

    @staticmethod
    def text(text):
        return f"<mtext>&#160;{escape(text)}&#160;</mtext>"


class Latex:
    """Builds LaTeX."""

    number = "{}".format
    subscript = "{}_{{{}}}".format
    power = "{{{}}}^{{{}}}".format
    fraction = r"\frac{{{}}}{{{}}}".format
    root = r"\sqrt{{{}}}".format
    fences = r"\left{} {} \right{}".format
    text = r"\ \text{{{}}}\ ".format
    space = r"\,"

    @staticmethod
    def row(*parts):
        return " ".join(parts)

    @staticmethod
    def word(text):
        letter = LETTERS.get(text, text)
        upright = text.replace("_", r"\_")
        return LATEX.get(letter) or (text if len(text) == 1 else rf"\mathrm{{{upright}}}")

    @staticmethod
    def sign(text):
        return LATEX.get(text, text)

    @staticmethod
    def below(base, low):
        operator = base if base.startswith("\\") else rf"\operatorname*{{{base}}}"
        return f"{operator}_{{{low}}}"

    @classmethod
    def between(cls, base, low, high):
        return f"{cls.below(base, low)}^{{{high}}}"


def mathml(text):
    """The equation of a label's text as a <math> element for each part, between which lines may
    break, its remark behind it as text.
    """
    parts = [MathML.row(*part) for part in _parts(text, MathML)]
    math = [f'<math displaystyle="true">{part}</math>' for part in parts]
    return f"{', '.join(math)} {escape(_remark(text))}".rstrip()


def latex(text):
    """The equation of a label's text in LaTeX's mathematics, a line for each part; its remark as
    text, unless it names factors in the code.
    """
    remark = "" if _remark(text).startswith("factors ") else escaped(_remark(text))
    remark = rf"\quad\text{{{remark}}}" if remark else ""
    parts = [[left, f"{sign} {right}"] for left, sign, right in _parts(text, Latex)]
    if len(parts) == 1:
        return " ".join(parts[0]) + remark
    lines = " ,\\\\\n".join(" & ".join(part) for part in parts)
    return rf"\begin{{aligned}}{lines}{remark}\end{{aligned}}"


def escaped(text):
    """Words as LaTeX prints them."""
    return text.translate(ESCAPES)


def _remark(text):
    return text.strip()[len(equation_of(text)) :].strip()


def _parts(text, build):
    for part in parse(text):
        left, relation, right = part.children
        sign = build.sign(SIGNS.get(relation, relation))
        yield _show(left, build), sign, _show(right, build)


def _show(tree, build, within=()):
    """A tree, in brackets if it is one of the kinds `within`; a token is a name."""
    if isinstance(tree, str):
        return _name([tree], build)
    kind, parts = tree.data, tree.children
    if kind in FENCES:
        shown = _fenced(FENCES[kind], parts[0], build)
    elif kind in BETWEEN:
        shown = _joined(parts, BETWEEN[kind], build)
    else:
        shown = globals()[f"_{kind}"](parts, build)
    return build.fences(build.sign("("), shown, build.sign(")")) if kind in within else shown


def _fenced(signs, inside, build):
    left, right = map(build.sign, signs)
    return build.fences(left, _show(inside, build), right)


def _joined(parts, between, build):
    """Parts with signs or words between them, the last of which may be repeated."""
    shown = [_show(parts[0], build)]
    for number, part in enumerate(parts[1:]):
        sign = between[min(number, len(between) - 1)]
        shown.append(build.text(sign.strip(" ")) if " " in sign else build.sign(sign))
        shown.append(_show(part, build))
    return build.row(*shown)


def _number(parts, build):
    mantissa, _, exponent = str(parts[0]).partition("e")
    if not exponent:
        return build.number(mantissa)
    power = build.power(build.number("10"), build.number(exponent))
    return power if mantissa == "1" else build.row(build.number(mantissa), build.sign("·"), power)


def _name(parts, build):
    name = str(parts[0])
    if re.fullmatch("[A-Z]{2,}_[A-Z]{2,}", name):
        return build.word(name)
    head, _, tail = name.partition("_")
    letters = re.match(r"[A-Za-z]+", head)[0]
    digits, primes = head[len(letters) :].rstrip("'"), head.count("'")
    base = build.word(letters)
    if digits:
        base = build.subscript(base, build.number(digits))
    if primes:
        base = build.power(base, build.sign("′"))
    whole = len(tail) > 4 or tail in (*LETTERS, "std")
    words = [tail] if whole else re.findall(r"\d+|[A-Za-z,]", tail)
    return build.subscript(base, build.row(*map(build.word, words))) if tail else base


def _plus(parts, build, sign="+", within=()):
    left, right = _show(parts[0], build, ["where"]), _show(parts[1], build, within)
    return build.row(left, build.sign(sign), right)


def _minus(parts, build):
    return _plus(parts, build, "−", SUMS)


def _negative(parts, build):
    return build.row(build.sign("−"), _show(parts[0], build, SUMS))


def _times(parts, build):
    left, right = (_show(part, build, SUMS) for part in parts)
    return build.row(left, build.sign("·") if parts[1].data == "number" else build.space, right)


def _over(parts, build):
    return build.fraction(*(build.row(_show(part, build)) for part in parts))


def _power(parts, build):
    base = _show(parts[0], build, (*SUMS, *PRODUCTS, "power", "call"))
    return build.power(build.row(base), build.row(_show(parts[1], build)))


def _factorial(parts, build):
    return build.row(_show(parts[0], build, (*SUMS, *PRODUCTS)), build.sign("!"))


def _call(parts, build):
    name, inside = parts[0].removesuffix("("), parts[1]
    reduces = re.match("(sum|prod|mean|max|min)_", name)
    index = re.fullmatch("[a-z]+_([a-z]{1,3})", name)
    if index and not reduces and index[1] not in LETTERS:  # of an array
        return _shifted(parts, build)
    if name == "sqrt":
        return build.root(_show(inside, build))
    if name in FENCES:
        return _fenced(FENCES[name], inside, build)
    function = name.removesuffix("^-1")
    head = (_reducer if reduces else _show)(function, build)
    if function != name:
        head = build.power(head, build.row(build.sign("−"), build.number("1")))
    if inside.data == "arguments":
        return build.row(head, build.fences(build.sign("("), _show(inside, build), build.sign(")")))
    return build.row(head, build.space, _show(inside, build, SUMS))


def _shifted(parts, build):
    base, low = str(parts[0]).rstrip("_(").partition("_")[::2]
    low = build.row(*map(build.word, low), *[build.sign(",")][: len(low)], _show(parts[1], build))
    return build.subscript(build.word(base), low)


def _reducer(name, build, low=""):
    head, _, index = name.partition("_")
    base = build.sign(BIG[head]) if head in BIG else build.word(head)
    letters = [index] if index in LETTERS else re.findall(r"\d+|[A-Za-z]", index)
    low = low or (index and build.row(*map(build.word, letters)))
    place = build.subscript if head == "mean" else build.below
    return place(base, low) if low else base


def _reduce(parts, build):
    head = _reducer(str(parts[0]), build)
    return build.row(head, build.space, _show(parts[1], build, SUMS))


def _reduce_range(parts, build):
    name, kind, limits = parts[0].removesuffix("_("), parts[1].data, parts[1].children
    if kind == "between":
        index, low, high = (_show(limit, build) for limit in limits)
        low = build.row(index, build.sign("="), low)
        head = build.between(_reducer(name, build), low, high)
    else:
        head = _reducer(name, build, _show(parts[1], build))
    return build.row(head, build.space, _show(parts[2], build, SUMS))


def _compare(parts, build):
    signs = [SIGNS.get(sign, sign) for sign in parts[1::2]]
    return _joined(parts[::2], signs, build)


def _fails(parts, build):
    return build.row(build.text("not"), _show(parts[0], build))
