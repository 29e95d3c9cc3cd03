"""The lessons run from top to bottom and give what is committed; what differs is found."""

import base64
import io
import os
import subprocess
import sys

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.support.scripts import ROOT, environment
from tools.lessons import LESSONS, differences, outputs

NAMES = sorted(path.stem for path in LESSONS.glob("*.py"))
MACHINE = (str(ROOT), os.path.expanduser("~"), "/tmp", "/home")


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_gives_what_is_committed(name):
    command = [sys.executable, "-m", "tools.lessons", "--check", name]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_is_short_and_of_no_machine(name):
    cells = [c for c in nbformat.read(LESSONS / f"{name}.ipynb", 4).cells if c.cell_type == "code"]
    texts, pictures = zip(*map(outputs, cells))
    assert len(cells) <= 12 and max(cell.source.count("\n") for cell in cells) < 15
    assert max(map(len, sum(pictures, []))) <= 60_000
    assert not any(place in "".join(texts) for place in MACHINE)


def notebook(text, drawn, tolerance):
    """A notebook of one cell, which printed a text and a picture that is half red or white."""
    pixels, file = np.ones((40, 60, 3)), io.BytesIO()
    pixels[:, 30:, 1:] = not drawn
    plt.imsave(file, pixels)
    picture = {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": ""}
    shown = [new_output("stream", text=text), new_output("display_data", data=picture)]
    cell = new_code_cell("x", outputs=shown, metadata={"tolerance": tolerance})
    return new_notebook(cells=[cell])


@pytest.mark.parametrize(
    "text, drawn, tolerance, found",
    [
        ("1,000 rows: 50.6%", True, 0.01, False),
        ("1,000 rows: 51.1%", True, 0.01, True),
        ("1,000 rows: 50.6%", True, 0.0, True),
        ("1,000 lots: 50.5%", True, 0.01, True),
        ("1,000 rows: 50.5%", False, 0.01, True),
    ],
)
def test_what_differs_is_found(text, drawn, tolerance, found):
    committed = notebook("1,000 rows: 50.5%", True, 0.0)
    assert bool(differences(committed, notebook(text, drawn, tolerance))) == found
