"""Whether a finished run's files say what its ledger says."""
import hashlib
import json
import math
from pathlib import Path

from ..errors import DataError, MinidpError
from .catalogue import ACCOUNTANTS, all_bounds
from .ledger import Ledger

SO_FAR = ("moments", "loss_distribution")
TOLERANCE = 1e-6        # relative: other processors round a little differently


def differences(run):
    """A list of sentences, one for each thing that does not agree; empty where all does.

    Every epsilon is computed again from ledger.json and compared with result.json and with the table in
    privacy.md, and both must carry the SHA-256 of the canonical ledger. Of a run that is not finished, the one
    sentence says what is spent so far. That catches accidents and single edits,
    not a forger who edits all three files. DataError where a file is missing or not readable as what it is.
    """
    run = Path(run)
    found = []
    try:
        ledger = Ledger.load(run / "ledger.json")
    except DataError as error:
        if not (run / "ledger.json").exists():
            raise
        return [str(error)]
    if not (run / "result.json").exists():
        return [unfinished(run, ledger)]
    result, statement = _read_json(run / "result.json"), _read_text(run / "privacy.md")
    digest = ledger.sha256()
    if result.get("ledger_sha256") != digest:
        found.append(f"result.json: ledger_sha256 is {result.get('ledger_sha256')}, the ledger's is {digest}")
    if digest not in statement:
        found.append(f"privacy.md does not hold the ledger's SHA-256 {digest}")
    if result.get("relation") != ledger.relation.value:
        found.append(f"result.json: relation is {result.get('relation')}, the ledger's is {ledger.relation.value}")
    digest = hashlib.sha256(statement.encode()).hexdigest()
    if result.get("statement_sha256", digest) != digest:
        found.append("privacy.md is not the statement that was written with result.json")
    steps = f"| {result.get('steps')}, charged {result.get('steps_charged')} |"
    if "steps (lots)" in statement and steps not in statement:
        found.append(f"privacy.md: expected the steps of result.json, {steps}")
    claimed = result.get("epsilon")
    if not isinstance(claimed, dict) or not claimed:
        return found + ["result.json holds no epsilon"]
    unknown = [name for name in claimed if name not in ACCOUNTANTS]
    found += [f"result.json: no accountant is named {name}" for name in unknown]
    names = [name for name in claimed if name not in unknown]
    try:
        truth = all_bounds(ledger, names, delta=result.get("delta"))
    except MinidpError as error:
        return found + [f"result.json: {error}"]
    for name in names:
        found += _compare_one(name, truth[name][0].to_json(), claimed[name], statement)
    return found


def unfinished(run, ledger):
    """What is charged so far to a run that was interrupted, in one sentence; at the delta of its config.json."""
    try:
        delta = _read_json(run / "config.json")["delta"]
        found = all_bounds(ledger, SO_FAR, delta=delta)
    except (MinidpError, KeyError) as error:
        return f"not finished (no result.json), and config.json gives no delta to say what is spent ({error})"
    spent = ", ".join(f"{_printed(bound.to_json()['upper'])} by {name}" for name, (bound, *_) in found.items())
    return f"not finished (no result.json): charged so far at delta {delta:g}, for lots that ran or may have: epsilon {spent}"


def _compare_one(name, truth, claimed, statement):
    found = []
    for side, value in truth.items():
        given = claimed.get(side) if isinstance(claimed, dict) else None
        if not _same(value, given):
            found.append(f"result.json: {name} {side} is {given}, the ledger gives {value}")
    wanted = [_printed(value) for value in truth.values()]
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in statement.splitlines()
            if line.startswith("|")]
    rows = [row[1:4] for row in rows if row[0].split(" ")[0] == name]
    if rows != [wanted]:
        found.append(f"privacy.md: the row of {name} is {rows[0] if rows else 'missing'}, the ledger gives {wanted}")
    return found


def _same(value, given):
    if value is None or given is None or isinstance(value, str) or isinstance(given, (str, bool)):
        return value == given
    return isinstance(given, (int, float)) and math.isclose(value, given, rel_tol=TOLERANCE, abs_tol=1e-12)


def _printed(value):
    if value is None:
        return "unknown"
    return "infinite" if value == "inf" else f"{value:.4g}"


def _read_text(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


def _read_json(path):
    try:
        data = json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error})") from error
    if not isinstance(data, dict):
        raise DataError(f"{path}: expected an object")
    return data
