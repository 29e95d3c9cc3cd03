"""The audit: every equation of every card, its source, its line of code, and the error measured
now.
"""

import importlib.util
import platform
import re
import sys
import time
from difflib import get_close_matches
from functools import cache, partial
from itertools import groupby

import numpy

from ..backend import Backend
from ..compiled import prepare
from ..errors import ParameterError
from ..util.atomic import atomic_write
from ..util.files import write_json
from . import checks
from .algorithm import as_it_runs
from .card import package
from .checks import Outcome
from .html import formulas_page
from .names import card_of
from .printing import Screen
from .start import summary

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
    """(number of the section, place in it) by the longest prefix; a card without a prefix is in
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
    """[(card, lines of its file)] of all cards, or of the class or function named `only` and its
    bases. Raises ParameterError if no card has the name.
    """
    found = cards()
    if only is None:
        return found
    wanted = named(only, [card for card, _ in found])
    return [(card, lines) for card, lines in found if card.name in wanted]


def audit(only=None, backend=None, on_row=None):
    """A row for each label of `shown(only)`; on_row(row) is called once its card is measured."""
    registry, rows = checks.load(), []
    outcome = cache(partial(checks.run, backend=backend))
    for card, lines in shown(only):
        found = {
            label: [outcome(check) for check in registry.get((card.name, label), ())]
            for label in card.labels
        }
        for label in found:
            rows.append(_row(card, lines, label, found))
            if on_row:
                on_row(rows[-1])
    return rows


def _row(card, lines, label, measured):
    """One label of a card as JSON, with all that an auditor needs; the measurement nearest to its
    limit comes first.

    measured: {label: outcomes} of the card.
    """
    outcomes = sorted(measured[label], key=Outcome.nearness, reverse=True)
    faults = [fault for fault in card.faults() if f"[{label}]" in fault]
    if not outcomes:
        faults.append(f"[{label}] has no check that measures it")
    others = "see " + ", ".join(f"[{label}]" for label in card.sources) + " of the card"
    passed = not faults and all(found.passed for found in outcomes)
    return {
        "section": _section(card),
        "card": card.name,
        "path": card.module,
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
        "suspect": "" if passed else _suspect(label, measured),
        "passed": passed,
    }


def _suspect(label, measured):
    """Which of an equation, its code and those of the output is wrong; "" if that cannot be
    decided.

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
    """A statement's lines as one, without the spaces and commas of its line breaks."""
    text = " ".join(line.strip() for line in lines)
    return re.sub(r"(?<=[(\[{]) |,? (?=[)\]}])", "", text)


def _words(text):
    """The words and numbers of a text in lower case; an equation is "eq" in every spelling."""
    found = re.findall(r"[a-z]+|\d+(?:\.\d+)*", text.lower())
    return [{"eqs": "eq", "equation": "eq", "equations": "eq"}.get(word, word) for word in found]


def _mentions(source, asked):
    """True if a source has these words in order; "theorem 2" is in "Theorem 2.1"."""
    held = _words(source)
    return any(
        all(word == want or word.startswith(f"{want}.") for word, want in zip(held[i:], asked))
        for i in range(len(held) - len(asked) + 1)
    )


def named(only, cards):
    """Names of the cards called `only` ("Dense" or "nn.dense.Dense") and of their base classes;
    otherwise of the cards whose sources name this part of the paper ("Theorem 2").
    """
    called, asked, wanted = only.lower(), _words(only), set()
    known = {card.qualname.lower(): card.qualname for card in cards}
    for card in cards:
        if called in (card.qualname.lower(), card.name.lower()):
            wanted |= {card.name, *_bases(card)}
    if not wanted and len(asked) > 1 and asked[-1][0].isdigit():
        wanted = {
            card.name
            for card in cards
            if any("Abadi" in each and _mentions(each, asked) for each in card.sources.values())
        }
    if not wanted:
        held = [name for name in known if called in name]
        near = ", ".join(map(known.get, held or get_close_matches(called, known, 5)))
        near = f"near it: {near}; " if near else ""
        raise ParameterError(f"no card is named {only}; {near}minidp audit --list prints all")
    return wanted


def listing():
    """Lines with the names that --card takes, by section, and the place of each."""
    for section, found in groupby((card for card, _ in cards()), key=_section):
        yield f"\n{section}"
        for card in found:
            where = f"{card.module}:{card.line}"
            yield f"  {card.qualname:26} {where}  {' '.join(card.labels)}"


def need_extra():
    """Raise ParameterError if a package of the extra `audit` is missing."""
    if not all(map(importlib.util.find_spec, ("mpmath", "lark"))):
        raise ParameterError("the audit needs mpmath and lark: pip install 'minidp[audit]'")


def measure(layer=None, device="auto", on_row=None, run=None):
    """The content of a page and a JSON file: rows of all cards or of one, and a run."""
    need_extra()
    backend, started = Backend.pick(device), time.perf_counter()
    prepare(backend.xp)
    rows = audit(layer, backend, on_row)
    return {
        "device": backend.name,
        "seconds": time.perf_counter() - started,
        "made": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "versions": {
            "minidp": sys.modules["minidp"].__version__,
            "Python": platform.python_version(),
            "NumPy": numpy.__version__,
        },
        "cards": len({row["card"] for row in rows}),
        "labels": len(rows),
        "failed": sum(not row["passed"] for row in rows),
        "rows": rows,
        "run": run,
        "algorithm": as_it_runs(rows, run and run["result"]) if layer is None else [],
    }


def main(layer=None, device="auto", json_file=None, html_file=None, run=None, everything=False):
    """Print the audit, write the requested files, and return the exit status. run: argument of
    `html.run_section`.

    everything: print each label; by default a whole audit prints only failures, under a line for
    each section.
    """
    screen = Screen(everything or layer is not None)
    data = measure(layer, device, screen.show, run=run)
    screen.end()
    if json_file:
        write_json(json_file, data)
    if html_file:
        with atomic_write(html_file) as out:
            out.write(formulas_page(data))
    print(
        f"\ncards {data['cards']}, labels {data['labels']}, "
        f"measurements {sum(len(row['measured']) for row in data['rows'])}, {data['failed']} "
        f"failed, on {data['device']}, {data['seconds']:.0f} s"
    )
    print(*summary(data["rows"]), sep="\n", end="\n" if data["failed"] else "")
    return 1 if data["failed"] else 0
