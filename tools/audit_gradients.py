#!/usr/bin/env python3
"""Every equation of every card: its source, its line of code, and the error measured now.

    python tools/audit_gradients.py                        # all of them, about a minute
    python tools/audit_gradients.py --layer Conv2D         # one class
    python tools/audit_gradients.py --html audit.html      # one page: formulas beside the code that bears them

Exit status 1 if a label has no line of code or no measuring check, or if an error exceeds its tolerance;
2 for what a user did wrong.
"""
import argparse
import ast
import importlib
import importlib.util
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for folder in (ROOT, ROOT / "experiments"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))  # the cases of the tests, and the errors of the command lines


from minidp.audit.card import read_module
from minidp.backend import Backend
from minidp.cli import user_errors
from minidp.errors import ParameterError
from minidp.files import write_json
from tools import check_cards


@dataclass(frozen=True)
class Row:
    """One label of one card, with everything an auditor asks of it."""

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


def collect():
    """Import and register every check; returns the checks package."""
    from minidp import train
    from minidp.audit import checks
    from minidp.audit.checks import (  # noqa: F401 (importing registers)
        curves, gradients, layers, losses, mechanism, moments, projection, random_features, scattering, training)

    cases = importlib.import_module("tests.support.cases")
    if not any(card.startswith("train.") for card, _ in checks.REGISTRY):
        layers.register(cases.LAYERS, cases.LOSSES)
        training.register(train)
    return checks


def audit(root=ROOT, only=None, backend=None, on_row=None):
    """The Rows of all cards below root/minidp, or of those whose class or function is named `only`."""
    checks = collect()
    found = [(path, card) for path in sorted((root / "minidp").rglob("*.py"))
             for card in read_module(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())[0]]
    if only is not None:
        found = [(path, card) for path, card in found if card.qualname.lower() == only.lower()]
        if not found:
            raise ParameterError(f"no card is named {only}; tools/check_cards.py lists what has one")
    done, rows = {}, []
    for path, card in found:
        lines = path.read_text(encoding="utf-8").splitlines()
        faults = list(check_cards._faults(card))
        name = _name(card)
        for label, equation in card.labels.items():
            registered = checks.REGISTRY.get((name, label), [])
            for check in registered:
                if id(check) not in done:
                    done[id(check)] = checks.run(check, backend)
            missing = [fault for fault in faults if f"[{label}]" in fault]
            missing += [] if registered else ["no check measures it"]
            rows.append(Row(name, label, equation, card.sources.get(label) or _other_source(card),
                            tuple((card.module, n, lines[n - 1].strip()) for n in card.code_lines.get(label, ())),
                            tuple(done[id(check)] for check in registered),
                            tuple(missing)))
            if on_row:
                on_row(rows[-1])
    return rows


def _name(card):
    return card.module.removeprefix("minidp/").removesuffix(".py").replace("/", ".") + "." + card.qualname


def _other_source(card):
    """Where a label names no source of its own, those of its card."""
    return "as the card: " + "; ".join(f"[{label}] {text}" if label else text for label, text in card.sources.items())


def unmeasured_public(root=ROOT):
    """Public names that check_cards asks a card of and that have none: the audit would not see them."""
    sources = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
               for path in sorted((root / "minidp").rglob("*.py"))}
    have = {(card.module, card.qualname) for module, text in sources.items() for card in read_module(text, module)[0]}
    accountants = check_cards._below("Accountant", [node for text in sources.values() for node in ast.parse(text).body
                                                    if isinstance(node, ast.ClassDef)])
    faults = list(check_cards._missing_cards(sources, have))
    return faults, len([name for name in accountants if not name.startswith("_")])


def line_of(row):
    """One row of the table."""
    worst = max(row.outcomes, key=lambda outcome: (not outcome.passed, outcome.error / (outcome.check.tolerance or 1e-300)),
                default=None)
    where = ", ".join(f"{path}:{number}" for path, number, _ in row.code[:1]) or "no line of code"
    if row.faults:
        return f"FAIL {row.card} [{row.label}] {'; '.join(row.faults)}"
    note = worst.problem or f"{worst.error:.1e} (at most {worst.check.tolerance:.0e}) {worst.check.method}"
    return (f"{'ok  ' if row.passed else 'FAIL'} {row.card} [{row.label}] {len(row.outcomes)} checks, nearest to its "
            f"limit: {note}; {where}")


def as_json(rows, seconds, backend):
    """What --json writes."""
    return {
        "device": backend.name, "seconds": seconds, "labels": len(rows), "failed": sum(not row.passed for row in rows),
        "rows": [{
            "card": row.card, "label": row.label, "equation": row.equation, "source": row.source,
            "code": [{"path": path, "line": number, "text": text} for path, number, text in row.code],
            "faults": row.faults, "passed": row.passed,
            "measured": [{"check": outcome.check.name, "method": outcome.check.method, "error": outcome.error,
                          "tolerance": outcome.check.tolerance, "problem": outcome.problem}
                         for outcome in row.outcomes]} for row in rows]}


def main(argv=None):
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layer", help="only the class or function of this name")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "gpu"), help="for what computes on arrays")
    parser.add_argument("--json", metavar="FILE", help="write the table as JSON")
    parser.add_argument("--html", metavar="FILE", help="write one page with formulas beside code")
    options = parser.parse_args(argv)
    with user_errors():
        if importlib.util.find_spec("mpmath") is None:
            raise ParameterError("the audit compares with mpmath; install it with pip install '.[audit]'")
        backend, started = Backend.pick(options.device), time.perf_counter()
        rows = audit(only=options.layer, backend=backend, on_row=lambda row: print(line_of(row), flush=True))
        seconds = time.perf_counter() - started
        if options.json:
            write_json(options.json, as_json(rows, seconds, backend))
        if options.html:
            from minidp.audit.html import formulas_page
            from minidp.files import atomic_write
            with atomic_write(options.html) as file:
                file.write(formulas_page(as_json(rows, seconds, backend)))
        return _summary(rows, seconds, backend, options.layer)


def _summary(rows, seconds, backend, only):
    failed = sum(not row.passed for row in rows)
    uncarded, accountants = unmeasured_public() if only is None else ([], 0)
    for fault in uncarded:
        print(f"FAIL {fault}")
    measured = sum(len(row.outcomes) for row in rows)
    kinds = {}
    for row in rows:
        kinds.setdefault(row.card.partition(".")[0], set()).add(row.card)
    print(f"{len({row.card for row in rows})} cards ("
          + ", ".join(f"{len(cards)} {kind}" for kind, cards in sorted(kinds.items()))
          + (f"; {accountants} accountants" if accountants else "")
          + f"), {len(rows)} labels, {measured} measurements, {failed + len(uncarded)} failed, on {backend.name}, "
          f"{seconds:.0f} s")
    return 1 if failed or uncarded else 0


if __name__ == "__main__":
    sys.exit(main())
