from dataclasses import dataclass

import pytest
from common.config import option, parse, to_json

from tests.support.scripts import ROOT


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
    config = parse(Config, ["--noise-multiplier", "1/60", "--lot-size", "300", "--noise", "large", "--quiet",
                            "--no-train-metrics", "--steps", "1e4"])
    assert config == Config(noise_multiplier=1 / 60, lot_size=300, noise="large", quiet=True, train_metrics=False,
                            steps=10_000)
    assert isinstance(config.noise_multiplier, float) and config.epochs is None
    assert parse(Config, []) == Config() and to_json(Config(epochs=3))["epochs"] == 3


@pytest.mark.parametrize("number", ["-1e-5", "-3", "-.5", "-inf", "inf"])
def test_numbers_below_zero_and_infinity_reach_the_dataclass(number):
    assert parse(Config, ["--target-epsilon", number]).target_epsilon == float(number)


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.py")), ids=lambda path: path.name)
def test_experiments_load_minidp_before_numpy(path):
    """minidp picks OpenBLAS's kernels, which it can do only before NumPy loads."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(("import ", "from "))]
    others = [i for i, line in enumerate(lines) if line.split()[1].partition(".")[0] in ("numpy", "scipy", "matplotlib")]
    ours = [i for i, line in enumerate(lines) if line.split()[1].startswith("common")]
    assert ours and all(i > ours[0] for i in others)
