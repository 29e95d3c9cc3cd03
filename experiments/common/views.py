"""Training inputs in several views: indexing them with a lot's indices draws one view of each example."""
import numpy as np

from minidp.backend import namespace_of
from minidp.data import centre_crop, distort, draw_distortions, standardise_images

BATCH = 500  # images computed at once


class CachedViews:
    """What frozen layers make of fixed views of each example, computed once: the centre crop and distorted ones.

    Slices give the centre crops (for evaluation). The distortions are drawn without looking at the images, so
    that each example's views depend on that example alone, and nothing is released by fixing them.
    """

    def __init__(self, images, frozen, views, size, rng, draw, progress=lambda done: None):
        """images (N, H, W, 3) uint8; frozen a network; draw the generator that picks a view at each indexing.

        views: number of distorted views beside the centre crop; they are drawn from `rng`. Held in float16.
        """
        xp, self._draw = namespace_of(images), draw
        self.__minidp_namespace__ = xp
        count = images.shape[0]
        self.shape = (count, int(np.prod(frozen.output_shape)))
        self.ndim = 2
        self._views = xp.empty((count, views + 1, self.shape[1]), dtype="float16")
        for start in range(0, count, BATCH):
            part = images[start : start + BATCH]
            crops = [centre_crop(part, size)]
            crops += [distort(part, draw_distortions(part.shape[0], rng, size=size)) for _ in range(views)]
            for view, crop in enumerate(crops):
                self._views[start : start + BATCH, view] = frozen.forward(standardise_images(crop))[0]
            progress(part.shape[0])

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._views[index, 0].astype("float32")
        xp = namespace_of(self._views)
        last = self._views.shape[1] - 1
        view = self._draw.integers(1, last + 1, len(index)) if last else np.zeros(len(index), int)
        return self._views[index, xp.asarray(view)].astype("float32")


class FreshViews:
    """The same with a new distortion at every use: the paper's way, at the cost of the frozen layers each time."""

    def __init__(self, images, frozen, size, draw):
        """images (N, H, W, 3) uint8; frozen a network; draw the generator of the distortions."""
        self.__minidp_namespace__ = namespace_of(images)
        self._images, self._frozen, self._size, self._draw = images, frozen, size, draw
        self.shape, self.ndim = (images.shape[0], int(np.prod(frozen.output_shape))), 2

    def __getitem__(self, index):
        images = self._images[index]
        if isinstance(index, slice):
            crops = centre_crop(images, self._size)
        else:
            crops = distort(images, draw_distortions(images.shape[0], self._draw, size=self._size))
        return self._frozen.predict(standardise_images(crops), batch_size=BATCH)
