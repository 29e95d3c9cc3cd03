"""A place to keep compiled kernels is no condition of running, and neither is Numba's compiler."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import minidp

ROOT = Path(minidp.__file__).parent
FIT = """
import numpy as np, minidp
x = np.random.default_rng(0).normal(size=(200, 3)).astype("f4")
model = minidp.fit(x, (x[:, 0] > 0).astype(int), epsilon=1, classes=[0, 1], dataset_size=200,
                   steps=2, hidden=4, bounds=(-4, 4), seed=1, quiet=True)
print(model.predict_proba(x[:20]).tolist())
"""
PREDICT = """
import sys, numpy as np, minidp
print(minidp.load_model(sys.argv[1]).predict(np.zeros((2, 3), "f4")).tolist())
"""
COMPILE = """
import numpy as np, minidp
from minidp.host.elementwise import relu
x = np.array([-1, 2], np.float32)
relu(x, y := np.empty_like(x))
print(y.tolist())
"""


@pytest.fixture(scope="module")
def homeless():
    """A function that runs lines of Python where Numba finds no folder: the package's own is taken
    by files, and there is no home.
    """
    at = Path(tempfile.mkdtemp(prefix="minidp-homeless-"))
    at.chmod(0o755)
    shutil.copytree(ROOT, at / "minidp", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("host", "privacy", "privacy/pld"):
        (at / "minidp" / folder / "__pycache__").touch()
    x = np.random.default_rng(0).normal(size=(200, 3)).astype("f4")
    known = dict(classes=[0, 1], dataset_size=200, steps=2, hidden=4, seed=1, quiet=True)
    model = minidp.fit(x, (x[:, 0] > 0).astype(int), epsilon=1, bounds=(-4, 4), **known)
    model.save(at / "model.npz")
    (at / "model.npz").chmod(0o644)

    def run(code, python=sys.executable, user=None, **environment):
        packages = [entry for entry in sys.path if entry.endswith("site-packages")]
        set_ = {
            "PATH": os.environ["PATH"],
            "HOME": "/dev/null",
            "MPLCONFIGDIR": tempfile.gettempdir(),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(at), *packages]),
            **environment,
        }
        command = [python, "-c", code, str(at / "model.npz")]
        done = subprocess.run(command, env=set_, capture_output=True, text=True, cwd=at, user=user)
        assert done.returncode == 0, done.stderr[-2000:]
        return done

    run.compiled = model.predict_proba(x[:20])
    yield run
    shutil.rmtree(at)


@pytest.mark.parametrize("environment", [{}, {"NUMBA_CACHE_DIR": "/dev/null/none"}])
def test_without_a_folder_for_kernels_a_line_names_the_variable_that_gives_one(
    environment, homeless
):
    found = homeless(COMPILE, **environment)
    (line,) = found.stderr.splitlines()
    assert found.stdout == "[0.0, 2.0]\n" and "compiling kernels for this process" in line
    assert "NUMBA_CACHE_DIR" in line


def test_without_a_compiler_the_definitions_train_the_same_model(homeless):
    found = homeless(FIT, NUMBA_DISABLE_JIT="1")
    assert np.abs(np.array(json.loads(found.stdout)) - homeless.compiled).max() < 1e-6
    assert found.stderr == ""


def test_another_user_without_a_home_predicts(homeless):
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    if os.geteuid() != 0 or not os.path.exists(python):
        pytest.skip("needs root, and an interpreter that the user nobody may run")
    packages = [entry for entry in sys.path if entry.endswith("site-packages")]
    readable = subprocess.run(
        [python, "-c", "import numpy"],
        env={"PYTHONPATH": os.pathsep.join(packages)},
        capture_output=True,
        cwd="/",
        user="nobody",
    )
    if readable.returncode:
        pytest.skip("NOT READABLE: the user nobody may not read the packages of this environment")
    for code in (PREDICT, COMPILE):
        assert homeless(code, python, "nobody").stdout
