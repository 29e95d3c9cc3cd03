"""What every loader returns: images, labels and the public facts about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from minidp.errors import DataError


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels for training and testing, and the public facts about them.

    name          "mnist", "strokes", ...
    x_train       (N, ...) uint8 pixels, 0 to 255        x_test    (M, ...) the same
    y_train       (N,) int64 in 0 .. classes - 1         y_test    (M,) the same
    nominal_size  the public number of training examples, from which q may be derived: a constant of
                  the data set, never the length of what is in memory
    sha256        of the concatenated decompressed files, which identifies the data set; None if
                  there are no files
    published     True if that hash is public knowledge; the hash of private records could reveal
                  who is among them
    notice        a sentence that every output repeats, or ""

    Raises DataError for labels of no class.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    classes: int
    nominal_size: int
    sha256: str | None = None
    published: bool = False
    notice: str = ""

    def __post_init__(self):
        for part, y in (("train", self.y_train), ("test", self.y_test)):
            if y.size and not 0 <= y.min() <= y.max() < self.classes:
                raise DataError(f"{self.name} {part}: expected labels from 0 to {self.classes - 1}")

    def first(self, train: int, test: int) -> Dataset:
        """The data set's first examples, so many of each part; `train` becomes nominal_size."""
        return replace(
            self,
            x_train=self.x_train[:train],
            y_train=self.y_train[:train],
            x_test=self.x_test[:test],
            y_test=self.y_test[:test],
            nominal_size=train,
        )
