"""Make the notebooks in experiments/lessons from the scripts beside them, or check them.

    python -m tools.lessons [NAME ...]
    python -m tools.lessons --check [NAME ...]

Each script runs from top to bottom, and its notebook is written with the outputs. With --check
nothing is written, and the outputs are compared with those of the committed notebook. The exit
status is 1 if a cell raises or prints a warning, a picture is empty or too large, or an output
differs. Words must be equal; numbers may differ by the cell's `tolerance=`, relative to the number,
which is 0 where a cell states none. A picture must have colour in each of its 24 blocks in which
the committed picture has some.
Needs pip install -e '.[lessons]'.
"""

import argparse
import base64
import io
import math
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

from minidp.util.files import atomic_write

ROOT = Path(__file__).resolve().parents[1]
LESSONS = ROOT / "experiments" / "lessons"
MOST_CELLS, MOST_LINES, MOST_BYTES = 12, 15, 60_000
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
BLOCKS = 4, 6  # of a picture, down and across
LEAST = 0.002  # the share of coloured pixels of a picture or block that is not empty
LANGUAGE = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def run(script):
    """The notebook of a script, run from top to bottom."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(script)
    notebook.metadata = LANGUAGE
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as own:
        os.environ.update(PYTHONPATH=path, IPYTHONDIR=own, JUPYTER_RUNTIME_DIR=own)
        where = {"metadata": {"path": str(LESSONS)}}
        NotebookClient(
            notebook,
            timeout=180,
            resources=where,
            record_timing=False,
            extra_arguments=["--log-level=ERROR"],
        ).execute()
    notebook.metadata = LANGUAGE  # without the version of Python
    for cell in code_cells(notebook):
        cell.outputs = [each for each in cell.outputs if not _wait(each)]
    return notebook


def _wait(output):
    """Whether an output is a line that says what a wait is for."""
    return output.get("name") == "stderr" and "Warning" not in output.text


def code_cells(notebook):
    """The cells of code, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(cell):
    """(what a cell printed, its pictures as PNG)."""
    texts, pictures = [], []
    for each in cell.outputs:
        data = each.get("data", {})
        if "image/png" in data:
            pictures.append(base64.b64decode(data["image/png"]))
        else:
            texts.append(each.get("text") or data.get("text/plain", ""))
    return "".join(texts), pictures


def colour(picture):
    """(4, 6) shares of coloured pixels; frames and letters are grey."""
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(picture))[..., :3]
    coloured = np.ptp(pixels, axis=2) > 0.1
    rows = np.array_split(coloured, BLOCKS[0], axis=0)
    return np.array(
        [[part.mean() for part in np.array_split(row, BLOCKS[1], axis=1)] for row in rows]
    )


def faults(notebook):
    """What no lesson may have, in a line each."""
    cells = code_cells(notebook)
    if len(cells) > MOST_CELLS:
        yield f"{len(cells)} code cells, at most {MOST_CELLS}"
    for number, cell in enumerate(cells, 1):
        text, pictures = outputs(cell)
        if cell.source.count("\n") >= MOST_LINES:
            yield f"code cell {number}: more than {MOST_LINES} lines"
        if any(each.get("name") == "stderr" for each in cell.outputs):
            yield f"code cell {number}: a warning: {text:.200}"
        if any(place in text for place in (str(ROOT), str(Path.home()), tempfile.gettempdir())):
            yield f"code cell {number}: names a folder of this machine"
        for picture in pictures:
            if len(picture) > MOST_BYTES:
                yield f"code cell {number}: a picture of {len(picture)} bytes"
            if colour(picture).mean() < LEAST:
                yield f"code cell {number}: an empty picture"


def differences(committed, found):
    """Where a run differs from the committed notebook by more than its cells allow."""
    if [cell.source for cell in committed.cells] != [cell.source for cell in found.cells]:
        yield "the committed notebook is not of this script"
        return
    for number, (old, new) in enumerate(zip(code_cells(committed), code_cells(found)), 1):
        (old_text, old_pictures), (new_text, new_pictures) = outputs(old), outputs(new)
        within = new.metadata.get("tolerance", 0)
        if not alike(old_text, new_text, within):
            yield f"code cell {number}: expected within {within:g}\n{old_text}got\n{new_text}"
        if len(old_pictures) != len(new_pictures):
            yield f"code cell {number}: {len(new_pictures)} pictures, not {len(old_pictures)}"
        for before, after in zip(old_pictures, new_pictures):
            if np.any((colour(before) > 10 * LEAST) & (colour(after) < LEAST)):
                yield f"code cell {number}: a part of the picture is empty"


def alike(committed, found, within):
    """Whether two texts have the same words, and numbers that differ by at most a share."""
    if NUMBER.sub("", committed) != NUMBER.sub("", found):
        return False
    pairs = zip(NUMBER.findall(committed), NUMBER.findall(found))
    return all(
        math.isclose(*(float(each.replace(",", "")) for each in pair), rel_tol=within)
        for pair in pairs
    )


def main(argv=None):
    """Make or check lessons; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.lessons", description=__doc__.splitlines()[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="as 1_one_example; default: all")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args(argv)
    import nbformat
    from nbclient.exceptions import CellExecutionError

    wrong = 0
    for name in args.names or sorted(path.stem for path in LESSONS.glob("*.py")):
        path = LESSONS / f"{name}.ipynb"
        try:
            notebook = run(LESSONS / f"{name}.py")
            found = list(faults(notebook))
            if args.check:
                found += differences(nbformat.read(path, 4), notebook)
        except CellExecutionError as error:
            found = [str(error)]
        if not found and not args.check:
            with atomic_write(path) as file:
                file.write(nbformat.writes(notebook) + "\n")
        print("\n".join(found and [f"{name}: {each}" for each in found] or [f"{name}: ok"]))
        wrong += bool(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
