"""What is seen of a run: the bar, pictures of which nothing is cut off or covered, the commit in
its result.
"""

import io
import os
import subprocess
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from minidp.run import versions as results
from minidp.run.curves import save_course
from minidp.run.progress import BAR, make_bar, shown


@pytest.mark.parametrize("lots", [20, 10_331, 1_000_000])
@pytest.mark.parametrize("accuracy", [None, 1.0])
def test_epsilon_is_seen_whole_in_a_bar_of_80_columns(lots, accuracy):
    with tqdm(total=lots, initial=lots // 2, bar_format=BAR, ncols=80, file=io.StringIO()) as bar:
        bar.set_postfix_str(shown({"epsilon": 0.50247925, "test_accuracy": accuracy}))
        text = str(bar)
    assert (
        len(text) <= 80
        and "epsilon 0.5025" in text
        and ("test 100.00%" in text) == (accuracy is not None)
    )
    assert f"{lots // 2}/{lots} lots" in text


def test_epsilon_in_the_bar_is_rounded_up():
    assert shown({"epsilon": 2.000001, "test_accuracy": None}) == "epsilon 2.001"
    assert shown({"epsilon": "inf", "test_accuracy": None}) == "epsilon infinite"


def rows(test, train=None, epsilon=None):
    """A history with these columns."""
    found = []
    for i, accuracy in enumerate(test):
        row = {"epoch": i + 1, "test_accuracy": accuracy}
        row["train_accuracy_not_private"] = train and train[i]
        found.append({**row, "epsilon": epsilon and epsilon[i]})
    return found


@pytest.mark.parametrize(
    "history, notice, labels",
    [
        (
            rows([0.8, 0.9, 0.92], [0.79, 0.9, 0.91], [0.0, 0.5, 0.7]),
            "synthetic digits, not MNIST " * 5,
            ["accuracy", "epsilon (moments) at delta 1e-05"],
        ),
        (rows([None, None], epsilon=[0.3, 0.5]), "", ["epsilon (moments) at delta 1e-05"]),
        (rows([0.8, 0.9], epsilon=[None, "inf"]), "", ["accuracy"]),
        ([], "", [""]),
    ],
    ids=["all", "nothing evaluated", "infinite", "nothing yet"],
)
def test_the_picture_shows_accuracy_and_what_was_spent(tmp_path, drawn, history, notice, labels):
    record = SimpleNamespace(
        experiment="run", dataset="MNIST", notice=notice, accountant="moments", delta=1e-5
    )
    save_course(tmp_path / "curves.png", history, record)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert os.listdir(tmp_path) == ["curves.png"]
    assert [[axis.get_ylabel() for axis in figure.axes] for figure in drawn] == [labels]


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_commit(tmp_path):
    assert results.git_commit(tmp_path) is None
    assert results.git_commit(tmp_path / "missing") is None
    git(tmp_path, "init")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "m")
    commit = results.git_commit(tmp_path)
    assert len(commit) == 40 and int(commit, 16)
    (tmp_path / "a").write_text("2")
    assert results.git_commit(tmp_path) == f"{commit}-dirty"


def test_git_commit_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert results.git_commit() is None


def test_a_notebook_shows_the_bar_and_a_file_does_not(monkeypatch):
    kernel = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    for stream, shows in ((kernel(), True), (io.StringIO(), False)):
        monkeypatch.setattr("sys.stderr", stream)
        with make_bar(2, 0, False) as bar:
            bar.update(2)
        assert ("2/2 lots" in stream.getvalue()) == shows
