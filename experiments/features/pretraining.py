"""CIFAR's network, and `cifar_transfer.py pretrain`: ordinary training of it on public images."""

import math
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from common.config import (
    FRACTION,
    POSITIVE,
    Checked,
    command_of,
    device_option,
    option,
    tell,
    to_json,
)

import numpy as np
from tqdm import tqdm

from datasets.augment import centre_crop, distort, draw_distortions, standardise_images
from datasets.cifar import load_public
from minidp import nn
from minidp.backend import Backend, namespace_of
from minidp.errors import ParameterError
from minidp.mechanism import LinearDecay
from minidp.privacy import Ledger
from minidp.run import load_checkpoint, restore_training, save_checkpoint, save_model
from minidp.run.progress import stop_on_interrupt
from minidp.run.versions import git_commit, versions
from minidp.streams import Streams
from minidp.train import Momentum, Progress, evaluate
from minidp.util.files import write_json
from minidp.util.validate import non_negative_finite, seed_number

NAME = "cifar_transfer"
NETWORKS = "paper", "deep"
SIDE, UNITS, GROUPS = 24, 384, 8  # Section 5.3: 24 x 24 crops, 384 units; ours: groups of channels
SMOKE_IMAGES, SMOKE_EPOCHS = 500, 2
STATISTICS = 10_000  # public images that features are standardised on
SPREAD_FLOOR = 0.1  # of the mean spread
SCALED_ON = 500  # public images that initial values are scaled on
HERE = ("out", "public_data", "quiet")  # flags that decide nothing
LAST = 0.1  # standard deviation of the first logits
WEIGHT_DECAY = 5e-4  # times the weights, added to their gradient


@dataclass(frozen=True)
class PretrainConfig(Checked):
    """Flags of `pretrain`: ordinary training on public images."""

    public_data: str | None = option(
        None, "folder with train.bin and test.bin in CIFAR-100's record layout"
    )
    out: str | None = option(None, "folder for pretrained.npz and a checkpoint")
    epochs: int = option(20, "passes over the data", POSITIVE)
    batch_size: int = option(128, "examples per step", POSITIVE)
    learning_rate: float = option(
        0.05, "at the first step, falling linearly to a hundredth at the last", non_negative_finite
    )
    dropout: float = option(
        0.0, "part of the dense layers' units that is left out of each step", FRACTION
    )
    network: str = option(
        "paper",
        "paper: the layers of Section 5.3; deep: three smaller convolutions, normalised",
        choices=NETWORKS,
    )
    seed: int = option(
        0, "of initial values, order, augmentation and dropout (the data is public)", seed_number
    )
    device: str = device_option()
    quiet: bool = option(False, "show no progress bar")
    smoke: bool = option(False, "a few hundred images, seconds")

    def __post_init__(self):
        for name in ("public_data", "out"):
            if getattr(self, name) is None:
                raise ParameterError(f"--{name.replace('_', '-')} DIR is needed")
        super().__post_init__()


def build(network, rng, classes, dropout=0.0):
    """Layers of `network`, up to Flatten and from there, the softmax layer's last; dropout while
    they are pre-trained.

    paper  two 5 x 5 convolutions of 64 channels, each with 2 x 2 max pooling and ReLU, and two
           dense layers of 384 units
    deep   three 3 x 3 convolutions of 32, 128 and 256 channels, likewise, and one dense layer of
           384 units; what each gives is normalised, within groups of channels (Wu and He 2018,
           arXiv:1803.08494) or whole (LayerNorm), where the network that the paper starts from has
           local response normalisation
    """
    deep = network == "deep"
    kernel, channels, units = (3, (32, 128, 256), [UNITS]) if deep else (5, (64, 64), [UNITS] * 2)
    he, inputs = nn.init.he_normal, 3
    convolutions, dense = [], []
    for outputs in channels:
        conv = nn.Conv2D(inputs, outputs, kernel, rng=rng, padding="same", init=he)
        convolutions += [conv, nn.MaxPool2D(2), nn.ReLU()]
        if deep:
            convolutions.append(nn.GroupNorm(outputs, GROUPS))
        inputs = outputs
    inputs *= (SIDE >> len(channels)) ** 2
    for outputs in units:
        if dropout and (deep or dense):
            dense.append(nn.Dropout(dropout))
        dense += [nn.Dense(inputs, outputs, rng=rng, init=he), nn.ReLU()]
        if deep:
            dense.append(nn.LayerNorm(outputs))
        inputs = outputs
    if dropout:
        dense.append(nn.Dropout(dropout))
    return [*convolutions, nn.Flatten()], [*dense, nn.Dense(inputs, classes, rng=rng, init=he)]


