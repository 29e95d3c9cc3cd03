"""Whatever a user of an experiment gets wrong: one line, exit status 2, and no file; what flags
set.
"""

from dataclasses import dataclass

from common.config import option, parse, to_json

import pytest

from tests.support.scripts import ROOT

DIGITS = ("--smoke", "--quiet", "--dataset", "strokes")
WRONG = {
    ("mnist_pca.py", *DIGITS): [
        (("--clip-norm", "nan"), "clip_norm=nan"),
        (("--lot-size", 700), "lot_size=700"),
        (("--pca-dim", 900), "pca_dim=900"),
        (("--target-epsilon", 0), "target_epsilon=0.0"),
        (("--target-epsilon", 1, "--epochs", 2), "not allowed with"),
        (("--target-epsilon", 1, "--baseline"), "needs noise"),
        (("--target-epsilon", 1, "--noise", "small"), "before the first step"),
        (("--frobnicate",), "unrecognized"),
        (("--noise", "tiny"), "choose from"),
        (("--out", "/dev/null/x"), "cannot be written"),
        (("--resume",), "--out"),
        (("--resume", "--out", "empty"), "no run to resume"),
        (("--dataset", "mnist", "--data-dir", "nowhere"), "train-images-idx3-ubyte.gz"),
    ],
    ("mnist_variants.py", *DIGITS): [
        (("--baseline", "--final-noise-multiplier", 3), "leave out --final-noise-multiplier"),
        (("--watch-norms", "--final-noise-multiplier", 3), "--watch-norms goes with constant"),
        (("--stages", 1), "stages=1"),
    ],
    ("mnist_cnn.py", *DIGITS): [
        (("--baseline", "--arithmetic", "exact"), "the grid of --arithmetic exact"),
    ],
    ("mnist_best.py", *DIGITS): [
        (("--target-epsilon", 1, "--mean-noise-multiplier", 1), "no noise multiplier up to"),
        (("--mean-noise-multiplier", 0, "--target-epsilon", 1), "needs noise"),
    ],
    ("cifar_transfer.py",): [
        ((), "expected one of"),
        (("pretrain",), "--public-data DIR is needed"),
        (("pretrain", "--public-data", "nowhere", "--out", "x"), "nowhere"),
        (("figure", "--draw", "--out", "."), "leave out --draw"),
        (("train", "--views", -1), "views=-1"),
        (("train", "--views", 3, "--multiplicity", 5), "at most 4: the --views 3"),
    ],
    ("mnist_sweeps.py",): [
        (("--jobs", 0), "jobs=0"),
        (("--partial",), "--partial needs --draw"),
        (("--figure", "lot-rates", "--dataset", "mnist"), "say --dataset strokes"),
    ],
    ("accounting.py",): [(("ledgers", "--out", "/proc/none"), "/proc/none")],
    ("settings.py",): [
        (("mnist_best", "--json", "none/found.json"), "expected a file in a folder"),
        (("cifar_best",), "--public-data DIR is needed"),
        (("cifar_transfer", "--public-data", "."), "--pretrained FILE is needed"),
    ],
}


@pytest.mark.parametrize("script", sorted({command[0] for command in WRONG}))
def test_every_script_has_help(script, run_script):
    said = run_script(script, "--help", check=0).stdout
    assert "--help" in said and (
        script != "cifar_transfer.py"
        or "pretrain, head, train, baseline, figure, finetuned, sentences" in said
    )


@pytest.mark.parametrize(
    "command, flags, message",
    [
        pytest.param(command, flags, message, id=" ".join(map(str, (command[0], *flags))))
        for command, rows in WRONG.items()
        for flags, message in rows
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(command, flags, message, run_script, tmp_path):
    done = run_script(*command, *flags, check=2)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ") and message in lines[0]
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Config:
    noise_multiplier: float = option(4.0, "sigma, in 100% of C")
    lot_size: int = option(600, "L")
    noise: str = option("medium", "level", choices=("small", "medium", "large"))
    target_epsilon: float | None = option(None, "epsilon", exclusive="length")
    steps: int | None = option(None, "T", exclusive="length")
    epochs: int | None = option(None, "E", exclusive="length")
    quiet: bool = option(False, "no bar")
    train_metrics: bool = option(True, "no accuracy on the training set")


def test_flags_set_fields_of_their_type():
    config = parse(
        Config,
        [
            "--noise-multiplier",
            "1/60",
            "--lot-size",
            "300",
            "--noise",
            "large",
            "--quiet",
            "--no-train-metrics",
            "--steps",
            "1e4",
        ],
    )
    assert config == Config(
        noise_multiplier=1 / 60,
        lot_size=300,
        noise="large",
        quiet=True,
        train_metrics=False,
        steps=10_000,
    )
    assert isinstance(config.noise_multiplier, float) and config.epochs is None
    assert parse(Config, []) == Config() and to_json(Config(epochs=3))["epochs"] == 3


@pytest.mark.parametrize("number", ["-1e-5", "-3", "-.5", "-inf", "inf"])
def test_numbers_below_zero_and_infinity_reach_the_dataclass(number):
    assert parse(Config, ["--target-epsilon", number]).target_epsilon == float(number)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "experiments").glob("*.py")), ids=lambda path: path.name
)
def test_experiments_load_minidp_before_numpy(path):
    """minidp picks OpenBLAS's kernels, which it can do only before NumPy loads."""
    lines = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(("import ", "from "))
    ]
    others = [
        i
        for i, line in enumerate(lines)
        if line.split()[1].partition(".")[0] in ("numpy", "scipy", "matplotlib")
    ]
    ours = [i for i, line in enumerate(lines) if line.split()[1].startswith("common")]
    assert ours and all(i > ours[0] for i in others)
