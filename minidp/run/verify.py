"""Whether the files of a run agree with each other, with its ledger, and with what was written."""

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError, MinidpError
from ..privacy import Ledger
from ..privacy.catalogue import ACCOUNTANTS, all_bounds
from ..util.files import StrPath, read_json
from ..util.text import upper_text
from .folder import CONFIG, FILES, KEY, LEDGER, MANIFEST, RESULT, fingerprint
from .questions import Files, Finding, printable

# what reading and computing raise for damaged files
UNREADABLE = (
    MinidpError,
    OSError,
    csv.Error,
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    RecursionError,
)
UNFINISHED = "Is the run finished?"


class Report(NamedTuple):
    """findings; accountants: {name: (Bound, kind, note)}; result: what result.json holds, or {}."""

    findings: list[Finding]
    accountants: dict[str, Any]
    result: dict[str, Any]

    @property
    def failed(self) -> list[Finding]:
        """The findings that did not pass."""
        return [finding for finding in self.findings if not finding.passed]


def verify(folder: StrPath) -> Report:
    """A Report on a run's folder: every file compared with manifest.json, every figure computed
    again.

    Of a run that is not finished, the one finding says what is spent so far. It can see what the
    program wrote down, not what it did. Raises DataError, one line, where the folder holds no run,
    or files that cannot be read although they are as they were written.
    """
    folder, sealed = Path(folder), []
    if not (folder / LEDGER).is_file():
        raise DataError(f"{folder / LEDGER}: no such file; name the folder of a run")
    if not (folder / RESULT).is_file() and not (folder / MANIFEST).is_file():
        return Report(
            [Finding(UNFINISHED, _so_far(folder, Ledger.load(folder / LEDGER)), False)], {}, {}
        )
    try:
        sealed.append(_seal(folder))
        run: Any = Files(folder)
        return Report(
            sealed + run.findings(),
            all_bounds(run.ledger, ACCOUNTANTS, delta=run.result["delta"]),
            run.result,
        )
    except UNREADABLE as error:
        why = printable(f"{type(error).__name__}: {str(error)[:200]}")
        text = f"{folder}: not the files of a run of this program ({why})"
        if all(finding.passed for finding in sealed):
            raise DataError(text) from error
        return Report([*sealed, Finding("Can the files be read?", text, False)], {}, {})


def _so_far(folder, ledger):
    """What is charged so far to a run that was interrupted, in one sentence; at the delta of its
    config.json.
    """
    try:
        config = read_json(folder / CONFIG)
        delta = config["settings"]["delta"]
        found = all_bounds(ledger, ("moments", "loss_distribution"), delta=delta)
    except (MinidpError, LookupError, TypeError, ArithmeticError) as error:
        return (
            f"not finished (no {RESULT}), and {CONFIG} gives no delta to say what is spent "
            f"({error})"
        )
    spent = ", ".join(f"{upper_text(bound.upper)} by {name}" for name, (bound, *_) in found.items())
    return (
        f"not finished (no {RESULT}): charged so far at delta {delta:g}, for lots that ran or may "
        f"have: epsilon {spent}"
    )


def _seal(folder):
    """Whether every file holds what was written."""
    question, path = "Is every file as it was written?", folder / MANIFEST
    if not path.is_file():
        return Finding(question, f"{MANIFEST} is missing", False)
    text = path.read_text(encoding="utf-8")
    manifest, changed = json.loads(text), []
    if not (isinstance(manifest, dict) and isinstance(manifest.get("files"), dict)):
        return Finding(question, f"{MANIFEST} was changed", False)
    key = (folder / KEY).read_bytes().strip() if (folder / KEY).is_file() else None
    for name in FILES:
        digests = manifest["files"].get(name, {})
        content = (folder / name).read_bytes() if (folder / name).is_file() else None
        if content is None:
            changed.append(f"{name} is missing")
        elif "hmac_sha256" in digests and key is None:
            changed.append(f"{name} cannot be checked without {KEY}")
        elif digests != fingerprint(content, key if "hmac_sha256" in digests else None):
            changed.append(f"{name} was changed")
    if text != json.dumps(manifest, indent=2) + "\n" or set(manifest["files"]) != set(FILES):
        changed.append(f"{MANIFEST} was changed")
    return Finding(question, "; ".join(changed) or f"{len(FILES)} files", not changed)
