"""Make the notebooks in experiments/lessons from the scripts beside them, or check them.

    python -m tools.lessons [NAME ...]
    python -m tools.lessons --check [NAME ...]

Each script runs from top to bottom, and its notebook is written with the outputs. With --check
nothing is written, and the exit status is 1 if a cell raises, or if an output differs from the
committed one. Words must be equal. Numbers may differ by the cell's `tolerance=`, relative to the
number, or not at all where the cell states none. A picture must have colour wherever the committed
picture has some, in blocks of a 24th of the picture. Needs pip install -e '.[lessons]'.
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
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
SOME, NONE = 0.02, 0.002  # shares of coloured pixels: of a block with something, and with nothing
LANGUAGE = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def run(script):
    """The notebook of a script, run from top to bottom."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(script)
    notebook.metadata = LANGUAGE
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as own:
        os.environ.pop("MPLBACKEND", None)  # the kernel has its own
        os.environ.update(PYTHONPATH=path, IPYTHONDIR=own, JUPYTER_RUNTIME_DIR=own)
        NotebookClient(
            notebook,
            resources={"metadata": {"path": str(LESSONS)}},
            record_timing=False,
            coalesce_streams=True,
            extra_arguments=["--log-level=ERROR"],
        ).execute()
    notebook.metadata = LANGUAGE  # without the version of Python
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        if cell.cell_type == "code":  # stderr says what a wait is for
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    return notebook


def outputs(cell):
    """(what a cell printed, its pictures as PNG)."""
    shown = [each.get("data", {"text/plain": each.get("text")}) for each in cell.get("outputs", ())]
    pictures = [base64.b64decode(each["image/png"]) for each in shown if "image/png" in each]
    texts = [each.get("text/markdown", each["text/plain"]) for each in shown]
    return "".join(texts), pictures


def colour(picture):
    """(24,) shares of coloured pixels in the blocks of a PNG; frames and letters are grey."""
    from matplotlib.image import imread

    coloured = np.ptp(imread(io.BytesIO(picture))[..., :3], axis=2) > 0.1
    rows = np.array_split(coloured, 4)
    return np.array([block.mean() for row in rows for block in np.array_split(row, 6, axis=1)])


def alike(committed, found):
    """Whether a cell's outputs differ from the committed ones by no more than the cell allows."""
    (old_text, old_pictures), (new_text, new_pictures) = outputs(committed), outputs(found)
    within = found.metadata.get("tolerance", 0.0)
    old, new = (
        [float(number.replace(",", "")) for number in NUMBER.findall(text)]
        for text in (old_text, new_text)
    )
    return (
        NUMBER.sub("", old_text) == NUMBER.sub("", new_text)
        and all(math.isclose(*pair, rel_tol=within) for pair in zip(old, new))
        and len(old_pictures) == len(new_pictures)
        and not any(
            np.any((colour(one) > SOME) & (colour(other) < NONE))
            for one, other in zip(old_pictures, new_pictures)
        )
    )


def differences(committed, found):
    """The cells that differ from the committed notebook's, as texts."""
    if [cell.source for cell in committed.cells] != [cell.source for cell in found.cells]:
        return ["the committed notebook is of another script"]
    return [
        f"{new.source}\nexpected {outputs(old)[0]}\ngot {outputs(new)[0]}"
        for old, new in zip(committed.cells, found.cells)
        if not alike(old, new)
    ]


def main(argv=None):
    """Make or check lessons; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.lessons", description=__doc__.splitlines()[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="as 1_one_example; default: all")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args(argv)
    import nbformat

    wrong = []
    for name in args.names or sorted(path.stem for path in LESSONS.glob("*.py")):
        path, notebook = LESSONS / f"{name}.ipynb", run(LESSONS / f"{name}.py")
        if args.check:
            wrong += [f"{name}: {each}" for each in differences(nbformat.read(path, 4), notebook)]
        else:
            with atomic_write(path) as file:
                file.write(nbformat.writes(notebook) + "\n")
    print("\n".join(wrong) or "all lessons run and agree" if args.check else "written")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
