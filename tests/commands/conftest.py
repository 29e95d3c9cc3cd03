"""The command line as a test asks it, in a folder of its own."""

import json

import pytest

from minidp.__main__ import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder where the commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """run(*flags): what a command that must succeed prints on stdout."""

    def run(*flags):
        status, (out, err) = main(list(flags)), capsys.readouterr()
        assert status in (0, None), err
        return out

    return run


@pytest.fixture
def answer(run):
    """answer(*flags): the JSON that a command prints."""
    return lambda *flags: json.loads(run(*flags, "--json"))


@pytest.fixture
def refused(capsys):
    """refused(*flags): the one line on stderr of a command that must refuse."""

    def refused(*flags):
        try:
            status = main(list(flags))
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
