"""train, predict: from a file of one's own data to a private model, and from the model to
predictions.
"""

import csv
import math
import sys
import warnings
from dataclasses import fields, replace
from pathlib import Path
from shlex import quote

import numpy as np

from ..data.schema import Schema, draft
from ..data.tables import table_of
from ..errors import DataError, ParameterError
from ..fitting.fit import fit
from ..fitting.settings import Settings
from ..privacy.budget import Filter
from ..privacy.ledger import Ledger
from ..run import load_model
from ..run.folder import CONFIG, CURVES, MODEL, RESULT, STATEMENT
from ..run.shared_ledger import sum_line
from ..run.summary import quote_line
from ..util.atomic import atomic_write
from ..util.files import jsonable, write_json
from ..util.program import program
from ..util.text import listed
from ..util.validate import positive
from .flags import Once, add_field, number, whole_number
from .output import check_new, show
from .reading import labels_of, read_csv, read_npy, read_npz, read_training
from .run_flags import add as add_shared

# of result.json
SHOWN = ("delta", "group", "steps", "arithmetic", "test_accuracy", "test_r2", "reproducible")


def _add_files(parser):
    """The flags of the files that hold the data."""
    add = parser.add_argument
    add(
        "data",
        nargs="?",
        metavar="DATA",
        help=".npz with x_train, y_train and, of a public test set, x_test, y_test; "
        "or .csv with names in its first line, and --label: numbers, or any columns with --schema",
    )
    for name, what in (
        ("--x", "training inputs in place of DATA: (N, ...) numbers, read as needed"),
        ("--y", "their labels, or of numbers to predict"),
        ("--x-test", "a public test set, which is evaluated and chooses nothing"),
        ("--y-test", "their labels or numbers"),
    ):
        add(name, metavar="FILE", help=f".npy file of {what}")
    add(
        "--label",
        metavar="COLUMN",
        help="column of a .csv file that is to be predicted (default: the one that --schema "
        "marks); all others are inputs",
    )
    add = parser.add_mutually_exclusive_group().add_argument
    for name, what in (
        ("--columns", "inputs of a .csv file (default: all but the label)"),
        ("--drop", "columns of a .csv file that are not read"),
    ):
        add(name, metavar="A,B,...", type=_names, default=(), help=what)
    parser.add_argument(
        "--test",
        metavar="FILE",
        help=".csv file of a public test set, as DATA, which is evaluated and chooses nothing",
    )


def train(parser):
    add = parser.add_argument
    _add_files(parser)
    add(
        "--delta",
        type=number,
        help="delta of (epsilon, delta)-DP (default: the power of ten at or below 1 / (10 N))",
    )
    add(
        "--out",
        required=True,
        metavar="DIR",
        help="folder of the run; the same command resumes an interrupted run",
    )
    for field in fields(Settings):
        if field.name == "check":
            add(
                "--ledger",
                metavar="FILE",
                help="ledger that runs on the same data share, charged first; the sum is printed",
            )
        add_field(parser, field)
    add("--quiet", action="store_true", help="no bar, and only the last three lines")
    add(
        "--seed",
        type=whole_number,
        help="for tests only: who knows it can subtract the noise; release nothing",
    )
    add(
        "--target-epsilon",
        "--epsilon",
        action=Once,
        type=number,
        required=True,
        metavar="EPSILON",
        help="epsilon that must not be exceeded; inf: the same without noise and clipping, which "
        "is not private, for comparison",
    )
    add_shared(
        parser,
        "--group-size",
        help="the statement also gives the epsilon of K rows of one person together, or with "
        "--person of K persons; the target stays that of one (default: 1)",
    )
    add_shared(parser, "--json")
    parser.epilog = (
        "examples: %(prog)s data.npz --target-epsilon 1 --delta 1e-4 --scale unit-norm --hidden 64 "
        "--out runs/mine\n          %(prog)s table.csv --label price --target-bounds 0,1e6 "
        "--target-epsilon 2 --out runs/price\n          %(prog)s --x x.npy --y y.npy --bounds "
        "0,255 --classes cat,dog --target-epsilon 1 --out runs/pets"
    )
    return _train


