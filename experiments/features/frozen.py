"""Features that frozen layers compute of views of images, and files that keep features."""

import hashlib
import math
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from datasets.fetch import cache_dir
from minidp import nn
from minidp.backend import namespace_of, to_host
from minidp.errors import DataError, ParameterError
from minidp.run import load_arrays, restore
from minidp.util.atomic import atomic_write
from minidp.util.files import waiting_lock

from .pretraining import NAME, SIDE, build

POOLED = 3  # places of a side whose mean stands for them
PRETRAINED = Path(__file__).resolve().parents[1] / "pretrained"
PRETRAINED_BY = "command", "public_data", "classes", "images", "test_accuracy", "commit"
LAYOUT = 4  # of a feature file; add one whenever the computation of features changes


def feature_path(images, *facts):
    """Path in the cache for features of these images.

    Its name is a hash of all that decides about them: the images and `facts`, and the
    device, whose rounding differs.
    """
    digest = hashlib.sha256(repr((LAYOUT, images.shape, *facts)).encode())
    digest.update(np.ascontiguousarray(images))
    return cache_dir() / "features" / f"{digest.hexdigest()[:32]}.npy"


def kept_features(path, compute):
    """The float16 features in the file, or else what `compute` returns, which the file then keeps.

    Of processes that want the same features, one computes them. Raises DataError if the file is
    damaged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        with suppress(OSError):  # where there are no locks
            held.enter_context(waiting_lock(path.with_suffix(".lock")))
        if not path.exists():
            found = compute()
            with atomic_write(path, "wb") as file:
                np.save(file, to_host(found))
            print(
                f"wrote the images' features ({found.nbytes / 2**30:.1f} GiB) into {path}; exact, "
                "so as private as the images",
                file=sys.stderr,
            )
            return found
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise DataError(f"{path}: damaged ({error}); delete it") from error


class Taps:
    """What the parts of a fixed network give, one after the other, each normalised within an
    example, side by side.

    Example b's row depends on example b alone: nothing is released by computing it.
    """

    def __init__(self, layers, last, norm):
        """last: number of the last convolutions and dense layers below the softmax layer whose
        outputs are taken; norm: of a row. The last convolution's output is flat.

        What still has places is averaged over POOLED x POOLED of them.
        """
        stops = [i for i, layer in enumerate(layers) if layer.kind in ("conv", "dense")][-last:]
        self.parts, self.norms, shape = [], [], (SIDE, SIDE, 3)
        for start, stop in zip([0, *stops], stops):
            self.parts.append(nn.Sequential(layers[start:stop], shape))
            shape = self.parts[-1].output_shape
            pooled = [nn.AvgPool2D(POOLED), nn.Flatten()] if len(shape) == 3 else []
            (width,) = nn.Sequential(pooled, shape).output_shape
            layer = nn.LayerNorm(width)
            layer.params["scale"] *= np.float32(norm / math.sqrt(width * len(stops)))
            self.norms.append(nn.Sequential([*pooled, layer], shape))
        self.output_shape = (sum(width for norm in self.norms for width in norm.output_shape),)

    def to(self, backend):
        """Move everything to a backend; returns it."""
        for part in (*self.parts, *self.norms):
            part.to(backend)
        return self

    def __call__(self, x):
        """Rows (B, D) of images x (B, H, W, C), standardised."""
        rows = []
        for part, norm in zip(self.parts, self.norms):
            x, _ = part.forward(x)
            rows.append(norm.forward(x)[0])
        return namespace_of(x).concatenate(rows, axis=1)


def load_pretrained(path, rng):
    """(layers with the weights of the file, what it says about them)."""
    arrays, header = load_arrays(path, "model")
    about = header.get("about") or {}
    if not about.keys() >= {"config", *PRETRAINED_BY}:
        raise ParameterError(f"{path}: expected the file that `{NAME}.py pretrain` wrote")
    network = about["config"].get("network", "paper")
    convolutions, dense = build(network, rng, about["classes"])
    (width,) = nn.Sequential(convolutions, (SIDE, SIDE, 3)).output_shape
    neutral = nn.Standardise(np.zeros(width, np.float32), np.ones(width, np.float32))
    whole = nn.Sequential([*convolutions, neutral, *dense], (SIDE, SIDE, 3))
    restore(path, arrays, whole.state())
    return whole.layers, about


def transferred(ready):
    """(layers, `Ready` whose notice names their pre-training, lines of the statement, inputs of
    Run, entries of result.json).
    """
    path = Path(ready.config.pretrained or PRETRAINED / ready.config.shipped)
    layers, found = load_pretrained(path, ready.streams.init)
    told = (
        f"pre-trained on {found['images']:,} public images of {found['classes']} classes, "
        f"{found['test_accuracy']:.2%} there"
    )
    notice = "; ".join(filter(None, (ready.dataset.notice, told)))
    inputs = {"pretrained_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    about = {"pretrained": {key: found[key] for key in PRETRAINED_BY}}
    return (
        layers,
        replace(ready, dataset=replace(ready.dataset, notice=notice)),
        [f"all layers but the last: {told}; {found['public_data']}"],
        inputs,
        {**about, **inputs},
    )
