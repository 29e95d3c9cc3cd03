"""train, schema, predict: from a file of your own data to a private model, and from it to
predictions.
"""

import csv
import json
import math
import sys
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from shlex import quote

from ..data.draft import draft
from ..data.files import is_table, read_table
from ..data.tables import table_of
from ..errors import DataError, ParameterError
from ..fitting.fit import fit
from ..fitting.settings import Settings
from ..privacy.budget import Filter
from ..privacy.ledger import Ledger
from ..run import load_model
from ..run.folder import CONFIG, CURVES, MODEL, RESULT, STATEMENT
from ..run.options import REQUIRED, option
from ..run.program import program
from ..run.shared_ledger import sum_line
from ..run.summary import quote_line
from ..util.atomic import atomic_write
from ..util.files import jsonable
from ..util.notices import Steady
from ..util.validate import positive
from .output import check_new, force_option, json_option, show
from .reading import Files, classes_of, read_npy, read_npz

# keys of result.json
SHOWN = ("delta", "group", "steps", "arithmetic", "test_accuracy", "test_r2", "reproducible")


@dataclass(frozen=True, kw_only=True)
class TrainCommand(Settings, Files):
    """Flags of `minidp train`: the fields of `Settings`, the files, and the other arguments of
    `fit`.
    """

    examples = (
        "examples: %(prog)s data.npz --target-epsilon 1 --delta 1e-4 --scale unit-norm --hidden 64 "
        "--folder runs/mine\n          %(prog)s table.csv --label price --target-bounds 0,1e6 "
        "--target-epsilon 2 --folder runs/price\n          %(prog)s --x x.npy --y y.npy --bounds "
        "0,255 --classes cat,dog --target-epsilon 1 --folder runs/pets"
    )
    target_epsilon: float = option(
        REQUIRED,
        "the target: epsilon must not exceed it; inf trains without noise and clipping, for "
        "comparison, and is not private",
        metavar="EPSILON",
        also=("--epsilon",),
    )
    delta: float | None = option(
        None,
        "delta of (epsilon, delta)-DP (default: the power of ten at or below 1 / (10 N))",
    )
    folder: str = option(
        REQUIRED,
        "folder of the run; the same command resumes an interrupted run",
        metavar="FOLDER",
        also=("--out",),
    )
    ledger: str | None = option(
        None,
        "ledger file that all runs on the same data share; the run is charged to it first, and the "
        "sum is printed",
        metavar="FILE",
    )
    seed: int | None = option(
        None, "for tests only: never publish the result, because the noise can be recomputed"
    )
    quiet: bool = option(False, "print no progress bar, and only the last three lines")
    json: bool = json_option()

    def run(self):
        """Run the command."""
        if not self.folder:
            raise ParameterError("expected --folder FOLDER, got an empty name")
        folder, done = Path(self.folder), Path(self.folder, RESULT).exists()
        positive(epsilon=self.target_epsilon)
        try:
            model = self._fitted()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; run the same command again to resume the run in {folder}; "
                f"`{program()} verify {folder}` says what is spent so far"
                if (folder / CONFIG).exists()
                else "interrupted before anything was charged"
            ) from None
        if done:
            said = "this run had finished before; nothing was trained now"
            print(f"{folder}: {said}", file=Steady(sys.stderr))
        path, record = str(folder / MODEL), model.record
        new = "x.csv" if str(self.data).lower().endswith(".csv") else "x.npy"
        found = {
            "model": path,
            "quote": record.quoted,
            "epsilon": model.epsilon.bound.to_json(),
            **{key: jsonable(getattr(record, key)) for key in SHOWN},
        }
        lines = [
            quote_line(record),
            f"read:  {folder / STATEMENT} (picture: {folder / CURVES})",
            f"next:  {program()} predict {quote(path)} {new} --out y.csv",
        ]
        if self.ledger is not None and self.quiet:  # otherwise `fit` prints it
            budget = Filter(record.accountant, math.inf, record.delta)
            lines.insert(0, sum_line(self.ledger, Ledger.load(self.ledger), budget))
        show(self, found, lines)

    def _fitted(self):
        """The model that `fit` returns."""
        settings = Settings(**{each.name: getattr(self, each.name) for each in fields(Settings)})
        x, y, test = self.read(settings)
        settings = replace(settings, label=None, source=Path(self.data or self.x).name)
        if self.classes is not None:
            kind = "?" if y is None else y.dtype.kind
            settings = replace(settings, classes=classes_of(self.classes, kind))
        return fit(
            x,
            y,
            epsilon=self.target_epsilon,
            delta=self.delta,
            folder=self.folder,
            ledger=self.ledger,
            test=test,
            seed=self.seed,
            quiet=self.quiet or self.json,
            settings=settings,
        )


