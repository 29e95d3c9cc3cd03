"""The project's structure: imports point downward and load nothing heavy, equations have their code and checks."""
import subprocess
import sys
from pathlib import Path

import pytest

from minidp.audit import checks
from tools import check_cards, check_imports

ROOT = Path(__file__).resolve().parents[1]


def test_imports_point_downward(capsys):
    assert check_imports.main(ROOT) == 0, capsys.readouterr().out


def test_every_equation_has_its_code_and_its_check(capsys):
    assert check_cards.main(ROOT, checks.load()) == 0, capsys.readouterr().out


@pytest.mark.parametrize("module, heavy", [("minidp", ("numba", "scipy", "matplotlib", "cupy", "tqdm")),
                                           ("minidp.run", ("common", "matplotlib", "tqdm")),
                                           ("minidp.plotting", ("matplotlib",))])
def test_importing_loads_no_library_before_it_is_used(module, heavy):
    script = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
