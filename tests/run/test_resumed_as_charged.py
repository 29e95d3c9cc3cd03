"""A resumed run does what was charged: schedules are compared by their numbers, and the loss and
the layers by their names.
"""

import json

import numpy as np
import pytest

from minidp import nn
from minidp.errors import CheckpointError, TrialError
from minidp.mechanism.schedule import LinearDecay, Tabulated, from_json, text, to_json
from minidp.run import Run
from minidp.run.checkpoint import load_arrays, save_arrays
from minidp.run.verify import verify
from minidp.train import SGD
from tests.support.running import interrupt, make_run, train


def halved(step):
    return 2.0 if step < 5 else 1.0


def lowered(step):
    return 2.0 if step < 5 else 0.5


lowered.__qualname__ = "halved"  # its body was changed


class Plain:
    """A schedule that is no dataclass."""

    def __init__(self, first):
        self.first = first

    def __call__(self, step):
        return self.first / (step + 1)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("setting", ["sigma", "clip_norm"])
@pytest.mark.parametrize("was, now", [(halved, lowered), (Plain(4.0), Plain(0.5))])
def test_a_schedule_whose_body_was_changed_is_refused(tmp_path, seed, setting, was, now):
    assert train(tmp_path, seed, stop=interrupt, **{setting: was}) is None
    with pytest.raises(CheckpointError, match=r"another configuration: .*\.runs.* was .* and is"):
        train(tmp_path, seed, **{setting: now})
    assert train(tmp_path, seed, **{setting: was})["steps"] == 10
    assert not verify(tmp_path).failed


def test_another_learning_rate_is_refused(tmp_path):
    assert train(tmp_path, stop=interrupt, optimizer=SGD(lambda step: 2e-3)) is None
    with pytest.raises(CheckpointError, match=r"learning_rate.runs\[0\]\[0\] was 0.002 and is 0.9"):
        train(tmp_path, optimizer=SGD(lambda step: 9e-1))


def test_a_schedule_that_draws_is_refused_when_it_is_asked_again(tmp_path):
    rng = np.random.default_rng(0)
    assert train(tmp_path, stop=interrupt, sigma=lambda step: rng.uniform(1, 3)) is None
    with pytest.raises(CheckpointError, match="noise_multiplier.runs"):
        train(tmp_path, sigma=lambda step: rng.uniform(1, 3))


def test_a_run_with_a_schedule_of_ones_own_can_be_verified(tmp_path):
    record = train(tmp_path, sigma=Plain(4.0))
    assert not verify(tmp_path).failed
    group = record["settings"]["clip_groups"][0]["noise_multiplier"]
    assert group["runs"] == [[4 / n, 1] for n in range(1, 11)]
    assert "sigma = Plain(from=0.4, to=4.0)" in (tmp_path / "privacy.md").read_text()


def test_numbers_of_a_schedule_are_written_in_runs_and_read_back():
    written = to_json(halved, 8)
    assert written == {"schedule": "halved", "runs": [[2.0, 5], [1.0, 3]]}
    read = from_json(json.loads(json.dumps(written)))
    assert isinstance(read, Tabulated) and [*map(read, range(9))] == [*map(halved, range(9))]
    assert to_json(read, 0) == written and text(written) == "halved(from=1.0, to=2.0)"
    assert to_json(lambda step: float("inf"), 2)["runs"] == [["inf", 2]]
    assert "runs" not in to_json(LinearDecay(1.0, 0.5, 3), 8)


def mean_loss(z, target):
    losses, dz = nn.SoftmaxCrossEntropy()(z, target)
    return losses, dz / len(dz)


class Twice(nn.SoftmaxCrossEntropy):
    """A right loss of another name."""


def test_another_loss_or_layer_is_refused_by_name(tmp_path):
    train(tmp_path, 5, stop=interrupt)
    for loss in (mean_loss, Twice()):
        name = getattr(loss, "__name__", "Twice")
        with pytest.raises(
            CheckpointError, match=f"trained.loss was 'SoftmaxCrossEntropy' and is '{name}'"
        ):
            train(tmp_path, 5, loss=loss)
    run = make_run(tmp_path, 5)
    training = run.training
    layers = [*run.network.layers]
    layers[1] = nn.Tanh()
    layers[1].name = "relu1"
    object.__setattr__(training, "network", nn.Sequential(layers, (4,)))
    with pytest.raises(CheckpointError, match="trained.layers.relu1 was 'ReLU' and is 'Tanh'"):
        Run(tmp_path, training, run.privacy, run.about).open()


def forget(config):
    """Take out of a configuration what 0.1.0 did not write."""
    del config["trained"]
    for group in config["settings"]["clip_groups"]:
        if isinstance(group["noise_multiplier"], dict):
            del group["noise_multiplier"]["runs"]


def unnamed(folder):
    """Make the files of a run those of a version that named neither loss nor layers, nor the
    numbers of schedules.
    """
    config = json.loads((folder / "config.json").read_text())
    forget(config)
    (folder / "config.json").write_text(json.dumps(config))
    arrays, header = load_arrays(folder / "checkpoint.npz")
    forget(header["config"])
    save_arrays(folder / "checkpoint.npz", arrays, header)


@pytest.mark.parametrize("seed", [None, 5])
def test_a_folder_without_names_is_resumed_if_the_trial_passes(tmp_path, capsys, seed):
    train(tmp_path, seed, stop=interrupt)
    unnamed(tmp_path)
    with pytest.raises(TrialError, match="loss mean_loss: dz shrinks with the batch size"):
        train(tmp_path, seed, loss=mean_loss)
    capsys.readouterr()
    assert train(tmp_path, seed)["steps"] == 10
    notice = capsys.readouterr().err
    assert notice.count("NOTICE") == 1 and "does not name trained" in notice
    assert not verify(tmp_path).failed


@pytest.mark.parametrize("seed", [None, 5])
def test_without_numbers_of_a_schedule_what_was_charged_is_compared(tmp_path, seed):
    def falling(now):
        return lambda step: 2.0 if step < 5 else now if step < 10 else 1.0

    given = {"steps": 20, "measure_every": 10, "seed": seed}
    assert train(tmp_path, sigma=falling(1.5), stop=interrupt, **given) is None
    unnamed(tmp_path)
    with pytest.raises(CheckpointError, match="were charged and did not run yet"):
        train(tmp_path, sigma=falling(0.5), **given)
    assert train(tmp_path, sigma=falling(1.5), **given)["steps"] == 20
    assert not verify(tmp_path).failed