@dataclass(frozen=True, kw_only=True)
class SchemaCommand:
    """Flags of `minidp schema`."""

    examples = "example: %(prog)s table.csv --label sick --out schema.json"
    table: str = option(
        REQUIRED, ".csv file with column names in its first line", metavar="FILE", positional=True
    )
    label: str = option(REQUIRED, "column to predict", metavar="COLUMN")
    out: str = option(REQUIRED, "JSON file to write", metavar="FILE")
    force: bool = force_option()

    def run(self):
        """Run the command."""
        check_new(self, self.out)
        table = table_of(self.table)
        found, lines = draft(table, self.label)
        with atomic_write(self.out) as file:
            file.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        print("\n".join(lines))
        print(
            f"wrote {self.out}: {len(found)} columns. Types and categories were read from the rows "
            "and are not protected: correct each entry by public knowledge, fill in every "
            'null, and delete its "from"'
        )


@dataclass(frozen=True, kw_only=True)
class PredictCommand:
    """Flags of `minidp predict`."""

    examples = "example: %(prog)s runs/mine/model.npz x.npy --out y.csv"
    model: str = option(
        REQUIRED,
        "model.npz of a run, or a file that Fitted.save wrote",
        metavar="MODEL",
        positional=True,
    )
    x: str = option(
        REQUIRED,
        "rows to predict: .npy (read as needed), .npz, or .csv with column names in its first "
        "line, which may have more columns than the model needs",
        metavar="X",
        positional=True,
    )
    key: str | None = option(
        None, "array of a .npz file (default: x or x_test, whichever is there)"
    )
    out: str = option(
        REQUIRED, ".csv file to write: one prediction per line under a header", metavar="FILE"
    )
    proba: bool = option(
        False, "write the probability of each class, in a column named like the class"
    )
    force: bool = force_option()

    def run(self):
        """Run the command."""
        check_new(self, self.out)
        model = load_model(self.model)
        x = _inputs(self.x, self.key)
        header = ["prediction"]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            if self.proba:
                rows = model.predict_proba(x)
                header = None if model.classes is None else model.classes.tolist()
            else:
                rows = model.predict(x)
                rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or rows.shape[1] != len(header):
            raise ParameterError(
                f"{self.model}: a model without classes or bounds, whose outputs of shape "
                f"{rows.shape[1:]} are no predictions; use minidp.load_model in Python"
            )
        for warning in warned:
            print(f"NOTICE: {warning.message}", file=sys.stderr)
        with atomic_write(self.out) as file:
            cells = [[None if cell != cell else cell for cell in row] for row in rows.tolist()]
            csv.writer(file, lineterminator="\n").writerows([header, *cells])  # None as ""
        print(f"wrote {self.out}: {rows.shape[0]} rows")


def _inputs(path, key):
    """The array or the table of the file X, or the array of this key in it."""
    suffix = Path(path).suffix.lower()
    if key is not None and suffix != ".npz":
        raise ParameterError(f"expected --key with a .npz file, got {path}")
    if suffix == ".npy":
        return read_npy(path)
    if suffix != ".npz" and is_table(path):
        return read_table(path)
    if suffix != ".npz":
        raise ParameterError(f"{path}: expected a .npy, a .npz or a .csv file")
    wanted = ("x", "x_test") if key is None else (key,)
    found, keys = read_npz(path, wanted)
    if len(found) != 1:
        raise DataError(
            f"{path}: expected the key {' or '.join(wanted)}, got {', '.join(keys)}; name it by "
            "--key"
        )
    return next(iter(found.values()))
