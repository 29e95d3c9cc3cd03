"""Running an experiment as its user does, in an empty folder and on the synthetic digits."""

import json
import shlex
from importlib import import_module
from types import SimpleNamespace

import pytest

from minidp.privacy import Ledger


@pytest.fixture
def run_script(tmp_path, monkeypatch, capsys):
    """run_script("mnist_pca.py --quiet") -> returncode, stdout, stderr; check: the exit status it
    must have.

    Calls the script's main in this process, which spares it the import of every library.
    """

    def run(line, check=None):
        script, *flags = shlex.split(line)
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("MINIDP_DATA", raising=False)
        capsys.readouterr()
        try:
            status = import_module(script.removesuffix(".py")).main(flags)
        except SystemExit as ended:
            status = ended.code
        said = capsys.readouterr()
        status = status if isinstance(status, int) else 0  # some mains return their result
        if check is not None:
            assert status == check, said.err + said.out
        return SimpleNamespace(returncode=status, stdout=said.out, stderr=said.err)

    return run


@pytest.fixture
def made(run_script, tmp_path):
    """made(line): the run that this makes in the folder `out`, its files as they are read."""

    def made(line):
        done, out = run_script(f"{line} --out out", check=0), tmp_path / "out"
        return SimpleNamespace(
            stdout=done.stdout,
            out=out,
            result=json.loads((out / "result.json").read_text()),
            ledger=Ledger.load(out / "ledger.json"),
            statement=(out / "privacy.md").read_text(),
        )

    return made