def _train(args):
    if not args.out:
        raise ParameterError("expected --out DIR, got an empty name")
    folder, done = Path(args.out), Path(args.out, RESULT).exists()
    given = {each.name: vars(args)[each.name] for each in fields(Settings) if each.name in args}
    positive(epsilon=args.target_epsilon)
    settings = Settings(**given)  # what it refuses comes before any notice on the data
    try:
        x, y, test = _data(args)
        settings = replace(settings, source=Path(args.data or args.x).name)
        if args.classes is not None:
            classes = _classes(args.classes, "?" if y is None else y.dtype.kind)
            settings = replace(settings, classes=classes)
        model = fit(
            x,
            y,
            epsilon=args.target_epsilon,
            delta=args.delta,
            folder=args.out,
            ledger=args.ledger,
            test=test,
            seed=args.seed,
            quiet=args.quiet or args.json,
            settings=settings,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; run the same command again to resume the run in {folder}; "
            f"`{program()} verify {folder}` says what is spent so far"
            if (folder / CONFIG).exists()
            else "interrupted before anything was charged"
        ) from None
    if done:
        print(f"{folder}: this run had finished before; nothing was trained now", file=sys.stderr)
    path, record = str(folder / MODEL), model.record
    new = "x.csv" if str(args.data).lower().endswith(".csv") else "x.npy"
    found = {
        "model": path,
        "quote": record.quoted,
        "epsilon": model.epsilon.to_json(),
        **{key: jsonable(getattr(record, key)) for key in SHOWN},
    }
    lines = [
        *_shared(args, record),
        quote_line(record),
        f"open:  {folder / STATEMENT} (picture: {folder / CURVES})",
        f"next:  {program()} predict {quote(path)} {new} --out y.csv",
    ]
    show(args, found, lines)


def _shared(args, record):
    """The line on the shared ledger, which `fit` prints unless it is quiet."""
    if args.ledger is None or not args.quiet:
        return []
    budget = Filter(record.accountant, math.inf, record.delta)
    return [sum_line(args.ledger, Ledger.load(args.ledger), budget)]


def _data(args):
    """(x, y, (x_test, y_test) or None) of the files that the flags name."""
    single, of_test = (args.x, args.y), (args.x_test, args.y_test)
    one_source = None not in single if args.data is None else single == (None, None)
    if not one_source:
        raise ParameterError("expected either DATA (.npz or .csv), or both --x and --y (.npy)")
    if of_test != (None, None) and (None in of_test or args.data is not None):
        raise ParameterError("expected --x-test and --y-test together, with --x and --y")
    suffix = None if args.data is None else Path(args.data).suffix.lower()
    of_csv = ("label", "columns", "drop", "test", "schema", "person")
    if suffix != ".csv" and (given := [name for name in of_csv if vars(args)[name]]):
        raise ParameterError(f"expected --{given[0]} with a .csv file, and only there")
    if suffix is None:
        return *map(read_npy, single), None if None in of_test else tuple(map(read_npy, of_test))
    if suffix == ".csv":
        test = None if args.test is None else _of_table(args, args.test)
        return *_of_table(args, args.data), test
    if suffix != ".npz":
        raise ParameterError(
            f"{args.data}: expected a .npz or a .csv file; .npy files go with --x and --y"
        )
    x, y, test, unused = read_training(args.data)
    if unused:
        print(f"{args.data}: not used: {', '.join(unused)}", file=sys.stderr)
    return x, y, test


