"""One call for the digits: MNIST, or the drawn digits where it cannot be had."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import DataUnavailableError
from ..util import validate
from ..util.files import StrPath
from .dataset import Dataset
from .mnist import load_mnist
from .strokes import SIZES, load_strokes


def load(
    dataset: str = "auto",
    data_dir: StrPath | None = None,
    on_notice: Callable[[str], object] = print,
    sizes: Sequence[int] | None = None,
    progress: bool = True,
) -> Dataset:
    """A Dataset of 28 x 28 digits.

    dataset    "mnist" (load_mnist, never anything else), "strokes" (the drawn digits), or "auto":
               MNIST, and the drawn digits only if no place has it. A file that is there and damaged
               is an error.
    data_dir   a folder with the MNIST files, or None
    on_notice  called with each line that the user has to see
    sizes      None for everything, or the public numbers (training, test) of examples to take from
               the front; the first becomes nominal_size
    progress   whether downloading and drawing show a bar on a terminal

    Raises DataError, one line; ParameterError for another name or sizes that the data set does not
    have.

    >>> digits = load("strokes", sizes=(100, 20), on_notice=lambda line: None, progress=False)
    >>> digits.x_train.shape, digits.y_test.shape, digits.nominal_size
    ((100, 28, 28), (20,), 100)
    """
    validate.one_of(("auto", "mnist", "strokes"), dataset=dataset)
    sizes = SIZES if sizes is None else tuple(sizes)
    validate.in_range(1, SIZES[0], train_size=sizes[0])
    validate.in_range(1, SIZES[1], test_size=sizes[1])
    if dataset != "strokes":
        try:
            found, (train, test) = load_mnist(data_dir, progress=progress), sizes
            return replace(
                found,
                x_train=found.x_train[:train],
                y_train=found.y_train[:train],
                x_test=found.x_test[:test],
                y_test=found.y_test[:test],
                nominal_size=train,
            )
        except DataUnavailableError as error:
            if dataset == "mnist":
                raise
            on_notice("MNIST cannot be had: using the drawn digits instead. Why, and what to do:")
            for line in str(error).split("; "):
                on_notice(f"  {line}")
    found = load_strokes(sizes, on_notice=on_notice, progress=progress)
    on_notice(found.notice)
    return found
