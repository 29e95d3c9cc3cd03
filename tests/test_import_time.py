"""Importing minidp is quick and compiles nothing: heavy libraries load when they are first used."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("numba", "scipy", "matplotlib", "cupy", "tqdm")
SECONDS = 0.5  # promised in the README


def python(script):
    return subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_import_loads_no_heavy_library():
    done = python(f"import sys, minidp; print([name for name in {HEAVY} if name in sys.modules])")
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_import_is_quick():
    script = "import time; t = time.perf_counter(); import minidp; print(time.perf_counter() - t)"
    times = []
    for _ in range(10):  # best of up to ten, since a busy machine only ever adds time
        times.append(float(python(script).stdout))
        if times[-1] < SECONDS:
            break
    assert min(times) < SECONDS
