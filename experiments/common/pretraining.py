"""CIFAR's network, and `cifar_transfer.py pretrain`: ordinary training of it on public images."""
import math
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from minidp import nn
from minidp.backend import Backend, check_device
from minidp.data import centre_crop, load_public, standardise_images
from minidp.errors import ParameterError
from minidp.files import write_json
from minidp.mechanism import LinearDecay
from minidp.run import save_model
from minidp.run.progress import stop_on_interrupt
from minidp.run.record import git_commit, versions
from minidp.streams import Streams
from minidp.train import OPTIMIZERS, evaluate
from minidp.validate import non_negative_finite, seed_number

from .config import FRACTION, POSITIVE, Checked, command_of, option, tell, to_json
from .public import scale_initial_values, train_public

NAME = "cifar_transfer"
SIDE, CHANNELS, UNITS = 24, 64, 384  # Section 5.3: 24 x 24 crops, 64 channels, 384 units
SMOKE_IMAGES, SMOKE_EPOCHS = 500, 2
STATISTICS, SPREAD_FLOOR = 10_000, 0.1  # public images that features are standardised on; of the mean spread
SCALED_ON = 500  # public images that initial values are scaled on


@dataclass(frozen=True)
class PretrainConfig(Checked):
    """Flags of `pretrain`: ordinary training on public images."""

    public_data: str | None = option(None, "folder with train.bin and test.bin in CIFAR-100's record layout")
    out: str | None = option(None, "folder for pretrained.npz and what it takes to go on")
    epochs: int = option(20, "passes over the data", POSITIVE)
    batch_size: int = option(128, "examples per step", POSITIVE)
    optimizer: str = option("momentum", "of the mean gradient", choices=tuple(OPTIMIZERS))
    learning_rate: float = option(0.05, "at the first step, falling linearly to a hundredth at the last", non_negative_finite)
    weight_decay: float = option(5e-4, "times the weights, added to their gradient", non_negative_finite)
    dropout: float = option(0.0, "part of the units of both dense layers that is left out of each step", FRACTION)
    seed: int = option(0, "of initial values, order, augmentation and dropout (the data is public)", seed_number)
    device: str = option("auto", "where to compute: auto, cpu, gpu or gpu:N", check_device)
    quiet: bool = option(False, "no progress bar")
    smoke: bool = option(False, "a few hundred images, seconds")

    def __post_init__(self):
        for name in ("public_data", "out"):
            if getattr(self, name) is None:
                raise ParameterError(f"--{name.replace('_', '-')} DIR is needed")
        super().__post_init__()


def convolutions(rng):
    """Two 5 x 5 convolutions of 64 channels, each with ReLU and 2 x 2 max pooling: 24 -> 12 -> 6."""
    conv = lambda inputs: nn.Conv2D(inputs, CHANNELS, 5, rng=rng, padding="same", init=nn.init.he_normal)
    return [conv(3), nn.ReLU(), nn.MaxPool2D(2), conv(CHANNELS), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten()]


def dense_layers(rng, classes, dropout=0.0):
    """Two dense layers of 384 units, with dropout while they are pre-trained, and the softmax layer."""
    dense = lambda inputs, outputs: nn.Dense(inputs, outputs, rng=rng, init=nn.init.he_normal)
    drop = lambda: [nn.Dropout(dropout)] if dropout else []
    return [dense((SIDE // 4) ** 2 * CHANNELS, UNITS), nn.ReLU(), *drop(), dense(UNITS, UNITS), nn.ReLU(), *drop(),
            dense(UNITS, classes)]


def standardised(network, images):
    """The same function with what the convolutions give shifted and scaled: mean 0 and similar spread on `images`.

    The images (N, 32, 32, 3) are public, and so are the constants. Clipped gradients of the first dense layer then
    spend their norm on what differs between images.
    """
    layers = list(network.layers)
    at = next(i for i, layer in enumerate(layers) if layer.kind == "dense")
    features = nn.Sequential(layers[:at], network.input_shape).predict(
        standardise_images(centre_crop(images, SIDE)), batch_size=500)
    mean, spread = features.mean(axis=0), features.std(axis=0)
    scale = spread + SPREAD_FLOOR * spread.mean()  # some features are hardly ever above zero
    scale *= ((spread / scale) ** 2).sum() ** 0.5 / (spread**2).sum() ** 0.5  # the mean squared length stays
    dense = layers[at].params
    dense["b"] += mean @ dense["W"]
    dense["W"] *= scale[:, None]
    return nn.Sequential([*layers[:at], nn.Standardise(mean, scale), *layers[at:]], network.input_shape)


def pretrain(config):
    """Train the whole network on the public set; returns the exit status."""
    if config.smoke and config.epochs == PretrainConfig.epochs:
        config = replace(config, epochs=SMOKE_EPOCHS)
    dataset = load_public(config.public_data)
    backend, streams, out = Backend.pick(config.device, partial(tell, config)), Streams(config.seed), Path(config.out)
    x, y, x_test, y_test = (array[: SMOKE_IMAGES if config.smoke else None] for array in (
        dataset.x_train, dataset.y_train, dataset.x_test, dataset.y_test))
    layers = convolutions(streams.init) + dense_layers(streams.init, dataset.classes, config.dropout)
    network = nn.Sequential(layers, (SIDE, SIDE, 3)).to(backend)
    steps = config.epochs * math.ceil(x.shape[0] / config.batch_size)
    optimizer = OPTIMIZERS[config.optimizer](LinearDecay(config.learning_rate, config.learning_rate / 100, steps))
    seen = standardise_images(centre_crop(backend.asarray(x[:STATISTICS]), SIDE))
    scale_initial_values(network, seen[:SCALED_ON])
    out.mkdir(parents=True, exist_ok=True)
    fixed = {key: value for key, value in to_json(config).items() if key not in ("out", "public_data", "quiet")}
    with stop_on_interrupt() as stop:
        history, done = train_public(
            out, fixed, network, optimizer, streams, backend.asarray(x), backend.asarray(y),
            standardise_images(centre_crop(backend.asarray(x_test), SIDE)), backend.asarray(y_test),
            epochs=config.epochs, batch_size=config.batch_size, weight_decay=config.weight_decay, quiet=config.quiet,
            should_stop=stop)
    if not done:
        print(f"interrupted after epoch {len(history)}; the same command goes on from there", file=sys.stderr)
        return 130
    learned = evaluate(network, nn.SoftmaxCrossEntropy(), seen, backend.asarray(y[:STATISTICS]), batch_size=512)
    about = {"experiment": NAME, "command": command_of(f"{NAME}.py pretrain", config, ("out", "public_data", "quiet")),
             "config": fixed, "device": backend.name, "public_data": dataset.notice or dataset.name, "classes": dataset.classes,
             "images": int(x.shape[0]), "test_accuracy": history[-1]["test_accuracy"],
             "train_accuracy": learned.accuracy, "history": history,
             "seconds": sum(row["seconds"] for row in history), "versions": versions(), "commit": git_commit()}
    save_model(out / "pretrained.npz", standardised(network, backend.asarray(x[:STATISTICS])), about)
    write_json(out / "pretrain.json", about)
    print(f"accuracy {about['test_accuracy']:.2%} on {dataset.classes} classes after {config.epochs} epochs, "
          f"{about['train_accuracy']:.2%} on {len(seen):,} of the images trained on")
    print(f"quote: nothing private was trained on: no epsilon\nread:  {out / 'pretrain.json'} (network: {out / 'pretrained.npz'})\n"
          f"next:  python experiments/{NAME}.py train --pretrained {out / 'pretrained.npz'}")
    return 0
