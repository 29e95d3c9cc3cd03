"""Whatever a user of an experiment gets wrong: one line, exit status 2, and no file; what flags
set.
"""

import re
import sys

from common.config import parse

import mnist_pca
import pytest

from tests.support.scripts import ROOT

DIGITS = "--smoke --quiet --dataset strokes"
WRONG = {
    f"mnist_pca.py {DIGITS}": {
        "--clip-norm -inf": "--clip-norm -inf",
        "--lot-size 700": "--lot-size 700",
        "--pca-dim 900": "--pca-dim 900",
        "--target-epsilon -1e-5": "--target-epsilon -1e-05",
        "--target-epsilon 1 --epochs 2": "not allowed with",
        "--target-epsilon 1 --baseline": "needs noise",
        "--epsilon 1 --noise small": "epsilon is 1.231 at --delta 1e-05 before the first step",
        "--epsilon 1 --target-epsilon 1": "argument --target-epsilon/--epsilon: given twice",
        "--frobnicate": "unrecognized",
        "--out /dev/null/x": "cannot be written",
        "--resume": "--folder",
        "--resume --out empty": "no run to resume",
        "--dataset mnist --data-dir nowhere": "train-images-idx3-ubyte.gz",
    },
    f"mnist_variants.py {DIGITS}": {
        "--baseline --final-noise-multiplier 3": "leave out --final-noise-multiplier",
        "--watch-norms --final-noise-multiplier 3": "--watch-norms goes with constant",
        "--stages 1": "--stages 1",
    },
    f"mnist_best.py {DIGITS}": {
        "--target-epsilon 1 --mean-noise-multiplier 1": "no noise multiplier up to",
        "--mean-noise-multiplier 0 --target-epsilon 1": "needs noise",
    },
    "cifar_transfer.py": {
        "": "expected one of",
        "pretrain": "--public-data DIR is needed",
        "pretrain --public-data nowhere --out x": "nowhere",
        "train --views -1": "--views -1",
        "train --views 3 --multiplicity 5": "at most 4: the --views 3",
    },
    "mnist_sweeps.py": {
        "--jobs 0": "--jobs 0",
        "--figure lot-rates --dataset mnist": "add --dataset strokes",
    },
    "accounting.py": {"ledgers --out /proc/none": "/proc/none"},
    "adult.py": {
        "": "take fairness/data/raw/adult.csv from the wheel of the package fairness 0.1.8"
    },
}


@pytest.mark.parametrize("script", sorted({line.split()[0] for line in WRONG}))
def test_every_script_has_help(script, run_script):
    said = run_script(f"{script} --help", check=0).stdout
    assert "--help" in said and (
        script != "cifar_transfer.py"
        or "pretrain, head, train, figure, finetuned, sentences" in said
    )


@pytest.mark.parametrize(
    "line, message",
    [(f"{line} {flags}", said) for line, rows in WRONG.items() for flags, said in rows.items()],
)
def test_bad_input_is_one_line_and_leaves_nothing(line, message, run_script, tmp_path):
    lines = run_script(line, check=2).stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ") and message in lines[0]
    assert not list(tmp_path.iterdir())


def test_flags_set_fields_of_their_type():
    flags = "--noise-multiplier 1/60 --noise large --steps 1e4 --quiet --no-train-metrics"
    config = parse(mnist_pca.Config, flags.split())
    assert config == mnist_pca.Config(
        noise_multiplier=1 / 60, noise="large", steps=10_000, quiet=True, train_metrics=False
    )
    assert isinstance(config.steps, int)


SCRIPTS = sorted((ROOT / "experiments").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_experiments_prepare_their_process_before_numpy_loads(path):
    """minidp picks OpenBLAS's kernels, which it can do only before NumPy loads."""
    _, _, code = path.read_text(encoding="utf-8").split('"""', 2)
    before, start, _ = code.partition("\ncommon.start(__name__)\n")
    loaded = re.findall(r"^(?:from|import) (\w+)", before, re.M)
    assert start and set(loaded) <= {*sys.stdlib_module_names, "common"}
