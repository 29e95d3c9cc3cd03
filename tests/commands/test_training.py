"""train and predict: files in, a run's folder and predictions out, and one line for whatever is wrong with them."""
import csv
import json
import os
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest

import minidp
from minidp.__main__ import main
from minidp.mechanism import Sanitizer

BUDGET = ["--target-epsilon", "2", "--delta", "1e-4", "--steps", "20"]
N = 600


def problem(seed=3):
    """x (N, 4), text labels of two classes, numbers to predict."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    x = rng.normal(size=(N, 4)) + 2 * np.eye(2, 4)[y]
    return x, np.array(["no", "yes"])[y], x[:, 0] - x[:, 1]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of one's own data in every form, where the commands run."""
    monkeypatch.chdir(tmp_path)
    x, y, target = problem()
    np.savez("data.npz", x_train=x[:500], y_train=y[:500], x_test=x[500:], y_test=y[500:])
    np.savez("numbers.npz", x_train=x[:500], y_train=target[:500], x_test=x[500:], y_test=target[500:])
    for name, found in {"x": x[:500], "y": y[:500], "x_test": x[500:], "y_test": y[500:]}.items():
        np.save(f"{name}.npy", found)
    table("table.csv", ["a", "b", "c", "d", "answer"], x, y)
    return tmp_path


def table(path, names, x, y):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([names, *([*map(repr, map(float, row)), label] for row, label in zip(x, y))])


def run(capsys, *flags):
    """What a command that must succeed prints on stdout."""
    status = main(list(flags))
    out, err = capsys.readouterr()
    assert status in (0, None), err
    return out


def refused(capsys, *flags):
    """The one line on stderr of a command that must refuse."""
    try:
        status = main(list(flags))
    except SystemExit as stopped:
        status = stopped.code
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1) and err.startswith("error: "), (status, out, err)
    return err


def predictions(path):
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows)


def test_what_one_process_trains_another_predicts(here):
    def process(*flags):
        return subprocess.run([sys.executable, "-m", "minidp", *flags], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}).stdout

    said = process("train", "data.npz", *BUDGET, "--scale", "unit-norm", "--hidden", "8", "--out", "my run")
    quote, picture, command = said.splitlines()[-3:]
    assert quote.startswith("quote: epsilon ") and picture.startswith("open:  my run/curves.png")
    process(*shlex.split(command.replace("x.npy", "x_test.npy"))[2:])
    x, y, _ = problem()
    header, rows = predictions("y.csv")
    assert header == ["prediction"] and (rows[:, 0] == minidp.load_model("my run/model.npz").predict(x[500:])).all()
    result = json.loads((here / "my run/result.json").read_text())
    assert result["test_accuracy"] == (rows[:, 0] == y[500:]).mean() > 0.7 and "\ntest          accuracy" in said
    assert float(quote.split()[2]) <= 2 and "0 mismatches" in process("verify", "my run")


def test_npz_npy_and_csv_are_the_same_data(here, capsys):
    flags = [*BUDGET, "--seed", "1", "--classes", "no, yes", "--bounds", "-5,8", "--dataset-size", "500", "--json", "--out"]
    one = json.loads(run(capsys, "train", "data.npz", *flags, "one"))
    two = json.loads(run(capsys, "train", "--x", "x.npy", "--y", "y.npy", "--x-test", "x_test.npy", "--y-test", "y_test.npy",
                         *flags, "two"))
    assert one | {"model": ""} == two | {"model": ""} and one["test_accuracy"] > 0.7 and one["epsilon"]["upper"] <= 2
    x, y, _ = problem()
    table("train.csv", ["a", "b", "c", "d", "answer"], x[:500], y[:500])
    run(capsys, "train", "train.csv", "--label", "answer", *flags, "three")
    models = [minidp.load_model(f"{name}/model.npz") for name in ("one", "two", "three")]
    for model in models[1:]:
        for name, array in models[0].network.state().items():
            assert np.array_equal(array, model.network.state()[name])
    assert "told of the data" not in (here / "one/privacy.md").read_text()


