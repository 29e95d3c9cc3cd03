"""What every loader returns."""

from dataclasses import dataclass

import numpy as np

from ..errors import DataError


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels for training and testing, and what may be said of them in public.

    name          "mnist", "strokes", ...
    x_train       (N, ...) uint8 pixels, 0 to 255        x_test    (M, ...) the same
    y_train       (N,) int64 in 0 .. classes - 1         y_test    (M,) the same
    nominal_size  the public number of training examples, from which q may be derived: a constant of
                  the data set, never the length of what is in memory
    sha256        of the concatenated decompressed files, which tells data sets apart; None where
                  there are none
    published     True if that hash is public knowledge; of other records it could tell who is among
                  them
    notice        a sentence that every output repeats, or ""

    Raises DataError if images and labels do not fit each other.
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
        for part, x, y in (
            ("train", self.x_train, self.y_train),
            ("test", self.x_test, self.y_test),
        ):
            if x.dtype != np.uint8 or y.dtype != np.int64 or y.shape != x.shape[:1]:
                raise DataError(
                    f"{self.name} {part}: expected uint8 images and one int64 label for each, "
                    f"got {x.dtype} {x.shape} and {y.dtype} {y.shape}"
                )
            if y.size and not 0 <= y.min() <= y.max() < self.classes:
                raise DataError(f"{self.name} {part}: expected labels from 0 to {self.classes - 1}")
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            raise DataError(
                f"{self.name}: expected test images of shape {self.x_train.shape[1:]} like the "
                f"training images, got {self.x_test.shape[1:]}"
            )
