"""The audit: every equation of every card, its source, its line of code, and the error measured
now.
"""

import importlib.util
import math
import platform
import re
import sys
import time
from difflib import get_close_matches
from functools import cache, partial
from itertools import chain, groupby

import numpy

from ..backend import Backend
from ..compiled import prepare
from ..errors import ParameterError
from ..util.atomic import atomic_write
from ..util.files import write_json
from . import checks
from .algorithm import as_it_runs
from .card import Card, card_of_class, package
from .checks import Check, Outcome
from .html import formulas_page
from .names import card_of
from .printing import Screen
from .start import summary
from .trial import THOROUGH

OWN = "Layers and losses of your own"
# in the order of the paper; within a section, cards in the order of their prefixes
SECTIONS = {
    "Training": "train.trainer. mechanism.plan. train.",
    "Layers and losses": "nn.dense. nn.activation. nn.conv. nn.pool. nn.norm. nn. nn.loss. "
    "nn.network. nn.init. grads.forms.",
    "Clipping": "mechanism.clip. mechanism.sanitizer. mechanism.rounding. mechanism.schedule.",
    "Noise": "mechanism.noise.",
    "Sampling": "mechanism.samplers.",
    "DP-PCA and looks at columns": "mechanism.mean. mechanism.pca. mechanism.columns.",
    "Accountants": "privacy.moments. privacy.conversion. privacy.composition. privacy. "
    "audit.in_paper.",
    "Numerics": "host.",
}


def cards():
    """[(card, lines of its file)] of the whole package, in the order of the paper."""
    return sorted(package().values(), key=lambda pair: _place(pair[0].name))


def _place(name):
    """(number of the section, place in it) by the longest prefix; what no prefix names is
    numerics.
    """
    places = [
        (len(prefix), section, place)
        for section, prefixes in enumerate(SECTIONS.values())
        for place, prefix in enumerate(prefixes.split())
        if name.startswith(prefix)
    ]
    return max(places, default=(0, len(SECTIONS) - 1, 0))[1:]


def _section(card):
    return list(SECTIONS)[_place(card.name)[0]]


def _bases(card):
    """Names of the classes that a card's class is made of, itself first."""
    module = importlib.import_module(card.module.removesuffix(".py").replace("/", "."))
    return [card_of(base) for base in getattr(getattr(module, card.qualname, None), "__mro__", ())]


def shown(only=None):
    """[(public card, card with its labels, lines of its file)]: each public card itself, and the
    private ones that it inherits from.

    Those of all cards, or of the class or function named `only` and its bases. ParameterError if no
    card has the name.
    """
    found = cards()
    private = {card.name: (card, lines) for card, lines in found if card.private}
    if only is not None:
        wanted = named(only, [card for card, _ in found])
        found = [(card, lines) for card, lines in found if card.name in wanted]
    return [
        (public, card, text)
        for public, lines in found
        if not public.private
        for card, text in [
            (public, lines),
            *(private[base] for base in _bases(public) if base in private),
        ]
    ]


def audit(only=None, backend=None, on_row=None):
    """A row for each label of `shown(only)`; on_row(row) is called with each as soon as its card is
    measured.
    """
    registry, rows = checks.load(), []
    outcome = cache(partial(checks.run, backend=backend))
    for public, card, lines in shown(only):
        found = {
            label: [
                outcome(check)
                for check in registry.get((card.name, label), ())
                if card is public or check.subject in ("", public.name)
            ]
            for label in card.labels
        }
        for label, outcomes in found.items():
            row = _row(public.name, card, lines, label, outcomes)
            row["section"] = _section(public)
            row["of"] = "" if card is public else card.qualname
            if not outcomes:
                row["faults"].append(f"[{label}] has no check that measures it")
                row["passed"] = False
            if not row["passed"]:
                row["suspect"] = _suspect(label, found)
            rows.append(row)
            if on_row:
                on_row(row)
    return rows