def _of_table(args, path):
    """(x as a table, y or None) of a .csv file, in the form that fit takes."""
    of_schema = None if args.schema is None else Schema.of(args.schema).label
    label = args.label if of_schema is None else of_schema.name
    if label is None or args.label not in (None, label):
        raise ParameterError(
            "expected --label COLUMN with a .csv file, or a --schema whose column to predict has "
            '"role": "label", and the same if both are there'
        )
    if path is args.test and Path(path).samefile(args.data):
        raise ParameterError("expected --test with a public table, got the training rows")
    if label in (*args.columns, *args.drop):
        raise ParameterError(f"expected --columns and --drop of inputs, got the label {label}")
    # the rows of a test set are of no person
    apart = [label] if args.person is None or path is args.test else [label, args.person]
    table = read_csv(path)
    for name in (*args.columns, *args.drop, *apart):
        if name not in table:
            raise DataError(
                f"{path}: no column {name}; its first line, split at commas, names "
                f"{listed(list(table))}"
            )
    kept = [*args.columns, *apart]
    if not args.columns:
        kept = [name for name in table if name not in args.drop]
    table = {name: table[name] for name in kept}
    if of_schema is not None:
        return table, None
    as_text = args.classes is not None and _classes(args.classes).dtype.kind == "U"
    return table, labels_of(table.pop(label), as_text)


def _names(text):
    return [name.strip() for name in text.split(",")]


def _classes(text, kind="?"):
    """--classes in the type of labels of this kind."""
    names = _names(text)
    if kind == "b" and {name.lower() for name in names} == {"true", "false"}:
        return np.array([False, True])
    return np.array(names) if kind in "US" or "" in names else labels_of(names)


def schema(parser):
    add = parser.add_argument
    add("table", metavar="FILE", help=".csv file with names in its first line")
    add("--label", metavar="COLUMN", required=True, help="column that is to be predicted")
    add("--out", metavar="FILE", required=True, help="JSON file to write")
    add_shared(parser, "--force")
    parser.epilog = "example: %(prog)s table.csv --label sick --out schema.json"
    return _schema


def _schema(args):
    check_new(args, args.out)
    found = draft(table_of(read_csv(args.table)), args.label)
    write_json(args.out, found)
    print(
        f"wrote {args.out}: {len(found)} columns. Types and categories were read from the rows and "
        'are not protected: correct each entry by public knowledge, fill in every "low" and '
        '"high", and delete its "from"'
    )


def predict(parser):
    add = parser.add_argument
    add("model", metavar="MODEL", help="model.npz of a run, or a file that Fitted.save wrote")
    add(
        "x",
        metavar="X",
        help="rows to predict for: .npy (read as they are needed), .npz, or .csv with names in its "
        "first line, from which the columns that the model learned from are taken",
    )
    add("--key", help="array of a .npz file (default: x or x_test, whichever is there)")
    add(
        "--out",
        required=True,
        metavar="FILE",
        help=".csv file to write: prediction, and below one per line",
    )
    add(
        "--proba",
        action="store_true",
        help="write the probability of each class, under the names of the classes",
    )
    add_shared(parser, "--force")
    parser.epilog = "example: %(prog)s runs/mine/model.npz x.npy --out y.csv"
    return _predict


def _predict(args):
    check_new(args, args.out)
    model = load_model(args.model)
    x = _inputs(args)
    header = ["prediction"]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if args.proba:
            rows = model.predict_proba(x)
            header = None if model.classes is None else model.classes.tolist()
        else:
            rows = model.predict(x)
            rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != len(header):
        raise ParameterError(
            f"{args.model}: a model without classes or bounds, whose outputs of shape "
            f"{rows.shape[1:]} are no predictions; use minidp.load_model in Python"
        )
    for warning in warned:
        print(f"NOTICE: {warning.message}", file=sys.stderr)
    with atomic_write(args.out) as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows.tolist()])
    print(f"wrote {args.out}: {rows.shape[0]} rows")


def _inputs(args):
    """The array or the table of the file X."""
    suffix = Path(args.x).suffix.lower()
    wanted = ("x", "x_test") if args.key is None else (args.key,)
    if args.key is not None and suffix != ".npz":
        raise ParameterError(f"expected --key with a .npz file, got {args.x}")
    if suffix == ".csv":
        return read_csv(args.x)
    if suffix == ".npy":
        return read_npy(args.x)
    if suffix != ".npz":
        raise ParameterError(f"{args.x}: expected a .npy, a .npz or a .csv file")
    found, keys = read_npz(args.x, wanted)
    if len(found) != 1:
        raise DataError(
            f"{args.x}: expected the key {' or '.join(wanted)}, got {', '.join(keys)}; name it by "
            "--key"
        )
    return next(iter(found.values()))
