"""The plain-text equations of the cards as MathML, which browsers typeset without help.

    mathml("y_bo = sum_i x_bi W_io")        one <math> for each part between spaces, so that long lines wrap

Knows subscripts (x_bi), powers (sigma^2, e^(a b)), sqrt(...), Greek letters, sums and a few operators. English
words between formulas stay text; what it does not know stays as it stands.
"""
import re
from html import escape

GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eps": "ε", "eta": "η", "theta": "θ",
         "lambda": "λ", "mu": "μ", "sigma": "σ", "Phi": "Φ", "inf": "∞"}
FUNCTIONS = {"exp", "ln", "log", "min", "max", "tanh", "erf", "Binomial"}
BIG = {"sum": "∑", "prod": "∏", "int": "∫"}
OPERATORS = {"<=": "≤", ">=": "≥", "<-": "←", "->": "→", "~": "∼", "-": "−", "*": "·", "(x)": "⊗", "@": "·"}
SHORT_WORDS = {"an", "as", "at", "be", "by", "if", "in", "is", "it", "no", "of", "on", "or", "so", "to", "up"}
_TOKEN = re.compile(r"\s+|(?<=\s)\(x\)(?=\s)|<=|>=|<-|->|\d+(?:\.\d+)?(?:e-?\d+)?|[A-Za-z]+'?\d*|.")
_NAMED_SUM = re.compile(r"(_\w+)? =")  # "sum_io = ..." names a quantity
_SUBSCRIPT = re.compile(r"[A-Za-z0-9]+(?:,[a-z0-9]+(?![a-z0-9]*\())*")


def mathml(text):
    """HTML for one line of card text: <math> elements with spaces between them."""
    reader, parts = _Reader(text.replace("`", "")), []
    while reader.at < len(reader.text):
        part = reader.part()
        parts.append(f"<math>{part}</math>" if part else " ")
    return "".join(parts)


class _Reader:
    def __init__(self, text):
        self.text, self.at = text, 0

    def part(self):
        """What stands before the next space outside of brackets, in a row; passes over one space if nothing does."""
        parts = []
        while self.at < len(self.text) and not self.text[self.at].isspace():
            parts.append(self._item())
        if not parts:
            self.at += 1
        return "<mrow>" + "".join(parts) + "</mrow>" if parts else ""

    def row(self, closing):
        """Everything up to the closing bracket (which is passed over), as elements in a row."""
        parts = []
        while self.at < len(self.text):
            if self.text[self.at] == closing:
                self.at += 1
                break
            parts.append(self._item())
        return "<mrow>" + "".join(parts) + "</mrow>"

    def _token(self):
        token = _TOKEN.match(self.text, self.at)[0]
        self.at += len(token)
        return token

    def _item(self):
        base = self._base()
        below = above = None
        while self.at < len(self.text) and self.text[self.at] in "_^":
            mark = self.text[self.at]
            self.at += 1
            if mark == "_":
                below = self._below()
            else:
                above = self._above()
        if below and above:
            return f"<msubsup>{base}{below}{above}</msubsup>"
        return f"<msub>{base}{below}</msub>" if below else f"<msup>{base}{above}</msup>" if above else base

    def _below(self):
        if self.text.startswith("(", self.at):
            self.at += 1
            return self.row(")")
        match = _SUBSCRIPT.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return f"<mi>{escape(GREEK.get(match[0], match[0]) if match else '')}</mi>"

    def _above(self):
        if self.text.startswith("(", self.at):
            self.at += 1
            return self.row(")")
        sign = self.text[self.at] if self.text[self.at : self.at + 1] == "-" else ""
        self.at += len(sign)
        return f"<mrow>{'<mo>−</mo>' if sign else ''}{self._base()}</mrow>" if self.at < len(self.text) else "<mrow/>"

    def _base(self):
        token = self._token()
        if token.isspace():
            return "<mtext>&#160;</mtext>"
        if token == "sqrt" and self.text[self.at : self.at + 1] == "(":
            self.at += 1
            return f"<msqrt>{self.row(')')}</msqrt>"
        if token == "(":
            return f'<mrow><mo stretchy="false">(</mo>{self.row(")")}<mo stretchy="false">)</mo></mrow>'
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token in BIG and not _NAMED_SUM.match(self.text, self.at):
            return f"<mo>{BIG[token]}</mo>"
        if token[0].isalpha():
            return self._word(token)
        return f'<mo stretchy="false">{escape(OPERATORS.get(token, token))}</mo>'

    def _word(self, token):
        follows = self.text[self.at : self.at + 1]
        if token in GREEK:
            return f"<mi>{GREEK[token]}</mi>"
        if token in FUNCTIONS and follows in ("(", "_", " "):
            return f'<mi mathvariant="normal">{token}</mi>'
        letters = token.rstrip("'0123456789")
        if (len(letters) > 2 and follows != "_") or token.lower() in SHORT_WORDS:
            return f"<mtext>{escape(token)}</mtext>"
        return f"<mi>{escape(token)}</mi>"
