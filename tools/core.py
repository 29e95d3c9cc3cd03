"""Run the core alone: its tests and the paper's job in a copy without anything else of minidp; and
count what each part of the package costs.

    python -m tools.core OUT        copy, test, train; exit status 1 if something fails
    python -m tools.core --prices   tokens, files and lines of the core and of each ring

Nothing else of minidp is in OUT, so that a core that needs a ring fails. The paper's job in small
(`tools/core_job.py`) has to give the same epsilon as with the whole library.
"""

import json
import os
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from tools.check_imports import CORE, RINGS, ROOT, part_of, tokens_of

JOB = Path(__file__).with_name("core_job.py")
# what tests/core and the job need beside the core
BESIDE = ("tests/__init__.py", "tests/core", "tests/support", "setup.cfg")
MOST_FILES, MOST_LINES = 88, 10_000  # of the core
# rings that are dearer than their price: what they may cost until something leaves them. These
# numbers only fall.
DEARER = {
    "fast": 12_884,
    "layers": 6_187,
    "mpi": 1_621,
    "data": 10_459,
    "run": 33_100,
    "fitting": 21_517,
    "audit": 43_942,
    "steptest": 10_610,
}
PRICES = {  # tokens without comments and docstrings
    "core": 48_000,
    "fast": 11_000,
    "layers": 6_100,
    "certified": 10_200,
    "mpi": 1_600,
    "data": 9_500,
    "run": 27_500,
    "fitting": 19_000,
    "audit": 40_000,
    "steptest": 9_500,
    "commands": 6_500,
}


def files_of(row, package=ROOT / "minidp"):
    """The Python files of the core or of a ring, in order; a package's `__init__` is core's where
    the folder is.
    """
    found = sorted(path for path in package.rglob("*.py") if "__pycache__" not in path.parts)
    return [path for path in found if _row(path.relative_to(package).as_posix()) == row]


def _row(file):
    part = part_of(file)
    return part if part in RINGS else "core"


def copy_core(out):
    """Copy the core, its tests and what these need to the empty folder `out`."""
    if out.exists() and any(out.iterdir()):
        raise SystemExit(f"error: {out} is not empty; name a folder that is, or a new one")
    package = ROOT / "minidp"
    others = [package / "__init__.pyi", package / "py.typed"]
    others += [stub for part in CORE for stub in (package / part).glob("*.pyi")]
    for path in [*files_of("core"), *others]:
        target = out / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for name in BESIDE:
        path, target = ROOT / name, out / name
        if path.is_dir():
            shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    shutil.copyfile(JOB, out / JOB.name)


def job(folder):
    """What the job prints, as a dictionary, with the minidp of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, str(JOB)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the job failed in {folder}:\n{done.stderr}")
    return json.loads(done.stdout)


def alone(out):
    """Copy, test and train; returns the exit code."""
    copy_core(out)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/core"]
    if subprocess.run(command, cwd=out).returncode:
        print(f"core: its tests fail in {out}")
        return 1
    here, whole = job(out), job(ROOT)
    rings = [name for name in here["modules"] if _row(f"{name.replace('.', '/')}.py") != "core"]
    same = all(here[key] == whole[key] for key in ("epsilon", "steps", "accuracy"))
    print(
        f"core: the paper's job in small, {here['steps']} lots: epsilon {here['epsilon']:.6g}, "
        f"accuracy {here['accuracy']:.4f}; with the whole library {whole['epsilon']:.6g}, "
        f"{whole['accuracy']:.4f}; {len(here['modules'])} modules loaded, {len(rings)} of rings"
    )
    return 0 if same and not rings else 1


def prices():
    """Print a row for the core and each ring; returns 1 if one costs more than it may."""
    over, dearer = [], []
    print(f"{'':10} {'tokens':>7} {'price':>7} {'files':>6} {'lines':>7}")
    for row, price in PRICES.items():
        paths = files_of(row)
        tokens = sum(map(tokens_of, paths))
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        print(f"{row:10} {tokens:7,} {price:7,} {len(paths):6} {lines:7,}")
        if tokens > price:
            dearer.append(row)
        if tokens > DEARER.get(row, price):
            over.append(row)
        if row == "core" and (len(paths) > MOST_FILES or lines > MOST_LINES):
            over.append(row)
    if dearer:
        print(f"dearer than their price: {', '.join(dearer)}")
    if over:
        print(f"over what they may cost: {', '.join(over)}")
    return 1 if over else 0


if __name__ == "__main__":
    parser = ArgumentParser("python -m tools.core", description=__doc__.partition("\n\n")[0])
    parser.add_argument("out", nargs="?", type=Path, metavar="OUT", help="an empty or new folder")
    parser.add_argument("--prices", action="store_true", help="print what each part costs, and end")
    asked = parser.parse_args()
    if asked.prices == bool(asked.out):
        parser.error("expected a folder OUT, or --prices")
    sys.exit(prices() if asked.prices else alone(asked.out.absolute()))
