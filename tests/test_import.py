"""Importing minidp loads no heavy library: those load when they are first used."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("numba", "scipy", "matplotlib", "cupy", "tqdm")


def python(script):
    return subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_import_loads_no_heavy_library():
    done = python(f"import sys, minidp; print([name for name in {HEAVY} if name in sys.modules])")
    assert (done.stdout, done.stderr) == ("[]\n", "")
