"""The command line as a test asks it, in a folder of its own."""

import json
import shlex

import pytest

from minidp.__main__ import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder where the commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """run(*words): what a command that must succeed prints on stdout."""

    def run(*words):
        status, (out, err) = main(shlex.split(" ".join(words))), capsys.readouterr()
        assert status in (0, None), err
        return out

    return run


@pytest.fixture
def answer(run):
    """answer(*words): the JSON that a command prints."""
    return lambda *words: json.loads(run(*words, "--json"))


@pytest.fixture
def refused(capsys):
    """refused(*words): the one line on stderr of a command that must refuse."""

    def refused(*words):
        try:
            status = main(shlex.split(" ".join(words)))
        except SystemExit as stopped:
            status = stopped.code
        out, err = capsys.readouterr()
        assert (status, out, err.count("\n")) == (2, "", 1) and err.startswith("error: "), (
            status,
            out,
            err,
        )
        return err

    return refused