def test_a_table_is_read_by_the_names_of_its_columns(here, capsys):
    x, y, _ = problem()
    run(capsys, "train", "table.csv", "--label", "answer", *BUDGET, "--out", "mine")
    table("other.csv", ["d", "c", "answer", "b", "a"], np.insert(x[:, ::-1], 2, 7, axis=1)[:, :4], x[:, 0])
    run(capsys, "predict", "mine/model.npz", "table.csv", "--out", "y.csv")
    run(capsys, "predict", "mine/model.npz", "other.csv", "--out", "other_y.csv")
    assert (predictions("y.csv")[1] == predictions("other_y.csv")[1]).all()
    table("fewer.csv", ["a", "b", "c", "e"], x[:, :3], x[:, 3])
    assert "fewer.csv: no column d" in refused(capsys, "predict", "mine/model.npz", "fewer.csv", "--out", "new.csv")


def test_a_regression_prints_r2_and_predicts_numbers(here, capsys):
    said = run(capsys, "train", "numbers.npz", *BUDGET, "--target-bounds", "-8,8", "--bounds", "-5,8", "--learning-rate",
               "0.3", "--out", "mine")
    result = json.loads((here / "mine/result.json").read_text())
    x, _, target = problem()
    run(capsys, "predict", "mine/model.npz", "x_test.npy", "--out", "y.csv")
    found = predictions("y.csv")[1][:, 0].astype(float)
    assert (found == minidp.load_model("mine/model.npz").predict(x[500:])).all()
    left = ((target[500:] - found) ** 2).sum() / ((target[500:] - target[500:].mean()) ** 2).sum()
    assert result["test_r2"] == pytest.approx(1 - left, rel=1e-6) and result["test_accuracy"] is None
    assert f"test          R2 {result['test_r2']:.2%}" in said


def test_probabilities_have_the_names_of_the_classes(here, capsys):
    run(capsys, "train", "data.npz", *BUDGET, "--out", "mine", "--quiet")
    run(capsys, "predict", "mine/model.npz", "data.npz", "--out", "p.csv", "--proba")
    header, rows = predictions("p.csv")
    assert header == ["no", "yes"] and rows.astype(float).sum(axis=1) == pytest.approx(np.ones(100))
    assert (rows.astype(float) == minidp.load_model("mine/model.npz").predict_proba(problem()[0][500:])).all()


def test_keys_that_are_not_used_are_named(here, capsys):
    np.savez("more.npz", **np.load("data.npz"), extra=1)
    main(["train", "more.npz", *BUDGET, "--out", "mine", "--quiet"])
    out, err = capsys.readouterr()
    assert err == "more.npz: not used: extra\n" and len(out.splitlines()) == 3


def test_an_interrupted_command_goes_on_and_a_folder_holds_one_run(here, capsys, monkeypatch):
    command, release, seen = ["train", "data.npz", *BUDGET, "--out", "mine"], Sanitizer.release, []

    def interrupting(*args):
        seen.append(1)
        if len(seen) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return release(*args)

    monkeypatch.setattr(Sanitizer, "release", interrupting)
    assert main(command) == 130
    out, err = capsys.readouterr()
    assert err.startswith("interrupted; the same command goes on") and err.count("\n") == 1 and not out
    for other in (["--hidden", "3"], ["--classes", "yes,no,maybe"], ["--scale", "none"]):
        assert "mine" in refused(capsys, *command, *other)
    assert "quote: epsilon" in run(capsys, *command)
    model = (here / "mine/model.npz").read_bytes()
    main(command)
    assert "finished before" in capsys.readouterr().err and (here / "mine/model.npz").read_bytes() == model
    assert "mine" in refused(capsys, *command, "--hidden", "3")
    assert "other examples" in refused(capsys, "train", "--x", "x_test.npy", "--y", "y_test.npy", "--dataset-size", "500", *command[2:])


def test_rows_that_stop_a_run_charge_nothing_and_leave_the_folder_free(here, capsys):
    x, y, _ = problem()
    x[:7, 2] = np.nan
    np.savez("nan.npz", x_train=x, y_train=y)
    assert "x: 7 of 600 rows" in refused(capsys, "train", "nan.npz", *BUDGET, "--out", "mine", "--ledger", "all.json")
    assert not (here / "mine/ledger.json").exists() and not (here / "all.json").exists()
    run(capsys, "train", "data.npz", *BUDGET, "--hidden", "3", "--out", "mine")
    np.save("x.npy", x)
    assert main(["predict", "mine/model.npz", "x.npy", "--out", "y.csv"]) in (0, None)
    assert "7 of 600 rows hold a number that is not finite" in capsys.readouterr().err


