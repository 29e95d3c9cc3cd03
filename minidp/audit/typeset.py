"""An equation of a card as a paper would print it: MathML for the audit's page, LaTeX for a text.

Both come from the parse that is evaluated, so that what is read is what is measured.
"""

import re
from html import escape

from .notation import equation_of, parse

GREEK = "alpha beta gamma delta epsilon eta theta lambda mu pi sigma Phi"
LETTERS = dict(zip(GREEK.split(), "αβγδεηθλμπσΦ")) | {"inf": "∞"}
SIGNS = {"<-": "←", "<=": "≤", ">=": "≥", "~": "≈"}
LATEX = {"←": r"\leftarrow", "≤": r"\le", "≥": r"\ge", "≈": r"\approx", "∑": r"\sum", "∏": r"\prod"}
LATEX |= {"∈": r"\in", "⌊": r"\lfloor", "⌋": r"\rfloor", "⌈": r"\lceil", "⌉": r"\rceil"}
LATEX |= {name: rf"\{name}" for name in ("exp", "ln", "log", "max", "min", "sin", "cos", "tanh")}
LATEX |= {letter: rf"\{name}" for name, letter in LETTERS.items()} | {"−": "-", "·": r"\cdot"}
LATEX["∞"] = r"\infty"
ROUND = {"floor": "⌊⌋", "ceil": "⌈⌉"}
BIG = {"sum": "∑", "prod": "∏"}
SUMS = ("plus", "minus", "negative", "where")
PRODUCTS = ("times", "over", "reduce", "reduce_range")


class MathML:
    """Builds elements of MathML."""

    def row(self, *parts):
        return f"<mrow>{''.join(parts)}</mrow>"

    def word(self, text):
        letters = LETTERS.get(text, text)
        variant = ' mathvariant="normal"' if len(letters) > 1 else ""
        return f"<mi{variant}>{escape(letters)}</mi>"

    def number(self, text):
        return f"<mn>{text}</mn>"

    def sign(self, text):
        return f"<mo>{escape(text)}</mo>"

    def text(self, text):
        return f"<mtext>&#160;{escape(text)}&#160;</mtext>"

    def space(self):
        return '<mspace width="0.17em"/>'

    def below(self, base, low):
        return f"<munder>{base}{low}</munder>"

    def subscript(self, base, low):
        return f"<msub>{base}{low}</msub>"

    def power(self, base, high):
        return f"<msup>{base}{high}</msup>"

    def fraction(self, top, bottom):
        return f"<mfrac>{top}{bottom}</mfrac>"

    def root(self, inside):
        return f"<msqrt>{inside}</msqrt>"

    def fenced(self, left, inside, right):
        return self.row(self.sign(left), inside, self.sign(right))


class Latex:
    """Builds LaTeX."""

    def row(self, *parts):
        return " ".join(parts)

    def word(self, text):
        letter = LETTERS.get(text, text)
        upright = text.replace("_", r"\_")
        return LATEX.get(letter) or (text if len(text) == 1 else rf"\mathrm{{{upright}}}")

    def number(self, text):
        return text

    def sign(self, text):
        return LATEX.get(text, text)

    def text(self, text):
        return rf"\ \text{{{text}}}\ "

    def space(self):
        return r"\,"

    def below(self, base, low):
        return (
            f"{base}_{{{low}}}" if base.startswith("\\") else rf"\operatorname*{{{base}}}_{{{low}}}"
        )

    def subscript(self, base, low):
        return f"{base}_{{{low}}}"

    def power(self, base, high):
        return f"{{{base}}}^{{{high}}}"

    def fraction(self, top, bottom):
        return rf"\frac{{{top}}}{{{bottom}}}"

    def root(self, inside):
        return rf"\sqrt{{{inside}}}"

    def fenced(self, left, inside, right):
        return rf"\left{self.sign(left)} {inside} \right{self.sign(right)}"


def mathml(text):
    """The equation of a label's text as one <math> element, its remark behind it as text."""
    build = MathML()
    shown = build.row(*_parts(text, build))
    math = f'<math display="block" displaystyle="true">{shown}</math>'
    return math + escape(_remark(text))


def latex(text):
    """The equation of a label's text in LaTeX's mathematics, its remark as text."""
    remark = _remark(text)
    return " ".join(_parts(text, Latex())) + (rf"\quad\text{{{remark}}}" if remark else "")


def _remark(text):
    return text.strip()[len(equation_of(text)) :].strip()


def _parts(text, build):
    for number, part in enumerate(parse(text)):
        if number:
            yield from (build.sign(","), build.space(), build.space())
        left, relation, right = part.children
        yield from (
            _show(left, build),
            build.sign(SIGNS.get(relation, relation)),
            _show(right, build),
        )


def _show(tree, build, within=()):
    """A tree, in brackets if it is one of the kinds `within`."""
    kind, parts = tree.data, tree.children
    shown = globals()[f"_{kind}"](parts, build)
    return build.fenced("(", shown, ")") if kind in within else shown


def _number(parts, build):
    mantissa, _, exponent = str(parts[0]).partition("e")
    if not exponent:
        return build.number(mantissa)
    power = build.power(build.number("10"), build.number(exponent))
    return power if mantissa == "1" else build.row(build.number(mantissa), build.sign("·"), power)


def _name(parts, build):
    return _named(str(parts[0]), build)