def _row(name, card, lines, label, outcomes):
    """One label of a card as JSON, with everything an auditor asks of it, the measurement nearest
    to its limit first.

    name: of the public card that shows it. The section and the private class that it is inherited
    from are those of one's own layers; `audit` puts in the library's.
    """
    outcomes = sorted(outcomes, key=Outcome.nearness, reverse=True)
    faults = [fault for fault in card.faults() if f"[{label}]" in fault]
    others = "see " + ", ".join(f"[{label}]" for label in card.sources) + " of the card"
    return {
        "section": OWN,
        "card": name,
        "path": card.module,
        "of": "",
        "label": label,
        "equation": card.labels[label],
        "in_words": checks.WORDS.get((card.name, label), ""),
        "heading": card.headings[label],
        "source": card.sources.get(label) or card.sources.get("") or others,
        "faults": faults,
        "code": [
            {"path": card.module, "line": first, "text": one_line(lines[first - 1 : last])}
            for first, last in card.code_lines.get(label, ())
        ],
        "measured": [found.to_json() for found in outcomes],
        "suspect": "",
        "passed": not faults and all(found.passed for found in outcomes),
    }


def _suspect(label, measured):
    """Which of an equation, its code and those of the output is wrong; "" if that cannot be told.

    measured: {label: outcomes} of its card.
    """

    def passed(method, labels):
        found = [each for other in labels for each in measured[other]]
        return [each.passed for each in found if each.check.method == method]

    failed = {each.check.method for each in measured[label] if not each.passed}
    if failed == {checks.COMPILED}:
        return "the compiled kernel and its definition differ"
    gradients = [each for each in measured if each[0] in "BP"]
    about = gradients if label[0] == "F" else [label]
    derived, stepped = (passed(method, about) for method in (checks.DERIVED, checks.STEPPED))
    if not derived or not failed & {checks.PRINTED, checks.DERIVED, checks.STEPPED}:
        return ""
    derived, stepped = all(derived), all(stepped)
    own = checks.PRINTED in failed
    if derived and stepped and label[0] == "F" and all(passed(checks.PRINTED, gradients)):
        return "suspect: this equation or its code; a constant has no derivative"
    if derived and stepped:
        return "suspect: the equations together or the code together"
    if not derived and not stepped:
        return "suspect: the output's equation and code together, or this gradient's"
    if own and derived:
        return "suspect: the code, because the printed gradients are those of the printed output"
    if own:
        return "suspect: this equation, because its code is right by its differences"
    what = "code" if derived else "equation"
    return f"suspect: the {what} of the output, because this equation and its code agree"


def one_line(lines):
    """A statement's lines as one, without the spaces and commas that breaking the statement
    added.
    """
    text = " ".join(line.strip() for line in lines)
    return re.sub(r"(?<=[(\[{]) |,? (?=[)\]}])", "", text)


def _words(text):
    """The words and numbers of a text in small letters; an equation is "eq", however it is
    written.
    """
    found = re.findall(r"[a-z]+|\d+(?:\.\d+)*", text.lower())
    return [{"eqs": "eq", "equation": "eq", "equations": "eq"}.get(word, word) for word in found]


def _mentions(source, asked):
    """True if a source has these words one after the other; "theorem 2" is in "Theorem 2.1"."""
    held = _words(source)
    return any(
        all(word == want or word.startswith(f"{want}.") for word, want in zip(held[i:], asked))
        for i in range(len(held) - len(asked) + 1)
    )


def named(only, cards):
    """Names of the cards called `only` ("Dense" or "nn.dense.Dense"), and of those of their base
    classes; else of the cards whose sources name this part of the paper ("Theorem 2").
    """
    called, asked, wanted = only.lower(), _words(only), set()
    public = {card.qualname.lower(): card.qualname for card in cards if not card.private}
    for card in cards:
        if called in (card.qualname.lower(), card.name.lower()) and not card.private:
            wanted |= {card.name, *_bases(card)}
    if not wanted and len(asked) > 1 and asked[-1][0].isdigit():
        wanted = {
            card.name
            for card in cards
            if any("Abadi" in each and _mentions(each, asked) for each in card.sources.values())
        }
    if not wanted:
        near = [name for name in public if called in name]
        near = [
            *near,
            *(each for each in get_close_matches(called, public, n=5) if each not in near),
        ]
        known = f"near it: {', '.join(public[name] for name in near)}; " if near else ""
        raise ParameterError(f"no card is named {only}; {known}minidp audit --list prints all")
    return wanted


def listing():
    """Lines with the names that --card takes, under their sections, and where each stands."""
    public = [card for card, _ in cards() if not card.private]
    for section, found in groupby(public, key=_section):
        yield f"\n{section}"
        for card in found:
            where = f"{card.module}:{card.line}"
            yield f"  {card.qualname:26} {where}  {' '.join(card.labels)}"