def test_runs_that_share_a_ledger_say_their_sum(here, capsys):
    said = [run(capsys, "train", "data.npz", *BUDGET, "--out", name, "--ledger", "all.json") for name in ("a", "b")]
    assert "for all fits that share this ledger" in said[1]
    record = json.loads(run(capsys, "epsilon", "--ledger", "all.json", "--delta", "1e-4", "--json"))
    assert record["accountants"][record["quote"]]["upper"] > 2


@pytest.mark.parametrize("flags, words", [
    (["missing.npz"], "missing.npz: No such file"), ([], "either DATA"), (["data.npz", "--x", "x.npy", "--y", "y.npy"], "either DATA"),
    (["--x", "x.npy"], "both --x and --y"), (["--x", "x.npy", "--y", "y_test.npy"], "x has 500, y has 100"),
    (["--x", "x.npy", "--y", "y.npy", "--x-test", "x.npy"], "--x-test and --y-test together"),
    (["--x", "data.npz", "--y", "y.npy"], "data.npz: expected a .npy file"), (["x.npy"], ".npy files go with --x and --y"),
    (["data.npz", "--label", "a"], "--label COLUMN with a .csv file"), (["table.csv"], "--label COLUMN with a .csv file"),
    (["table.csv", "--label", "nope"], "no column nope; its first line, split at commas, names a, b, c, d, answer"),
    (["table.csv", "--label", "a"], "column answer is not numeric (line 2: "), (["."], "expected a .npz or a .csv file"),
    (["data.npz", "--bounds", "1,2,3"], "LOW,HIGH: two numbers"), (["data.npz", "--bounds", "2,1"], "low < high"),
    (["data.npz", "--classes", "no"], "from 2 to"), (["data.npz", "--classes", "1,2"], "none of the 2 classes"),
    (["numbers.npz"], "target_bounds"), (["data.npz", "--steps", "0"], "steps=0"), (["data.npz", "--hidden", "0"], "hidden=0"),
    (["data.npz", "--hidden", "many"], "argument --hidden"), (["data.npz", "--learning-rate", "0"], "learning_rate=0"),
    (["data.npz", "--out", ""], "empty name"), (["data.npz", "--out", "data.npz"], "data.npz is a file"),
    (["data.npz", "--out", "/proc/no/such"], "/proc/no"), (["data.npz", "--ledger", "."], "is a folder"),
    (["data.npz", "--target-epsilon", "0"], "epsilon=0.0"), (["data.npz", "--device", "tpu"], "device"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_a_user_does_wrong_is_one_line(here, capsys, flags, words):
    assert words in refused(capsys, "train", *BUDGET, "--out", "mine", *flags)
    assert not (here / "mine/ledger.json").exists()


@pytest.mark.parametrize("spoil, words", [
    (lambda x, y: {"a": x}, "expected the key x_train, got a"), (lambda x, y: {"x_train": x}, "expected the key y_train"),
    (lambda x, y: {"x_train": x, "y_train": y, "x_test": x}, "expected the key y_test"),
    (lambda x, y: {"x_train": x.astype(object), "y_train": y}, "nothing is unpickled"),
    (lambda x, y: {"x_train": x.astype(str), "y_train": y}, "dtype <U"), (lambda x, y: {"x_train": x[:, 0], "y_train": y}, "shape"),
    (lambda x, y: {"x_train": x, "y_train": np.where(y == "no", np.nan, 1)}, "not finite"),
    (lambda x, y: {"x_train": x[:0], "y_train": y[:0]}, "from 2 to"), (lambda x, y: {"x_train": x, "y_train": x}, "(600, 4)"),
    (lambda x, y: {"x_train": x, "y_train": y, "x_test": x[:, :3], "y_test": y}, "got (3,)"),
], ids=range(10))
def test_arrays_that_cannot_be_learned_from_are_one_line(here, capsys, spoil, words):
    np.savez("bad.npz", **spoil(*problem()[:2]))
    assert words in refused(capsys, "train", "bad.npz", *BUDGET, "--out", "mine")
    assert not (here / "mine/ledger.json").exists()


@pytest.mark.parametrize("text, words", [
    (b"", "empty"), (b"a,b,l\n1,2\n", "line 2: expected 3 cells, got 2"), (b"a,a,l\n1,2,3\n", "names a more than once"),
    (b"a;b;l\n1;2;3\n", "no column l"), (b"l\n1\n0\n", "no column of inputs"), (b"a,l\nNA,1\n", "column a is not numeric (line 2: 'NA')"),
    (b"a,l\n1_0,1\n", "column a is not numeric"), (b"a,l\n1,\xe9\n", "no CSV file in UTF-8"), (b'a,l\n1,"2\n', "no CSV file"),
    (b"a,l\n1,\n2,x\n3,y\n", "1 of 3 rows have no label in column l"), (b"a,l\n,0\n1,1\n", "x: 1 of 2 rows"),
    (b"\xef\xbb\xbfa, l\r\n1, 0\r\n\r\n2, 1\r\ninf, 1\r\n", "x: 1 of 3 rows"),
], ids=range(12))
def test_tables_that_cannot_be_read_are_one_line(here, capsys, text, words):
    (here / "bad.csv").write_bytes(text)
    assert words in refused(capsys, "train", "bad.csv", "--label", "l", "--target-epsilon", "2", "--out", "mine")


@pytest.mark.parametrize("cells, labels, expected, dtype", [
    ("1 0 -7", None, [1, 0, -7], "int64"), ("1.5 0 1e3", None, [1.5, 0, 1000], "float64"), ("1 b 0", None, ["1", "b", "0"], "<U1"),
    ("1 0", True, ["1", "0"], "<U1"), ("007 0", None, [7, 0], "int64")])
def test_labels_of_a_column_are_of_one_kind(cells, labels, expected, dtype):
    from minidp.commands.reading import labels_of

    found = labels_of("here.csv", "l", cells.split(), labels)
    assert found.dtype == dtype and found.tolist() == expected


def test_a_model_or_rows_that_do_not_fit_are_one_line(here, capsys):
    run(capsys, "train", "data.npz", *BUDGET, "--out", "mine")
    model = (here / "mine/model.npz").read_bytes()
    (here / "cut.npz").write_bytes(model[: len(model) // 2])
    place = model.index(b"dense1.W.npy") + 150  # in the array's numbers
    (here / "edited.npz").write_bytes(model[:place] + bytes([model[place] ^ 1]) + model[place + 1 :])
    np.save("wide.npy", np.zeros((3, 5)))
    np.save("objects.npy", np.array([[1, "a"]], dtype=object))
    (here / "old.csv").write_text("kept")
    for found, x, more, words in (
            ("cut.npz", "x.npy", [], "cut.npz"), ("edited.npz", "x.npy", [], "edited.npz"), ("mine", "x.npy", [], "mine: "),
            ("mine/checkpoint.npz", "x.npy", [], "expected a model, got a checkpoint"), ("missing", "x.npy", [], "no such file"),
            ("mine/model.npz", "wide.npy", [], "got (3, 5)"), ("mine/model.npz", "y.npy", [], "got (500,)"),
            ("mine/model.npz", "objects.npy", [], "nothing is unpickled"), ("mine/model.npz", "no.npy", [], "No such file"),
            ("mine/model.npz", "data.npz", ["--key", "x"], "expected the key x, got x_train"),
            ("mine/model.npz", "data.npz", ["--key", "y_test"], "got (100,)"), ("mine/model.npz", "x.npy", ["--key", "x"], "--key"),
            ("mine/model.npz", "x.npy", ["--out", "old.csv"], "--force replaces it"),
            ("mine/model.npz", "x.npy", ["--out", "no/y.csv"], "cannot be written")):
        assert words in refused(capsys, "predict", found, x, "--out", "y.csv", *more)
    assert not (here / "y.csv").exists() and (here / "old.csv").read_text() == "kept"
    run(capsys, "predict", "mine/model.npz", "x.npy", "--out", "old.csv", "--force")
    assert len(predictions("old.csv")[1]) == 500