def _named(name, build):
    if re.fullmatch("[A-Z]{2,}_[A-Z]{2,}", name):
        return build.word(name)
    head, _, tail = name.partition("_")
    letters = re.match(r"[A-Za-z]+", head)[0]
    digits, primes = head[len(letters) :].rstrip("'"), head.count("'")
    base = build.word(letters)
    if digits:
        base = build.subscript(base, build.number(digits))
    if primes:
        base = build.power(base, build.sign("′" if isinstance(build, MathML) else r"\prime"))
    words = (
        [tail] if len(tail) > 4 or tail in (*LETTERS, "std") else re.findall(r"\d+|[A-Za-z,]", tail)
    )
    return build.subscript(base, build.row(*map(build.word, words))) if tail else base


def _sum_of(sign):
    def show(parts, build):
        left, right = parts
        within = SUMS if sign == "−" else ()
        return build.row(
            _show(left, build, ["where"]), build.sign(sign), _show(right, build, within)
        )

    return show


_plus, _minus = _sum_of("+"), _sum_of("−")


def _negative(parts, build):
    return build.row(build.sign("−"), _show(parts[0], build, SUMS))


def _times(parts, build):
    left, right = (_show(part, build, SUMS) for part in parts)
    between = build.sign("·") if parts[1].data == "number" else build.space()
    return build.row(left, between, right)


def _over(parts, build):
    return build.fraction(*(build.row(_show(part, build)) for part in parts))


def _power(parts, build):
    base = _show(parts[0], build, (*SUMS, *PRODUCTS, "power", "call"))
    return build.power(build.row(base), build.row(_show(parts[1], build)))


def _factorial(parts, build):
    return build.row(_show(parts[0], build, (*SUMS, *PRODUCTS)), build.sign("!"))


def _size(parts, build):
    return build.fenced("|", _show(parts[0], build), "|")


def _truth(parts, build):
    return build.fenced("[", _show(parts[0], build), "]")


def _arguments(parts, build):
    first, *others = (build.row(_show(part, build)) for part in parts)
    return build.row(first, *(piece for each in others for piece in (build.sign(","), each)))


def _call(parts, build):
    name = parts[0].removesuffix("(")
    if name == "sqrt":
        return build.root(_show(parts[1], build))
    if name in ROUND:
        left, right = ROUND[name]
        return build.fenced(left, _show(parts[1], build), right)
    reducer, _, index = name.partition("_")
    inverse = name.endswith("^-1")
    if reducer in ("sum", "prod", "mean", "max", "min") and index:
        head = _reducer(name, build)
    else:
        head = _named(name.removesuffix("^-1"), build)
    if inverse:
        head = build.power(head, build.row(build.sign("−"), build.number("1")))
    if parts[1].data == "arguments":
        return build.row(head, build.fenced("(", _show(parts[1], build), ")"))
    return build.row(head, build.space(), _show(parts[1], build, SUMS))


def _shifted(parts, build):
    base, low = str(parts[0]).rstrip("_(").partition("_")[::2]
    letters = [build.word(letter) for letter in low]
    return build.subscript(build.word(base), build.row(*letters, _show(parts[1], build)))


def _reducer(name, build):
    head, _, index = name.partition("_")
    base = build.sign(BIG[head]) if head in BIG else build.word(head)
    if not index:
        return base
    letters = [index] if index in LETTERS else re.findall(r"\d+|[A-Za-z]", index)
    place = build.subscript if head == "mean" else build.below
    return place(base, build.row(*map(build.word, letters)))


def _reduce(parts, build):
    return build.row(_reducer(str(parts[0]), build), build.space(), _show(parts[1], build, SUMS))


def _reduce_range(parts, build):
    head, span = str(parts[0]).removesuffix("_("), _show(parts[1], build)
    base = build.sign(BIG[head]) if head in BIG else build.word(head)
    return build.row(build.below(base, span), build.space(), _show(parts[2], build, SUMS))


def _between(parts, build):
    name, *limits = parts
    low, high = (_show(limit, build) for limit in limits)
    return build.row(_named(str(name), build), build.sign("="), low, build.sign("…"), high)


def _among(parts, build):
    name, members, *conditions = parts
    span = build.row(_named(str(name), build), build.sign("∈"), _named(str(members), build))
    return build.row(span, *(build.row(build.sign(","), _show(c, build)) for c in conditions))


def _member(parts, build):
    return build.row(_show(parts[0], build), build.sign("∈"), _show(parts[1], build))


def _where(parts, build):
    pieces = [_show(parts[0], build), build.text("where"), _show(parts[1], build)]
    if len(parts) > 2:
        pieces += [build.text(", else"), _show(parts[2], build)]
    return build.row(*pieces)


def _compare(parts, build):
    shown = [_show(part, build) for part in parts[::2]]
    signs = [build.sign(SIGNS.get(sign, sign)) for sign in parts[1::2]]
    return build.row(shown[0], *(piece for pair in zip(signs, shown[1:]) for piece in pair))


def _both(parts, build):
    return build.row(_show(parts[0], build), build.text("and"), _show(parts[1], build))


def _fails(parts, build):
    return build.row(build.text("not"), _show(parts[0], build))


def _inside(parts, build):
    value, low, high = (_show(part, build) for part in parts)
    return build.row(value, build.text("in"), low, build.sign("…"), high)


def _outside(parts, build):
    value, low, high = (_show(part, build) for part in parts)
    return build.row(value, build.text("not in"), low, build.sign("…"), high)
