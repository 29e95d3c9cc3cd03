"""Between the charge and the model nothing fails that could have failed before, nothing that
reports raises, and after an interrupt anywhere the same call gives the model.
"""

import io
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import minidp
from minidp import nn
from minidp.__main__ import main
from minidp.errors import MinidpError, ParameterError
from minidp.privacy import Ledger
from minidp.run.verify import verify
from tests.support.running import make_arrays, make_run

NAMES = ["oui – €", "体重"]
X = np.random.default_rng(0).normal(size=(240, 3)).astype("float32")
Y = np.array(NAMES)[(X[:, 0] > 0).astype(int)]
KNOWN = {"epsilon": 1.0, "delta": 1e-4, "steps": 2, "bounds": (-4, 4), "classes": NAMES}
PACKAGE = Path(minidp.__file__).parent
PARTS = "fitting/fit fitting/temporary run/run run/folder run/progress run/shared_ledger "
PARTS += "run/checkpoint train/trainer util/atomic util/notices fitting/model"
TRACED = {str(PACKAGE / f"{part}.py") for part in PARTS.split()}


@pytest.fixture(autouse=True, scope="module")
def _without_waits():
    """No pictures, and no waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minidp.run.run.draw_course", lambda path, *rest, **named: path.touch())
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


class Broken(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


def encoded(name):
    return lambda: io.TextIOWrapper(io.BytesIO(), encoding=name, write_through=True)


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


STREAMS = {
    "ascii": encoded("ascii"),
    "latin-1": encoded("latin-1"),
    "closed": closed,
    "full disk": lambda: open("/dev/full", "w", buffering=1),
    "closed pipe": Broken,
    "missing": lambda: None,
}


@pytest.fixture(params=STREAMS)
def streams(request, monkeypatch):
    """Standard output and standard error of this kind, which is not quiet."""
    made = [STREAMS[request.param](), STREAMS[request.param]()]
    monkeypatch.setattr(sys, "stdout", made[0])
    monkeypatch.setattr(sys, "stderr", made[1])
    yield
    monkeypatch.undo()
    for stream in filter(None, made):
        try:
            stream.close()
        except OSError:
            pass


def test_fit_returns_its_model_whatever_takes_its_lines(streams, tmp_path):
    model = minidp.fit(X, Y, ledger=tmp_path / "led.json", dataset_size=17, **KNOWN)
    assert set(model.predict(X)) <= set(NAMES)


def test_a_run_returns_its_result_whatever_takes_its_bar(streams, tmp_path):
    run = make_run(tmp_path, steps=4)
    object.__setattr__(run, "quiet", False)
    assert run.train(*make_arrays())["steps"] == 4


def test_the_command_leaves_its_model_whatever_takes_its_lines(streams, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", x_train=X, y_train=Y)
    words = "train d.npz --epsilon 1 --delta 1e-4 --steps 2 --bounds=-4,4 --folder run".split()
    try:
        main([*words, "--dataset-size", "240"])
    except (SystemExit, ValueError):
        pass
    assert not verify(tmp_path / "run").failed
    assert set(minidp.load_model("run/model.npz").predict(X)) <= set(NAMES)


class Tensor:
    """What PyTorch's tensors do that arrays do not."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape
        self.dtype, self.ndim = f"torch.{array.dtype}", array.ndim

    def __array__(self, dtype=None, copy=None):
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array

    def __getitem__(self, key):
        return Tensor(self.array[key])

    def __len__(self):
        return len(self.array)

    def detach(self):
        return self

    cpu = detach

    def take(self, index):
        raise TypeError("take(): argument 'index' (position 1) must be Tensor, not numpy.ndarray")


class Column(minidp.data.arrays.Sequence):
    """A column of a HuggingFace data set: a sequence without a shape."""

    def __init__(self, cells):
        self.cells = cells

    def __getitem__(self, key):
        return self.cells[key]

    def __len__(self):
        return len(self.cells)


