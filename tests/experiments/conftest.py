"""Running an experiment as its user does, in an empty folder and on the drawn digits."""
from importlib import import_module
from types import SimpleNamespace

import pytest


@pytest.fixture
def run_script(tmp_path, monkeypatch, capsys):
    """run_script("mnist_pca.py", *flags) -> returncode, stdout, stderr; check: the exit status it must have.

    Calls the script's main in this process, which spares it the import of every library.
    """

    def run(script, *flags, check=None):
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("MINIDP_DATA", raising=False)
        capsys.readouterr()
        try:
            status = import_module(script.removesuffix(".py")).main([str(flag) for flag in flags])
        except SystemExit as ended:
            status = ended.code
        said = capsys.readouterr()
        status = status if isinstance(status, int) else 0  # some mains return their result
        if check is not None:
            assert status == check, said.err + said.out
        return SimpleNamespace(returncode=status, stdout=said.out, stderr=said.err)

    return run