def need_extra():
    """Raises ParameterError if what the extra `audit` installs is missing."""
    if not all(map(importlib.util.find_spec, ("mpmath", "lark"))):
        raise ParameterError("the audit needs mpmath and lark: pip install 'minidp[audit]'")


def measure(layer=None, device="auto", on_row=None, reports=(), run=None):
    """What a page and a JSON file hold: rows of all cards or of one, reports of one's own layers
    before them, a run.
    """
    need_extra()
    backend, started = Backend.pick(device), time.perf_counter()
    prepare(backend.xp)
    own = [row for n, each in enumerate(reports, 1) for row in _own(each, n)]
    rows = own + audit(layer, backend, on_row)
    return {
        "device": backend.name,
        "seconds": time.perf_counter() - started,
        "made": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "versions": {
            "minidp": sys.modules["minidp"].__version__,
            "Python": platform.python_version(),
            "NumPy": numpy.__version__,
        },
        **counted(rows),
        "failed": sum(not row["passed"] for row in rows),
        "rows": rows,
        "run": run,
        "algorithm": as_it_runs(rows[len(own) :], run and run["result"]) if layer is None else [],
    }


def counted(rows):
    """How many cards and labels are in rows; those that several classes inherit count once, as in
    tools.check_cards.
    """
    labels = {(row["of"] or row["card"], row["label"]) for row in rows}
    return {"cards": len({card for card, _ in labels}), "labels": len(labels)}


def page(file, *reports, layer=None, device="auto"):
    """Write the page of `minidp audit --html`, with reports of check_layer and check_loss before
    the library's equations.

    layer: the one card of the library to measure, with its bases; None for all, which takes a
    quarter of a minute. Returns True if everything passed. Raises ParameterError without the extra
    `audit`, or if no card has the name.
    """
    data = measure(layer, device, reports=reports)
    _write(file, data)
    return not data["failed"]


def _write(file, data):
    with atomic_write(file) as out:
        out.write(formulas_page(data))


def _own(report, number):
    """The rows of one's own layer or loss: the tests, and then the labels of its card if it has
    one.

    A gradient's error stands at its label as in the library: B1 of the input, P1, P2, ... of the
    parameters in their order.
    """
    cls = report.subject
    try:
        held, lines = card_of_class(cls)
    except (OSError, TypeError, SyntaxError):  # typed at a prompt: nobody has its lines
        held, lines = None, []
    labels = {"tests": (cls.__doc__ or "").partition("\n")[0]}
    sources = {"": "the library's tests: minidp.audit.check_layer, check_loss"}
    tests = Card("", cls.__name__, 0, labels, sources, {"tests": ""}, {"tests": ()})
    measured = {
        label: [Outcome(Check(what, "central differences", THOROUGH.tolerance, None), error, "")]
        for label, (what, error) in report.errors.items()
    }
    measured["tests"] = [
        *chain(*measured.values()),
        *(
            Outcome(Check(test, "", 0.0, None), math.inf if problem else 0.0, problem)
            for test, problem in (*report.rows, ("everything is decided", report.undecided))
        ),
    ]
    name = f"own{number}.{cls.__name__.strip('<>')}"
    return [
        _row(name, card, lines, label, measured.get(label, ()))
        for card in filter(None, (tests, held))
        for label in card.labels
    ]


def main(layer=None, device="auto", json_file=None, html_file=None, run=None, everything=False):
    """Print the audit, write the files asked for, and return the exit status. run: what
    `html.run_section` takes.

    everything: print each label; by default of a whole audit only those that fail, under a line
    for each section.
    """
    screen = Screen(everything or layer is not None)
    data = measure(layer, device, screen.show, run=run)
    screen.end()
    if json_file:
        write_json(json_file, data)
    if html_file:
        _write(html_file, data)
    print(
        f"\ncards {data['cards']}, labels {data['labels']}, "
        f"measurements {sum(len(row['measured']) for row in data['rows'])}, {data['failed']} "
        f"failed, on {data['device']}, {data['seconds']:.0f} s"
    )
    print(*summary(data["rows"]), sep="\n", end="\n" if data["failed"] else "")
    return 1 if data["failed"] else 0