class DataSet:
    """A HuggingFace data set: columns by their names, rows as dicts by their numbers."""

    def __init__(self, **columns):
        self.held, self.column_names = columns, list(columns)
        self.shape = len(next(iter(columns.values()))), len(columns)

    def __getitem__(self, key):
        if isinstance(key, str):
            return Column(self.held[key])
        return {name: cells[key] for name, cells in self.held.items()}


class Rising:
    """An HDF5 data set: rows by slices, and by rising indices alone."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key):
        if not isinstance(key, slice) and not (np.diff(key) > 0).all():
            raise TypeError("Indexing elements must be in increasing order")
        return self.array[key]


class Slices(Rising):
    """Rows by slices alone."""

    def __getitem__(self, key):
        if not isinstance(key, slice):
            raise TypeError(f"slices only, not those of {self.array[0]}")
        return self.array[key]


def named(x):
    return {f"c{i}": x[:, i].tolist() for i in range(3)}


SOURCES = {
    "tensors": (Tensor(X), Tensor((X[:, 0] > 0).astype(int))),
    "columns": (Column(X.tolist()), Column((X[:, 0] > 0).astype(int).tolist())),
    "HDF5": (Rising(X), (X[:, 0] > 0).astype(int)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_rows_of_other_libraries_train_as_arrays_do(source, monkeypatch):
    known = {**KNOWN, "classes": [0, 1], "dataset_size": 240, "seed": 1, "quiet": True}
    expected = minidp.fit(X, (X[:, 0] > 0).astype(int), **known)
    monkeypatch.setattr("minidp.fitting.network.IN_MEMORY", 0)  # rows are taken as lots need them
    found = minidp.fit(*SOURCES[source], **known)
    assert np.abs(found.predict_proba(X) - expected.predict_proba(X)).max() < 1e-6


@pytest.mark.parametrize("rows", ["dicts", "data set", "structured"])
def test_rows_with_names_train_as_a_table_does(rows):
    label, columns = (X[:, 0] > 0).astype(int).tolist(), named(X)
    table = {**columns, "label": label}
    made = {
        "dicts": [dict(zip(table, row)) for row in zip(*table.values())],
        "data set": DataSet(**table),
        "structured": np.array(
            list(zip(*table.values())), [*((name, "f4") for name in columns), ("label", "i4")]
        ),
    }
    known = {**KNOWN, "classes": [0, 1], "dataset_size": 240, "seed": 1, "quiet": True}
    found = minidp.fit(made[rows], label="label", **known)
    expected = minidp.fit(table, label="label", **known)
    assert (found.predict_proba(columns) == expected.predict_proba(columns)).all()


def test_a_run_takes_tensors_and_columns(tmp_path):
    x, y, *_ = make_arrays()
    assert make_run(tmp_path / "a").train(Tensor(x), Tensor(y))["steps"]
    assert make_run(tmp_path / "b").train(Column(x.tolist()), Column(y.tolist()))["steps"]


def test_rows_that_cannot_be_taken_by_index_are_refused_before_a_charge(tmp_path, monkeypatch):
    monkeypatch.setattr("minidp.fitting.network.IN_MEMORY", 0)
    with pytest.raises(ParameterError, match=r"x: expected 2 rows .* got TypeError: .*asarray"):
        minidp.fit(Slices(X), Y, ledger=tmp_path / "led.json", folder=tmp_path / "run", **KNOWN)
    assert not (tmp_path / "led.json").exists() and not (tmp_path / "run/ledger.json").exists()
    run = make_run(tmp_path / "bare")
    with pytest.raises(MinidpError):
        run.train(Slices(make_arrays()[0]), make_arrays()[1])
    assert not (tmp_path / "bare/ledger.json").exists()


def test_a_tensor_of_a_type_that_numpy_lacks_is_refused_with_the_cure():
    short = Tensor(X)
    short.dtype = "torch.bfloat16"
    with pytest.raises(MinidpError, match=r"x: .*torch.bfloat16; give x.float\(\)"):
        minidp.fit(short, Y, **KNOWN)


@pytest.mark.parametrize("width", [2, 3])
def test_targets_of_several_columns_are_refused_with_the_cure(width):
    with pytest.raises(MinidpError, match=r"one-hot rows give y.argmax\(axis=1\); .*ledger=FILE"):
        minidp.fit(X, np.zeros((240, width), int), **KNOWN)


class NoNaN(nn.ReLU):
    """A layer that raises on NaN."""

    def compute_y(self, x, rng):
        if np.isnan(x).any():
            raise ZeroDivisionError("NaN")
        return super().compute_y(x, rng)


def test_a_layer_that_raises_on_nan_raises_before_any_charge(tmp_path):
    made = nn.Dense(3, 4, rng=np.random.default_rng(0), dtype="float64")
    last = nn.Dense(4, 2, rng=np.random.default_rng(0), dtype="float64")
    network = nn.Sequential([made, NoNaN(), last], (3,))
    with pytest.raises(ZeroDivisionError):
        minidp.fit(
            X, Y, network=network, dtype="float64", ledger=tmp_path / "led.json",
            folder=tmp_path / "run", **KNOWN,
        )  # fmt: skip
    assert not (tmp_path / "led.json").exists() and not (tmp_path / "run/ledger.json").exists()


class Stop(BaseException):
    """What a signal may raise anywhere."""


class Tracer:
    """Raises Stop, or counts, at the n-th line of the package that runs after the first charge to
    the shared ledger, each line once.
    """

    def __init__(self, ledger, at=None):
        self.ledger, self.at, self.seen, self.live = ledger, at, {}, False

    def __enter__(self):
        sys.settrace(self.call)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def call(self, frame, event, argument):
        return self.line if frame.f_code.co_filename in TRACED else None

    def line(self, frame, event, argument):
        if event != "line":
            return self.line
        self.live = self.live or os.path.exists(self.ledger)
        place = frame.f_code.co_filename, frame.f_lineno
        if self.live and place not in self.seen:
            self.seen[place] = len(self.seen)
            if len(self.seen) - 1 == self.at:
                sys.settrace(None)
                raise Stop
        return self.line


def small(at, folder="run", **named):
    known = {**KNOWN, "dataset_size": 240, "quiet": True}
    return minidp.fit(X, Y, ledger=at / "led.json", folder=folder and at / folder, **known | named)


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """How many lines run between the charge and the model."""
    at = tmp_path_factory.mktemp("counted")
    small(at, folder="first")  # loads what loads once
    (at / "led.json").unlink()
    with Tracer(at / "led.json") as tracer:
        small(at)
    return list(tracer.seen)


def stopped(tmp_path, place, **named):
    at = tmp_path / str(place)
    at.mkdir()
    try:
        with Tracer(at / "led.json", place):
            return at, small(at, **named), None
    except Stop as error:
        return at, None, error


@pytest.mark.parametrize("every", [31, pytest.param(1, marks=pytest.mark.slow)])
def test_after_an_interrupt_at_any_line_the_same_call_gives_the_model(every, lines, tmp_path):
    for place in range(0, len(lines), every):
        at, model, _ = stopped(tmp_path, place)
        if model is None:
            model = small(at)
        assert set(model.predict(X)) <= set(NAMES), lines[place]
        assert not verify(at / "run").failed, lines[place]
        # before the first checkpoint, the same call charges the shared ledger once more
        assert Ledger.load(at / "led.json").count_of("step") in (2, 4), lines[place]


@pytest.mark.parametrize("part", ["Fitted", "tell"])
def test_without_a_folder_an_interrupt_says_where_the_paid_model_is(part, tmp_path, monkeypatch):
    def stop(shown, *_):
        if part == "Fitted" or not isinstance(shown, str):  # the sum of the ledger is told first
            raise KeyboardInterrupt

    known = {**KNOWN, "dataset_size": 240, "ledger": tmp_path / "led.json"}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as stopped:
        patch.setattr(f"minidp.fitting.fit.{part}", stop)
        minidp.fit(X, Y, **known)
    (note,) = stopped.value.__notes__
    folder = note.split("'")[1]
    assert set(minidp.fit(X, Y, folder=folder, **known).predict(X)) <= set(NAMES)
    assert Ledger.load(tmp_path / "led.json").count_of("step") == 2
    shutil.rmtree(folder)
