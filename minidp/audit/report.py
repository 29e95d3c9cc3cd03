"""The audit: every equation of every card, its source, its line of code, and the error measured now."""
import importlib.util
import math
import time
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ..backend import Backend
from ..errors import ParameterError
from ..files import atomic_write, write_json
from . import checks
from .card import read_module

PACKAGE = Path(__file__).parents[1]
SECTIONS = (  # in the order of the paper; within a section, cards in the order of their prefixes
    ("Layers and losses", ("nn.dense.", "nn.activation.", "nn.conv.", "nn.pool.", "nn.norm.", "nn.", "nn.loss.",
                           "nn.network.", "grads.")),
    ("Clipping and noise", ("mechanism.clip.", "mechanism.sanitizer.", "mechanism.noise.", "host.", "normal.",
                            "streams.")),
    ("Sampling and training", ("mechanism.sampling.", "mechanism.schedule.", "mechanism.plan.", "train.")),
    ("DP-PCA and private scaling", ("mechanism.pca.", "mechanism.scaling.", "mechanism.centring.")),
    ("Accountants", ("privacy.moments.", "privacy.conversion.", "privacy.composition.", "privacy.")),
    ("Features without training", ("data.",)), ("Others", ()),
)


@dataclass(frozen=True)
class Row:
    """One label of one card, with everything an auditor asks of it."""

    section: str
    card: str
    label: str
    equation: str
    source: str
    code: tuple      # (path, number, text) of the lines that bear it
    outcomes: tuple  # checks.Outcome of each measurement
    faults: tuple    # what is missing

    @property
    def passed(self):
        return not self.faults and all(outcome.passed for outcome in self.outcomes)

    def lines(self):
        """The row as text."""
        yield f"  {'ok  ' if self.passed else 'FAIL'} {self.card} [{self.label}]  {self.equation}"
        yield from (f"         {path}:{number}   {text}" for path, number, text in self.code)
        yield f"         source: {self.source}"
        if n := len(self.outcomes):
            worst = max(self.outcomes, key=lambda found: (not found.passed, found.error / (found.check.tolerance or 1e-300)))
            yield f"         {n} check{'s'[: n > 1]}, nearest to its limit: {worst}"
        yield from (f"         {fault}" for fault in self.faults)

    def to_json(self):
        return {"section": self.section, "card": self.card, "label": self.label, "equation": self.equation,
                "source": self.source, "faults": self.faults, "passed": self.passed,
                "code": [dict(zip(("path", "line", "text"), line)) for line in self.code],
                "measured": [{"check": found.check.name, "method": found.check.method,
                              "error": found.error if math.isfinite(found.error) else None,
                              "tolerance": found.check.tolerance, "problem": found.problem, "passed": found.passed}
                             for found in self.outcomes]}


def cards():
    """[(card, lines of its file)] of the whole package, in the order of the paper."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found += [(card, text.splitlines()) for card in read_module(text, path.relative_to(PACKAGE.parent).as_posix())[0]]
    return sorted(found, key=lambda pair: _place(pair[0].name))


def _place(name):
    """(number of the section, place in it) by the longest prefix; what no section names comes last."""
    return max(((len(prefix), section, place) for section, (_, prefixes) in enumerate(SECTIONS)
                for place, prefix in enumerate(prefixes) if name.startswith(prefix)), default=(0, len(SECTIONS) - 1, 0))[1:]


def audit(only=None, backend=None, on_row=None):
    """The Rows of all cards, or of the class or function named `only` and its base classes.

    on_row(row) is called with each as soon as it is measured. Raises ParameterError if no card has the name.
    """
    registry, found, measured, rows = checks.load(), cards(), {}, []
    wanted = None if only is None else named(only, [card for card, _ in found])
    for card, lines in found:
        if wanted is not None and card.name not in wanted:
            continue
        section = SECTIONS[_place(card.name)[0]][0]
        others = card.sources.get("") or "see " + ", ".join(f"[{label}]" for label in card.sources) + " of the card"
        for label, equation in card.labels.items():
            registered = registry.get((card.name, label), [])
            for check in registered:
                if check not in measured:
                    measured[check] = checks.run(check, backend)
            missing = [fault for fault in card.faults() if f"[{label}]" in fault]
            missing += [] if registered else [f"[{label}] has no check that measures it"]
            rows.append(Row(section, card.name, label, equation, card.sources.get(label) or others,
                            tuple((card.module, n, lines[n - 1].strip()) for n in card.code_lines.get(label, ())),
                            tuple(measured[check] for check in registered), tuple(missing)))
            if on_row:
                on_row(rows[-1])
    return rows


def named(only, cards):
    """Names of the cards called `only` ("Dense" or "nn.dense.Dense"), and of those of their base classes."""
    by_name, wanted = {card.qualname.lower(): card.qualname for card in cards}, set()
    for card in cards:
        if only.lower() in (card.qualname.lower(), card.name.lower()):
            module, wanted = card.name.removesuffix(f".{card.qualname}"), wanted | {card.name}
            held = getattr(importlib.import_module(f"minidp.{module}"), card.qualname, None)
            wanted |= {f"{base.__module__.removeprefix('minidp.')}.{base.__qualname__}"
                       for base in getattr(held, "__mro__", ())}
    if not wanted:
        near = [name for name in by_name if only.lower() in name]
        near += [name for name in get_close_matches(only.lower(), by_name, n=5) if name not in near]
        raise ParameterError(f"no card is named {only}; {'near it' if near else 'cards'}: "
                             + ", ".join(by_name[name] for name in near or sorted(by_name)))
    return wanted


def need_mpmath():
    """Raises ParameterError if it is missing: most checks compare with it."""
    if importlib.util.find_spec("mpmath") is None:
        raise ParameterError("the audit compares with mpmath: pip install 'minidp[audit]'")


def main(layer=None, device="auto", json_file=None, html_file=None):
    """Print the audit, write the files asked for, and return the exit status."""
    need_mpmath()
    backend, started, section = Backend.pick(device), time.perf_counter(), None

    def show(row):
        nonlocal section
        if row.section != section:
            section = row.section
            print(f"\n{section}")
        print("\n".join(row.lines()), flush=True)

    rows = audit(layer, backend, show)
    data = {"device": backend.name, "seconds": time.perf_counter() - started, "labels": len(rows),
            "failed": sum(not row.passed for row in rows), "rows": [row.to_json() for row in rows]}
    if json_file:
        write_json(json_file, data)
    if html_file:
        from .html import formulas_page
        with atomic_write(html_file) as file:
            file.write(formulas_page(data))
    print(f"\ncards {len({row.card for row in rows})}, labels {len(rows)}, measurements {sum(len(row.outcomes) for row in rows)}, "
          f"{data['failed']} failed, on {backend.name}, {data['seconds']:.0f} s")
    return 1 if data["failed"] else 0
