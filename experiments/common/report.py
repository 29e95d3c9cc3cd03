"""What a run leaves behind and how it says what went wrong: JSON results, verdicts, one-line errors."""
import dataclasses
import enum
import json
import math
import os
import platform
import subprocess
import sys
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from minidp import blas, threads
from minidp.errors import MinidpError
from minidp.files import atomic_write

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = ROOT / "experiments" / "expected.json"


def jsonable(value, where="result"):
    """The value in the types of JSON: infinity is the string "inf", None is null, arrays are lists.

    Raises ValueError for NaN, which no reader of a result could tell from a mistake, and TypeError for what
    has no such form; both name the place.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, enum.Enum):
        return jsonable(value.value, where)
    if hasattr(value, "tolist"):  # a NumPy scalar or array
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [jsonable(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ValueError(f"{where} is NaN")
        return "inf" if value > 0 else "-inf"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{where}: no JSON for {type(value).__name__}")


def write_json(path, value):
    """Write the value as JSON, whole or not at all. Raises ValueError for NaN, OSError for a bad path."""
    text = json.dumps(jsonable(value, Path(path).stem), indent=2, allow_nan=False)
    with atomic_write(path) as file:
        file.write(text + "\n")


def versions():
    """Python, the libraries, the kernels and the threads whose rounding or random numbers a result depends on."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "minidp"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # a checkout that was not installed
            found[name] = getattr(sys.modules.get(name), "__version__", None)
    if "cupy" in sys.modules:
        found["cupy"] = sys.modules["cupy"].__version__
    return {**found, "openblas_kernels": blas.kernels(), "threads": threads.limit()}


def git_commit(root=ROOT):
    """The commit of the checkout, with "-dirty" where tracked files differ from it; None if there is none."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    ceiling = {"GIT_CEILING_DIRECTORIES": str(Path(root).resolve().parent)}  # not a repository around the checkout
    try:
        done = subprocess.run(command, cwd=root, env={**os.environ, **ceiling}, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


class Verdict(NamedTuple):
    """One figure beside the one it should reproduce."""

    quantity: str
    value: float
    expected: float
    tolerance: float
    source: str
    side: str = ""

    @property
    def agrees(self):
        off = self.value - self.expected
        return {"at least": -off, "at most": off, "": abs(off)}[self.side] <= self.tolerance

    @property
    def word(self):
        """"agrees", or where the value lies instead."""
        return "agrees" if self.agrees else "above" if self.value > self.expected else "below"

    def __str__(self):
        side = f"{self.side} " if self.side else ""
        return (f"{self.quantity} {self.value:.4g}, expected {side}{self.expected:.4g} +- {self.tolerance:.2g} "
                f"({self.source}): {self.word}")


def compare(result, expected=EXPECTED, print=print):
    """Print what a result says beside what expected.json says, and return the list of Verdict.

    The file maps an experiment's name to entries {"quantity", "value", "tolerance", "source", "when"}: the
    quantity is a dotted path into the result ("epsilon.moments.upper"), and the entry counts only for results
    that hold each value of "when" at its own dotted path. With a "side", "at least" or "at most", values on that
    side of the expected one agree too.
    """
    entries = json.loads(Path(expected).read_text(encoding="utf-8")).get(result["experiment"], [])
    verdicts = [found for entry in entries if (found := verdict(result, entry)) is not None]
    for found in verdicts:
        print(found)
    return verdicts


def verdict(result, entry):
    """The Verdict on a result by one entry of expected.json, None where it does not apply."""
    value = _at(result, entry["quantity"])
    if value is None or any(_at(result, path) != want for path, want in entry.get("when", {}).items()):
        return None
    return Verdict(entry["quantity"], float(value), entry["value"], entry["tolerance"], entry["source"],
                   entry.get("side", ""))


def _at(result, path):
    for key in path.split("."):
        if not isinstance(result, dict) or key not in result:
            return None
        result = result[key]
    return result


@contextmanager
def user_errors():
    """For a command line: what a user did wrong is one line on stderr and exit 2, without a traceback.

    Covers minidp's errors and the operating system's (a path that cannot be read or written, a full disk);
    anything else is a fault of the program and keeps its traceback. An interrupt prints one line that says what
    was saved, which the block puts into `saved` of the object it is given, and exits with 130.
    """
    note = SimpleNamespace(saved="what was charged is in the run's folder, if it was made: go on with --resume")
    try:
        yield note
    except (MinidpError, OSError, MemoryError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}"
        elif isinstance(error, OSError) and error.strerror:
            text = error.strerror
        else:
            text = str(error)
        print(f"error: {' '.join(text.split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"\ninterrupted; {note.saved}", file=sys.stderr)
        sys.exit(130)
