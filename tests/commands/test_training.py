"""train and predict: files in, a run's folder and predictions out, and one line for whatever is
wrong with them.
"""

import csv
import json
import os
import shlex
import signal
import subprocess

import numpy as np
import pytest

import minidp
from minidp.__main__ import main
from minidp.mechanism import Sanitizer
from minidp.privacy import Ledger
from tests.support.scripts import environment, python

PLAN = ["--target-epsilon", "2", "--delta", "1e-4", "--steps", "20"]
BUDGET = [*PLAN, "--folder", "mine"]
TRAIN, LABEL = ["train", "data.npz", *BUDGET], ["--label", "answer"]
NPY = "--x x.npy --y y.npy --x-test x_test.npy --y-test y_test.npy".split()
N, COLUMNS = 600, ["a", "b", "c", "d", "answer"]


def problem():
    """x (N, 4), text labels of two classes."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, N)
    return rng.normal(size=(N, 4)) + 2 * np.eye(2, 4)[y], np.array(["no", "yes"])[y]


@pytest.fixture(autouse=True)
def files(folder):
    """One's own data in every form."""
    x, y = problem()
    found = {"x_train": x[:500], "y_train": y[:500], "x_test": x[500:], "y_test": y[500:]}
    np.savez("data.npz", **found)
    for name, array in found.items():
        np.save(f"{name.removesuffix('_train')}.npy", array)
    table("table.csv", COLUMNS, x, y)


def table(path, names, x, y):
    rows = [[*map(float, row), label] for row, label in zip(x, y)]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def predictions(path):
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows)


def test_what_one_process_trains_another_predicts(folder):
    def process(*flags):
        return python("-m", "minidp", *flags, check=True).stdout

    flags = ["--hidden", "8", "--ledger", "all.json", "--folder", "my run"]
    said = process("train", "data.npz", *PLAN, *flags)
    quote, statement, command = said.splitlines()[-3:]
    assert quote.startswith("quote: epsilon ") and statement.startswith("read:  my run/privacy.md")
    command = shlex.split(command.replace("x.npy", "x_test.npy"))[1:]
    subprocess.run(command, check=True, env=environment())
    x, y = problem()
    header, rows = predictions("y.csv")
    assert header == ["prediction"]
    assert (rows[:, 0] == minidp.load_model("my run/model.npz").predict(x[500:])).all()
    result = json.loads((folder / "my run/result.json").read_text())
    assert result["test_accuracy"] == (rows[:, 0] == y[500:]).mean() > 0.7
    assert float(quote.split()[2]) <= 2 and "0 mismatches" in process("verify", "my run")
    assert Ledger.load("all.json").count_of("step") == result["steps"]
    assert "for all fits that share this ledger" in said


def test_npz_npy_and_csv_are_the_same_data(folder, answer):
    public = "--seed 1 --classes 'no, yes' --bounds -5,8 --dataset-size 500"
    x, y = problem()
    table("train.csv", COLUMNS, x[:500], y[:500])
    sources = {"one": ["data.npz"], "two": NPY, "three": ["train.csv", *LABEL]}
    found, states = {}, {}
    for name, source in sources.items():
        found[name] = answer("train", *source, *PLAN, public, "--out", name)
        states[name] = minidp.load_model(f"{name}/model.npz").network.state()
    one = found["one"] | {"model": ""}
    assert one == found["two"] | {"model": ""}
    assert one["test_accuracy"] > 0.7 and one["epsilon"]["upper"] <= 2
    for name, array in states["one"].items():
        assert all(np.array_equal(array, state[name]) for state in states.values())
    assert "Revealed exactly" not in (folder / "one/privacy.md").read_text()


def test_a_table_with_a_schema_is_trained_on_and_predicted(folder, run, refused):
    rows = [
        [i, f" {i % 90}", ["nurse", "clerk", "?"][i % 3], ["no", "yes"][i % 90 > 45]]
        for i in range(N)
    ]
    names = ["id", "age", "job", "sick"]

    def write(path, order):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([[row[each] for each in order] for row in [names, *rows]])

    write("people.csv", [0, 1, 2, 3])
    run("schema", "people.csv", "--label", "sick", "--out", "draft.json")
    schema = json.loads((folder / "draft.json").read_text())
    command = ["train", "people.csv", *BUDGET, "--ledger", "all.json", "--quiet", "--schema"]
    assert "fill in what is null of the columns age from" in refused(*command, "draft.json")
    schema["age"] = {"type": "number", "low": 0, "high": 89}
    (folder / "people.json").write_text(json.dumps(schema))
    assert "got the training rows" in refused(*command, "people.json", "--test", "people.csv")
    write("public.csv", [3, 0, 1, 2])
    assert "got the training rows" in refused(*command, "people.json", "--test", "public.csv")
    rows.reverse()
    write("public.csv", [3, 0, 1, 2])
    said = run(*command, "people.json", "--test", "public.csv")
    assert "all.json: epsilon" in said and "-m minidp predict mine/model.npz x.csv" in said
    result = json.loads((folder / "mine/result.json").read_text())
    assert result["test_accuracy"] > 0.8
    write("new.csv", [2, 1])
    run("predict", "mine/model.npz", "new.csv", "--out", "y.csv")
    right = predictions("y.csv")[1][:, 0] == [row[3] for row in rows]
    assert right.mean() == result["test_accuracy"]