def standardised(network, images):
    """The same function with what the convolutions give shifted and scaled: mean 0 and similar
    spread on `images`.

    The images (N, 32, 32, 3) are public, and so are the constants. Clipped gradients of the first
    dense layer then spend their norm on what differs between images.
    """
    layers = list(network.layers)
    at = next(i for i, layer in enumerate(layers) if layer.kind == "dense")
    features = nn.Sequential(layers[:at], network.input_shape).predict(
        standardise_images(centre_crop(images, SIDE)), batch_size=500
    )
    mean, spread = features.mean(axis=0), features.std(axis=0)
    scale = spread + SPREAD_FLOOR * spread.mean()  # some features are hardly ever above zero
    # the mean squared length stays
    scale *= ((spread / scale) ** 2).sum() ** 0.5 / (spread**2).sum() ** 0.5
    dense = layers[at].params
    dense["b"] += mean @ dense["W"]
    dense["W"] *= scale[:, None]
    return nn.Sequential(
        [*layers[:at], nn.Standardise(mean, scale), *layers[at:]], network.input_shape
    )


def scale_initial_values(network, x):
    """Scale the weights layer by layer until each layer's outputs on x (B, *input_shape), public,
    have deviation 1.

    The last layer's have deviation LAST. Images and pooling are not what common initial values are
    made for; learning starts far faster so. Source: Mishkin and Matas 2016, arXiv:1511.06422, less
    the orthogonal start.
    """
    weighted = [layer for layer in network.layers if "W" in layer.params]
    for layer in network.layers:
        if layer in weighted:
            deviation = float(layer.forward(x)[0].std())
            layer.params["W"] *= np.float32((LAST if layer is weighted[-1] else 1) / deviation)
        x, _ = layer.forward(x)


def train_public(config, fixed, network, optimizer, streams, arrays, should_stop):
    """Train on augmented images x (N, 32, 32, 3) uint8; returns (history, True if all epochs are
    done).

    No clipping, no noise, no ledger. A checkpoint is written after each epoch and taken up again,
    if its run had the same `fixed` settings. arrays: x, y, x_test, which is ready for the network,
    y_test.
    """
    x, y, x_test, y_test = arrays
    path, history, first, epochs = Path(config.out) / "checkpoint.npz", [], 0, config.epochs
    if path.exists():
        stored, header = load_checkpoint(path, fixed)
        restore_training(path, stored, header, network, optimizer)
        history, first = header["history"], header["progress"].step
    loss, per_epoch = nn.SoftmaxCrossEntropy(), math.ceil(x.shape[0] / config.batch_size)
    bar = tqdm(
        total=epochs * per_epoch,
        initial=first * per_epoch,
        unit="batch",
        disable=True if config.quiet else None,
        file=sys.stderr,
        dynamic_ncols=True,
    )
    with bar:
        for epoch in range(first, epochs):
            began, order = time.perf_counter(), streams.sampling(epoch).permutation(x.shape[0])
            for i in range(per_epoch):
                batch = order[i * config.batch_size : (i + 1) * config.batch_size]
                number = epoch * per_epoch + i
                indices = namespace_of(x).asarray(batch)
                distortions = draw_distortions(len(batch), streams.views(number))
                views = standardise_images(distort(x[indices], distortions))
                rng = streams.dropout(number).rows(batch)
                step(network, loss, optimizer, views, y[indices], number, rng)
                bar.update()
                if should_stop():
                    return history, False
            metrics = evaluate(network, loss, x_test, y_test, batch_size=512)
            history.append(
                {
                    "epoch": epoch + 1,
                    "test_accuracy": metrics.accuracy,
                    "test_loss": metrics.loss,
                    "seconds": time.perf_counter() - began,
                }
            )
            bar.set_postfix_str(f"epoch {epoch + 1}, accuracy {metrics.accuracy:.2%}")
            save_checkpoint(
                path, network, optimizer, Ledger(), Progress(epoch + 1, epoch + 1), fixed, history
            )
    return history, True


