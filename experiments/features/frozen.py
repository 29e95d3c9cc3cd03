"""Features that frozen layers compute of views of images, and files that keep features."""

import hashlib
import math
import sys
from contextlib import ExitStack, suppress

import numpy as np

from minidp import nn
from minidp.backend import namespace_of, to_host
from minidp.data import cache_dir, centre_crop, distort, draw_distortions, standardise_images
from minidp.errors import DataError, ParameterError
from minidp.exact.arithmetic import ORDINARY
from minidp.run import load_arrays, restore
from minidp.util.files import atomic_write, waiting_lock

from .pretraining import NAME, NETWORKS, SIDE, build

BATCH = 500  # images computed at once
# crops of the views at test time, pixels down and right
OFF_CENTRE = (
    (0, 0),
    (-2, -2),
    (-2, 2),
    (2, -2),
    (2, 2),
)
TEST_VIEWS = 2 * len(OFF_CENTRE)  # each also flipped
POOLED = 3  # places of a side whose mean stands for them
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
    """(float16 features, True if the file held them); otherwise what `compute` returns, which the
    file then keeps.

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
            return found, False
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: damaged ({error}); delete it") from error
    if found.shape != shape or found.dtype != np.float16:
        raise DataError(
            f"{path}: expected float16 features {shape}, got {found.dtype} {found.shape}; delete it"
        )
    return np.asarray(found), True


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


class CachedViews:
    """What frozen layers make of fixed views of each example, computed once: the centre crop and
    distorted ones.

    Slices give the centre crops (for evaluation), `take_views` a view of each example. The
    distortions are drawn without looking at the images, so that each example's views depend on that
    example alone, and nothing is released by fixing them.
    """

    def __init__(
        self,
        images,
        frozen,
        views,
        size,
        rng,
        progress=lambda done: None,
        file=None,
        multiplicity=1,
    ):
        """images (N, H, W, 3) uint8; frozen a network.

        views: number of distorted views beside the centre crop; they are drawn from `rng`. Held in
        float16. file: where they are read from, if it exists, and kept for the next run.
        multiplicity: rows that each example takes, at most views + 1 (see `take_views`).
        """
        self.xp, self._multiplicity = namespace_of(images), multiplicity
        self.shape, self.ndim = (images.shape[0], int(np.prod(frozen.output_shape))), 2
        shape = (images.shape[0], views + 1, self.shape[1])

        def compute():
            self._views = self.xp.empty(shape, dtype="float16")
            self._compute(images, frozen, size, rng, progress)
            return self._views

        found, read = (compute(), False) if file is None else kept_features(file, shape, compute)
        self._views = self.xp.asarray(found)
        if read:
            progress(images.shape[0])

    def _compute(self, images, frozen, size, rng, progress):
        for start in range(0, images.shape[0], BATCH):
            part = images[start : start + BATCH]
            crops = [centre_crop(part, size)]
            for _ in range(self._views.shape[1] - 1):
                crops.append(distort(part, draw_distortions(part.shape[0], rng, size=size)))
            for view, crop in enumerate(crops):
                self._views[start : start + BATCH, view] = frozen.forward(standardise_images(crop))[
                    0
                ]
            progress(part.shape[0])

    def __getitem__(self, span):
        return self._views[span, 0].astype("float32")

    def take(self, indices, axis=0):
        """The centre crops at an array of indices."""
        return self[indices]

    def take_views(self, indices, draws):
        """A view for each index, (B, F) float32, drawn anew: a distorted one, if there is one.

        With a multiplicity, an example's indices come one after another and get different views,
        the centre crop among them.
        """
        number = self._views.shape[1]
        if self._multiplicity > 1:
            order = draws.random((len(indices), number))[:: self._multiplicity].argsort(axis=1)
            view = order[:, : self._multiplicity].ravel()
        else:
            view = np.minimum(
                1 + (draws.random((len(indices), 1))[:, 0] * (number - 1)).astype(int), number - 1
            )
        return self._views[indices, self.xp.asarray(view)].astype("float32")


class FreshViews:
    """The same with a new distortion at every use: the paper's way, at the cost of the frozen
    layers each time.
    """

    def __init__(self, images, frozen, size):
        """images (N, H, W, 3) uint8; frozen a network."""
        self.xp = namespace_of(images)
        self._images, self._frozen, self._size = images, frozen, size
        self.shape, self.ndim = (images.shape[0], int(np.prod(frozen.output_shape))), 2

    def __getitem__(self, span):
        return self._features(centre_crop(self._images[span], self._size))

    def take(self, indices, axis=0):
        """The centre crops at an array of indices."""
        return self[indices]

    def take_views(self, indices, draws):
        """A view of each example, (B, F) float32, distorted anew."""
        images = self._images[indices]
        return self._features(
            distort(images, draw_distortions(images.shape[0], draws, size=self._size))
        )

    def _features(self, crops):
        return self._frozen.predict(standardise_images(crops), batch_size=BATCH)


def mean_over_views(function, images, size):
    """(N, K) on the host: the mean of what `function` makes of each image's TEST_VIEWS standardised
    views (B, size, size, C).

    images (N, H, W, C). Of logits its argmax is that of mean log-probabilities; from trained
    weights it costs no privacy.
    """
    down, right = ((side - size) // 2 for side in images.shape[1:3])
    means = []
    for start in range(0, images.shape[0], BATCH):
        part, z = images[start : start + BATCH], 0
        for i, j in OFF_CENTRE:
            crop = part[:, down + i : down + i + size, right + j : right + j + size]
            for view in (crop, crop[:, :, ::-1]):
                z = z + function(standardise_images(view.astype("float32")))
        means.append(to_host(z) / TEST_VIEWS)
    return np.concatenate(means)


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
        self.widths = [width for norm in self.norms for width in norm.output_shape]
        self.output_shape = (sum(self.widths),)

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