def test_probabilities_have_the_names_of_the_classes_and_unused_keys_are_named(run, capsys):
    np.savez("more.npz", **np.load("data.npz"), extra=1)
    main(["train", "more.npz", *BUDGET, "--quiet"])
    out, err = capsys.readouterr()
    assert err == "more.npz: not used: extra\n" and len(out.splitlines()) == 3
    run("predict", "mine/model.npz", "data.npz", "--out", "p.csv", "--proba")
    header, rows = predictions("p.csv")
    x, _ = problem()
    assert header == ["no", "yes"]
    expected = minidp.load_model("mine/model.npz").predict_proba(x[500:])
    assert (rows.astype(float) == expected).all()
    np.save("x.npy", np.where(x > 3, np.nan, x))
    main(["predict", "mine/model.npz", "x.npy", "--out", "y.csv"])
    assert "rows hold a number that is not finite" in capsys.readouterr().err


def test_an_interrupted_command_goes_on_and_a_folder_holds_one_run(
    folder, run, refused, capsys, monkeypatch
):
    release, seen = Sanitizer.release, []

    def interrupting(*args):
        seen.append(1)
        if len(seen) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return release(*args)

    monkeypatch.setattr(Sanitizer, "release", interrupting)
    assert main(TRAIN) == 130
    out, err = capsys.readouterr()
    assert err.startswith("interrupted; run the same command again")
    assert err.count("\n") == 1 and not out
    assert "mine" in refused(*TRAIN, "--classes", "yes,no,maybe")
    assert "quote: epsilon" in run(*TRAIN)
    model = (folder / "mine/model.npz").read_bytes()
    main(TRAIN)
    assert "finished before" in capsys.readouterr().err
    assert (folder / "mine/model.npz").read_bytes() == model


X, Y = problem()
ARRAYS = [
    ({"a": X}, "expected the key x_train, got a; numpy.savez(FILE, x_train=x"),
    (
        {"x_train": X.astype(object), "y_train": Y},
        "damaged, or a file of another kind (Object arrays",
    ),
]
TABLES = [
    (b"", "empty"),
    (b"a,b,l\n1,2\n", "line 2: expected 3 cells, got 2"),
    (b'a,l\n1,"2\n', "no CSV file"),
    (b"a,l\nNA,1\n2,0\n", "x: 1 of 2 rows hold a number that is not finite"),
    (b"a,l\nno,1\n", "x: the columns a hold no numbers; drop them, or describe"),
    (b"a,l\n1,\n2,x\n3,y\n", "y: 1 of 3 labels are none of the 2 classes (x, y)"),
    (b"\xef\xbb\xbfa, l\r\n1, 0\r\n\r\n2, 1\r\ninf, 1\r\n", "x: 1 of 3 rows"),
    (b"a,l\n1,\x81\n", "no CSV file in UTF-8, UTF-16 or cp1252"),
]
FLAGS = [
    ("--x missing.npy --y y.npy", "missing.npy: no such file"),
    ("data.npz --ledger no/all.json", "there is no folder"),
    ("data.npz --drop a", "expected --drop with a .csv file"),
    ("table.csv --label answer --drop answer", "got the label answer"),
    ("--x x.npy", "both --x and --y"),
    ("--x x.npy --y y.npy --x-test x.npy", "--x-test and --y-test together"),
    ("--x data.npz --y y.npy", "data.npz: expected a .npy file"),
    ("x.npy", ".npy files go with --x and --y"),
    ("table.csv", "--label COLUMN with a .csv file"),
    (
        "table.csv --label no",
        "no column no; its first line, split at commas, names a, b, c, d, answer",
    ),
    ("data.npz --folder ''", "empty name"),
    ("data.npz --bounds 1,2,3", "LOW,HIGH: two numbers"),
    ("data.npz --hidden many", "argument --hidden"),
    ("data.npz --folder data.npz", "data.npz is a file"),
    ("data.npz --folder /proc/no/such", "/proc/no"),
    ("data.npz --ledger .", "is a folder"),
]


@pytest.mark.parametrize("given, words", ARRAYS + TABLES + FLAGS, ids=str)
def test_what_a_user_does_wrong_is_one_line(given, words, folder, refused):
    flags = given if isinstance(given, str) else "bad.npz"
    if isinstance(given, bytes):
        (folder / "bad.csv").write_bytes(given)
        flags = "bad.csv --label l"
    elif isinstance(given, dict):
        np.savez("bad.npz", **given)
    assert words in refused("train", *(PLAN if "--folder" in flags else BUDGET), flags)
    assert not (folder / "mine/ledger.json").exists()


def test_a_model_or_rows_that_do_not_fit_are_one_line(folder, run, refused):
    run(*TRAIN)
    np.save("wide.npy", np.zeros((3, 5)))
    for flags, words in (
        ("missing x.npy", "no such file"),
        ("mine/checkpoint.npz x.npy", "expected a model, got a checkpoint"),
        ("mine/model.npz wide.npy", "got (3, 5)"),
        ("mine/model.npz data.npz --key x", "expected the key x, got x_train"),
        ("mine/model.npz x.npy --key x", "--key"),
    ):
        assert words in refused("predict", "--out", "y.csv", flags)
    assert not (folder / "y.csv").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_draft_is_written_where_the_terminal_cannot_write_its_names(tmp_path, encoding):
    rows = "".join(f"{n},c{n % 2},{3 * n},oui\n" for n in range(40))
    (tmp_path / "a.csv").write_text(f"âge,città,体重,réponse\n{rows}", encoding="utf-8")
    words = ["-m", "minidp", "schema", "a.csv", "--label", "réponse", "--out", "draft.json"]
    env = environment() | {"PYTHONIOENCODING": encoding}
    done = python(*words, cwd=tmp_path, env=env, encoding=encoding)
    assert done.returncode == 0 and "\\u4f53\\u91cd: a number" in done.stdout, done.stderr
    held = json.loads((tmp_path / "draft.json").read_text(encoding="utf-8"))
    assert "体重" in json.dumps(held, ensure_ascii=False)
