"""Features that frozen layers compute of views of images, and files that keep features."""

import hashlib
import math
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from minidp import nn
from minidp.backend import namespace_of, to_host
from minidp.data import cache_dir
from minidp.errors import DataError, ParameterError
from minidp.exact.arithmetic import ORDINARY
from minidp.run import load_arrays, restore
from minidp.util.atomic import atomic_write
from minidp.util.files import waiting_lock

from .pretraining import NAME, NETWORKS, SIDE, build

POOLED = 3  # places of a side whose mean stands for them
PRETRAINED = Path(__file__).resolve().parents[1] / "pretrained"
PRETRAINED_BY = "command", "public_data", "classes", "images", "test_accuracy", "commit"
LAYOUT = 2  # of a feature file; one more where views or features are computed otherwise


def feature_file(images, frozen, views, size, device, arithmetic=ORDINARY):
    """Path in the cache for the features of these images by these layers.

    Its name is a hash of all that decides about them, the device and the arithmetic included, whose
    rounding differs.
    """
    state = (
        part
        for key, array in sorted(frozen.state().items())
        for part in (repr((key, array.shape)).encode(), np.ascontiguousarray(to_host(array)))
    )
    return feature_path(
        repr((LAYOUT, images.shape, views, size, device, arithmetic)).encode(),
        np.ascontiguousarray(images),
        *state,
    )


def feature_path(*parts):
    """Path in the cache that is named by a hash of the parts: bytes, or arrays in one piece."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return cache_dir() / "features" / f"{digest.hexdigest()[:32]}.npy"


def kept_features(path, shape, compute):
    """The float16 features in the file, or else what `compute` returns, which the file then keeps.

    Of processes that want the same features, one computes them. Raises DataError if the file is
    damaged.
    """
    with ExitStack() as held:
        with suppress(OSError):  # nor will the features be kept, which _save tells
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(waiting_lock(path.with_suffix(".lock")))
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except (FileNotFoundError, NotADirectoryError):
            found = compute()
            _save(path, to_host(found))
            return found
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: damaged ({error}); delete it") from error
    if found.shape != shape or found.dtype != np.float16:
        raise DataError(
            f"{path}: expected float16 features {shape}, got {found.dtype} {found.shape}; delete it"
        )
    return np.asarray(found)


def _save(path, features):
    """Keep the features for the next run; a disk that does not take them costs only time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, "wb") as file:
            np.save(file, features)
    except OSError as error:
        print(
            f"NOTICE: {path}: the features were not kept for the next run ({error.strerror})",
            file=sys.stderr,
        )
    else:
        print(
            f"wrote the images' features ({features.nbytes / 2**30:.1f} GiB) into {path}; exact, "
            "so as private as the images",
            file=sys.stderr,
        )


class Taps:
    """What the parts of a fixed network give, one after the other, each normalised within an
    example, side by side.

    Example b's row depends on example b alone: nothing is released by computing it.
    """

    def __init__(self, parts, norm):
        """parts: Sequentials, each going on where the one before it ends; norm: of a row.

        What still has places is averaged over POOLED x POOLED of them.
        """
        self.parts, self.norms = parts, []
        for part in parts:
            pooled = [nn.AvgPool2D(POOLED), nn.Flatten()] if len(part.output_shape) == 3 else []
            (width,) = nn.Sequential(pooled, part.output_shape).output_shape
            layer = nn.LayerNorm(width)
            layer.params["scale"] *= np.float32(norm / math.sqrt(width * len(parts)))
            self.norms.append(nn.Sequential([*pooled, layer], part.output_shape))
        self.output_shape = (sum(width for norm in self.norms for width in norm.output_shape),)

    def to(self, backend, arithmetic):
        """Move everything to a backend and set the arithmetic; returns it."""
        for part in (*self.parts, *self.norms):
            part.to(backend).use(arithmetic)
        return self

    def state(self):
        """{name: array} of all that decides about a row."""
        parts = enumerate((*self.parts, *self.norms))
        return {f"{i}.{key}": array for i, part in parts for key, array in part.state().items()}

    def __call__(self, x):
        """Rows (B, D) of images x (B, H, W, C), standardised."""
        rows = []
        for part, norm in zip(self.parts, self.norms):
            x, _ = part.forward(x)
            rows.append(norm.forward(x)[0])
        return namespace_of(x).concatenate(rows, axis=1)


def taps(layers, last, norm):
    """Taps of what the last convolutions and dense layers below the softmax layer give, in rows of
    norm `norm`.

    last: number of those layers. The last convolution's output is flat.
    """
    stops = [i for i, layer in enumerate(layers) if layer.kind in ("conv", "dense")][-last:]
    parts, shape = [], (SIDE, SIDE, 3)
    for start, stop in zip([0, *stops], stops):
        parts.append(nn.Sequential(layers[start:stop], shape))
        shape = parts[-1].output_shape
    return Taps(parts, norm)


def load_pretrained(path, rng):
    """(layers with the weights of the file, what it says about them)."""
    arrays, header = load_arrays(path)
    about = header.get("about") or {}
    if (
        header.get("kind") != "model"
        or about.get("experiment") != NAME
        or not (about.keys() >= {*PRETRAINED_BY} and isinstance(about.get("config"), dict))
    ):
        raise ParameterError(f"{path}: expected the file that `{NAME}.py pretrain` wrote")
    network = about["config"].get("network", "paper")
    if network not in NETWORKS or about["config"].get("group_norm"):
        raise ParameterError(
            f"{path}: expected one of the networks {', '.join(NETWORKS)}, got another version's "
            f"(commit {about['commit']})"
        )
    convolutions, dense = build(network, rng, about["classes"])
    (width,) = nn.Sequential(convolutions, (SIDE, SIDE, 3)).output_shape
    neutral = nn.Standardise(np.zeros(width, np.float32), np.ones(width, np.float32))
    whole = nn.Sequential([*convolutions, neutral, *dense], (SIDE, SIDE, 3))
    restore(path, arrays, whole.state())
    return whole.layers, about


def transferred(config, streams, dataset):
    """(layers, dataset whose notice names their pre-training, lines of the statement, inputs of
    Run, entries of result.json).
    """
    path = Path(config.pretrained or PRETRAINED / config.shipped)
    layers, found = load_pretrained(path, streams.init)
    told = (
        f"pre-trained on {found['images']:,} public images of {found['classes']} classes, "
        f"{found['test_accuracy']:.2%} there"
    )
    inputs = {"pretrained_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    about = {"pretrained": {key: found[key] for key in PRETRAINED_BY}}
    return (
        layers,
        replace(dataset, notice="; ".join(filter(None, (dataset.notice, told)))),
        [f"all layers but the last: {told}; {found['public_data']}"],
        inputs,
        {**about, **inputs},
    )