def step(network, loss, optimizer, x, y, number, rng):
    """One step of ordinary descent on the mean loss, plus WEIGHT_DECAY / 2 times the squared norm
    of the weights.
    """
    xp = namespace_of(x)
    z, caches = network.forward(x, rng=rng)
    _, dz = loss(z, y)
    mean = xp.full((x.shape[0],), np.float32(1 / x.shape[0]), dtype=x.dtype)
    params = network.params
    grads = {key: grad.weighted_sum(mean) for key, grad in network.param_grads(dz, caches).items()}
    for (layer, name), grad in grads.items():
        if name == "W":
            grad += np.float32(WEIGHT_DECAY) * params[layer, name]
    optimizer.update(params, grads, number)


def _write(config, about, network, evaluated):
    """Write the network and the facts about it, and print the outcome."""
    out = Path(config.out)
    file = out / "pretrained.npz"
    save_model(file, network, about)
    write_json(out / "pretrain.json", about)
    use = f"{NAME}.py {'train' if config.network == 'paper' else 'head'}"
    print(
        f"accuracy {about['test_accuracy']:.2%} on {about['classes']} classes after "
        f"{config.epochs} epochs, {about['train_accuracy']:.2%} on {evaluated:,} of the images "
        "trained on\nquote: nothing private was trained on: no epsilon\n"
        f"read:  {out / 'pretrain.json'} (network: {file})\n"
        f"next:  python experiments/{use} --pretrained {file}"
    )


def pretrain(config):
    """Train the whole network on the public set; returns the exit status."""
    if config.smoke and config.epochs == PretrainConfig.epochs:
        config = replace(config, epochs=SMOKE_EPOCHS)
    dataset = load_public(config.public_data)
    if config.smoke:
        dataset = dataset.first(SMOKE_IMAGES, SMOKE_IMAGES)
    backend = Backend.pick(config.device, partial(tell, config))
    streams, out = Streams(config.seed), Path(config.out)
    arrays = dataset.x_train, dataset.y_train, dataset.x_test, dataset.y_test
    x, y, x_test, y_test = map(backend.asarray, arrays)
    layers = sum(build(config.network, streams.init, dataset.classes, config.dropout), [])
    network = nn.Sequential(layers, (SIDE, SIDE, 3)).to(backend)
    steps = config.epochs * math.ceil(x.shape[0] / config.batch_size)
    rate = LinearDecay(config.learning_rate, config.learning_rate / 100, steps)
    optimizer = Momentum(rate)
    seen = standardise_images(centre_crop(x[:STATISTICS], SIDE))
    scale_initial_values(network, seen[:SCALED_ON])
    out.mkdir(parents=True, exist_ok=True)
    fixed = {key: value for key, value in to_json(config).items() if key not in HERE}
    with stop_on_interrupt() as stop:
        arrays = x, y, standardise_images(centre_crop(x_test, SIDE)), y_test
        history, done = train_public(config, fixed, network, optimizer, streams, arrays, stop)
    if not done:
        words = f"interrupted after epoch {len(history)}; the same command resumes from there"
        print(words, file=sys.stderr)
        return 130
    learned = evaluate(network, nn.SoftmaxCrossEntropy(), seen, y[:STATISTICS], batch_size=512)
    about = {
        "experiment": NAME,
        "command": command_of(f"{NAME}.py pretrain", config, HERE),
        "config": fixed,
        "device": backend.name,
        "public_data": dataset.notice or dataset.name,
        "classes": dataset.classes,
        "images": int(x.shape[0]),
        "test_accuracy": history[-1]["test_accuracy"],
        "train_accuracy": learned.accuracy,
        "history": history,
        "seconds": sum(row["seconds"] for row in history),
        "versions": versions(),
        "commit": git_commit(),
    }
    _write(config, about, standardised(network, x[:STATISTICS]), len(seen))
    return 0
