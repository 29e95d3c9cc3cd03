"""The files that must be right for epsilon to be true, their tokens and what they import.

`minidp/README.md` lists them by `python -m tools.tables`; tests/test_structure.py checks that each
imports only files that stand before it.
"""

import tokenize
from pathlib import Path

from tools.check_imports import imports_of

ROOT = Path(__file__).resolve().parents[1]
MOST = 25_000  # tokens of all of them: an afternoon's reading
# in reading order: file, what it decides
FILES = (
    ("errors.py", "how code refuses"),
    ("given.py", "what other parts give, loaded at first use"),
    ("util/validate.py", "checks of settings"),
    ("host/series.py", "the series of the logarithm"),
    ("host/chacha.py", "random words, normal numbers and subsets, as functions of key and place"),
    ("streams.py", "which numbers a release gets; no number is handed out twice"),
    ("privacy/events/base.py", "what an event is, and when data sets are neighbours"),
    ("privacy/events/noise.py", "events of noise"),
    ("privacy/events/pairs.py", "events that state a guarantee"),
    ("privacy/events/sampled.py", "events of random lots"),
    ("privacy/events/several.py", "events made of events"),
    ("privacy/events/__init__.py", "their names"),
    ("mechanism/sampling.py", "how a lot is drawn, and its event"),
    ("arrays.py", "norms of rows, and sums over rows"),
    ("grads/forms.py", "norms and weighted sums of per-example gradients, and their roundings"),
    ("grads/sums.py", "the same for several parameters"),
    ("mechanism/setting.py", "numbers that follow the step"),
    ("mechanism/clip.py", "clip weights, and groups of parameters"),
    ("mechanism/rounding.py", "how far rounding moves a sum"),
    ("exact/laws.py", "the law of the noise, and its grid"),
    ("exact/ordinary.py", "what an arithmetic decides; here the ordinary one"),
    ("mechanism/noise.py", "adding the noise"),
    ("mechanism/sanitizer.py", "clip, sum, release; sensitivity, and the event"),
    ("privacy/event_json.py", "events on disk"),
    ("util/atomic.py", "files that are written whole"),
    ("privacy/ledger.py", "the record of all releases"),
    ("privacy/bound.py", "intervals, and what rare failures add"),
    ("privacy/accountant.py", "from a ledger to the events that are accounted for"),
    ("host/jit.py", "Numba"),
    ("privacy/pld/masses.py", "the loss of an event as masses on a grid"),
    ("privacy/pld/kernels.py", "masses cell by cell; delta from masses"),
    ("privacy/pld/cells.py", "masses that dominate a sampled Gaussian"),
    ("privacy/pld/fourier.py", "the transform, and its rounding"),
    ("privacy/pld/losses.py", "composition, with every error counted"),
    ("privacy/pld/accountant.py", "the loss distribution of a whole ledger"),
)
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
STARTS = LAYOUT - {tokenize.COMMENT, tokenize.ENDMARKER}  # a string after one is a docstring


def tokens(path):
    """Tokens of a Python file, without comments and docstrings."""
    found, before = 0, tokenize.ENCODING
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            docstring = token.type == tokenize.STRING and before in STARTS
            found += token.type not in LAYOUT and not docstring
            if token.type != tokenize.COMMENT:
                before = token.type
    return found


def strays(root=ROOT):
    """["file: import"] of what the files import beside those that stand before them."""
    found, before = [], set()
    for name, _ in FILES:
        path = root / "minidp" / name
        targets = {target for _, target in imports_of(path, root / "minidp", types=False)}
        imported = {target for target in targets if target.endswith(".py")}
        imported |= targets & {"importlib"}  # an import by name
        found += [f"{name}: {other}" for other in imported - before]
        before.add(name)
    return sorted(found)


def table(markdown, root=ROOT):
    """The lines of the page's table, made by `markdown`."""
    sizes = [tokens(root / "minidp" / name) for name, _ in FILES]
    rows = [[f"`{name}`", what, f"{size:,}"] for (name, what), size in zip(FILES, sizes)]
    return markdown(["file", "what it decides", "tokens"], [*rows, ["all", "", f"{sum(sizes):,}"]])
