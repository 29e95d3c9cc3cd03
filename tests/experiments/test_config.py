from dataclasses import FrozenInstanceError, dataclass

import pytest
from common.config import option, parse, to_json

from minidp.errors import ParameterError
from minidp.validate import non_negative
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

    def __post_init__(self):
        non_negative(noise_multiplier=self.noise_multiplier)


def test_defaults_are_the_dataclass_s():
    assert parse(Config, []) == Config()


def test_flags_set_fields_of_their_type():
    config = parse(Config, ["--noise-multiplier", "2", "--lot-size", "300", "--noise", "large", "--quiet",
                            "--no-train-metrics", "--steps", "7"])
    assert config == Config(noise_multiplier=2.0, lot_size=300, noise="large", quiet=True, train_metrics=False, steps=7)
    assert isinstance(config.noise_multiplier, float) and config.epochs is None
    with pytest.raises(FrozenInstanceError):
        config.steps = 8


def test_numbers_may_be_powers_of_ten_and_fractions():
    config = parse(Config, ["--steps", "1e4", "--noise-multiplier", "1/60"])
    assert (config.steps, config.noise_multiplier) == (10_000, 1 / 60)


@pytest.mark.parametrize("number", ["-1e-5", "-3", "-.5", "-inf", "inf"])
def test_numbers_below_zero_and_infinity_reach_the_dataclass(number):
    assert parse(Config, ["--target-epsilon", number]).target_epsilon == float(number)


@pytest.mark.parametrize("argv, named", [
    (["--nosuch", "3"], "--nosuch"), (["--lot", "3"], "--lot"), (["--lot-size", "many"], "--lot-size"),
    (["--lot-size", "2.5"], "--lot-size"), (["--lot-size"], "--lot-size"), (["--noise", "huge"], "'small'"),
    (["--steps", "3", "--epochs", "4"], "not allowed with"), (["--quiet", "yes"], "yes"), (["stray"], "stray"),
])
def test_bad_flags_are_one_line_and_exit_2(capsys, argv, named):
    with pytest.raises(SystemExit) as exit:
        parse(Config, argv)
    assert exit.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    assert err.startswith("error: ") and named in err


def test_what_the_dataclass_refuses_keeps_its_error():
    with pytest.raises(ParameterError, match="noise_multiplier=-1.0"):
        parse(Config, ["--noise-multiplier", "-1"])


def test_help_names_flags_defaults_and_choices(capsys):
    with pytest.raises(SystemExit) as exit:
        parse(Config, ["--help"], prog="job", description="What the job does.")
    assert exit.value.code == 0
    text = capsys.readouterr().out
    for part in ("job", "What the job does.", "--noise-multiplier", "100%", "(default: 4.0)", "--no-train-metrics",
                 "{small,medium,large}"):
        assert part in text


def test_json_form():
    assert to_json(Config(target_epsilon=float("inf"))) == {
        "noise_multiplier": 4.0, "lot_size": 600, "noise": "medium", "target_epsilon": "inf", "steps": None,
        "epochs": None, "quiet": False, "train_metrics": True,
    }


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.py")), ids=lambda path: path.name)
def test_experiments_load_minidp_before_numpy(path):
    """minidp picks OpenBLAS's kernels, which it can do only before NumPy loads."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(("import ", "from "))]
    others = [i for i, line in enumerate(lines) if line.split()[1].partition(".")[0] in ("numpy", "scipy", "matplotlib")]
    ours = [i for i, line in enumerate(lines) if line.split()[1].startswith("common")]
    assert ours and all(i > ours[0] for i in others)
