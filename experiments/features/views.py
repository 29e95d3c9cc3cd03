"""Views of images, and what frozen layers compute of them: fixed ones that are cached, and those
that a test averages over.
"""

import sys

import numpy as np
from tqdm import tqdm

from datasets.augment import centre_crop, distort, draw_distortions, standardise_images
from minidp.backend import namespace_of, to_host
from minidp.streams import Streams

from .frozen import feature_path, kept_features
from .pretraining import SIDE

BATCH = 500  # images computed at once
# crops of the views at test time, pixels down and right
OFF_CENTRE = ((0, 0), (-2, -2), (-2, 2), (2, -2), (2, 2))
TEST_VIEWS = 2 * len(OFF_CENTRE)  # each also flipped


class CachedViews:
    """What frozen layers make of fixed views of each example, computed once: the centre crop and
    distorted ones.

    Slices give the centre crops (for evaluation), `take_views` a view of each example. The
    distortions are drawn without looking at the images, so that each example's views depend on that
    example alone, and nothing is released by fixing them.
    """

    def __init__(self, images, frozen, size, views, rng, file, multiplicity=1, quiet=True):
        """images (N, H, W, 3) uint8; frozen a network of crops of `size` pixels a side.

        views: number of distorted views beside the centre crop; they are drawn from `rng`. Held in
        float16. file: where they are read from, if it exists, and kept for the next run.
        multiplicity: rows that each example takes, at most views + 1 (see `take_views`). quiet: no
        progress bar.
        """
        self.xp = namespace_of(images)
        self.shape, self.ndim = (images.shape[0], int(np.prod(frozen.output_shape))), 2
        self._multiplicity = multiplicity

        def compute():
            shape = (images.shape[0], views + 1, self.shape[1])
            found = self.xp.empty(shape, dtype="float16")
            starts = range(0, images.shape[0], BATCH)
            disable = True if quiet else None
            for start in tqdm(starts, desc="frozen features", file=sys.stderr, disable=disable):
                part = images[start : start + BATCH]
                crops = [centre_crop(part, size)]
                for _ in range(views):
                    crops.append(distort(part, draw_distortions(len(part), rng, size=size)))
                for view, crop in enumerate(crops):
                    rows = frozen.predict(standardise_images(crop), batch_size=BATCH)
                    found[start : start + BATCH, view] = rows
            return found

        self._views = self.xp.asarray(kept_features(file, compute))

    def take(self, indices, axis=0):
        """The centre crops at an array of indices."""
        return self[indices]

    def __getitem__(self, span):
        return self._views[span, 0].astype("float32")

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
            drawn = draws.random((len(indices), 1))[:, 0] * (number - 1)
            view = np.minimum(1 + drawn.astype(int), number - 1)
        return self._views[indices, self.xp.asarray(view)].astype("float32")


def make_inputs(ready, frozen, inputs):
    """The views to train on, by the flags of `cifar_transfer.py train`, and the centre crops to
    test on; inputs: the hash of the file that the frozen layers are from.
    """
    config, backend, dataset = ready.config, ready.backend, ready.dataset
    images, test = backend.asarray(dataset.x_train), backend.asarray(dataset.x_test)
    tested = frozen.predict(standardise_images(centre_crop(test, SIDE)), batch_size=BATCH)
    # the same views in every run: they are public, and looked at by no one
    rng = Streams(0).init
    facts = inputs, config.train_layers, config.views, backend.name
    file = feature_path(dataset.x_train, *facts)
    views = CachedViews(
        images, frozen, SIDE, config.views, rng, file, config.multiplicity, config.quiet
    )
    return views, tested


def of_crops(function, images, size):
    """What `function` makes of each image's centre crop, standardised."""
    return function(standardise_images(centre_crop(images, size)))


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
