"""Conversion and checks of all arrays: rows, labels, targets, weights. Later code relies on them.
No message shows a value of a row.
"""

import copy
import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import Backend, namespace_of
from ..errors import DtypeError, ParameterError, RowsError, ShapeError
from ..util.text import listed

OWNER = "No step was charged. This message is for the owner of the data: do not publish it"
ASIDE = "This line is for the owner of the data, and is in no file"  # of a NOTICE
BLOCK_BYTES = 2**24  # bytes of inputs that are checked or converted at once


class Inputs:
    """Inputs of any source as `data.Examples`: numbers are converted to the network's dtype batch
    by batch.

    source   array, memory map, data.Examples, or an object with `shape` and indexing by integers
             and slices, as HDF5 has
    backend  backend to which batches are moved
    head     a function of a batch, such as scaling by public constants, or None

    Raises
        ParameterError   an iterator: lots are drawn at random, so every row must be accessible
        DtypeError       values that are not real numbers
        ShapeError       fewer than two axes
    """

    def __init__(
        self,
        source: Any,
        backend: Backend,
        head: Callable[[NDArray], NDArray] | None = None,
        dtype: str = "float32",
    ):
        self.source, self.backend, self.head, self.dtype = as_source(source), backend, head, dtype
        self.xp, self.shape = backend.xp, tuple(self.source.shape)
        self.ndim = len(self.shape)
        # taking rows of an array uses no random numbers and waits for nothing, so threads may take
        # parts of a lot at the same time
        self.side_by_side = isinstance(self.source, np.ndarray) and self.xp is np

    def after(
        self, head: Callable[[NDArray], NDArray] | None, shape: tuple[int, ...], dtype: str
    ) -> "Inputs":
        """The same rows after another function of a batch, which replaces the present one; dtype
        and shape: those of a row after it.
        """
        found = copy.copy(self)
        found.head, found.shape, found.dtype = head, (self.shape[0], *shape), dtype
        return found

    def take(self, indices: Any, axis: int = 0) -> NDArray:
        """The rows at an array of indices, converted."""
        indices = np.asarray(indices.get() if hasattr(indices, "get") else indices)
        if isinstance(self.source, np.ndarray) or hasattr(self.source, "xp"):
            return self._converted(self.source.take(indices, axis=0))
        if not len(indices):
            return self[:0]
        if (np.diff(indices) > 0).all():
            return self._converted(self.source[indices])
        each, places = np.unique(indices, return_inverse=True)  # HDF5 takes only rising indices
        return self._converted(np.asarray(self.source[each])[places])

    def __getitem__(self, span: slice) -> NDArray:
        return self._converted(self.source[span])

    def _converted(self, rows):
        with np.errstate(all="ignore"):  # no warnings for values that are not finite
            rows = rows if hasattr(rows, "dtype") else np.asarray(rows)
            rows = self.backend.asarray(rows, dtype=self.dtype)
            return rows if self.head is None else self.head(rows)

    def read_at_random(self) -> None:
        """Tell the system not to read ahead in a memory map, because rows are read in random
        order.
        """
        found = self.source
        while isinstance(found, np.ndarray):
            found = found.base
        if hasattr(found, "madvise"):  # an mmap.mmap, if the system takes advice
            found.madvise(mmap.MADV_RANDOM)

    @property
    def always_finite(self) -> bool:
        """True if the source cannot hold a number that is not finite."""
        return getattr(self.source.dtype, "kind", "f") in "iub"


def as_source(x: Any) -> Any:
    """x as an array; unchanged if rows can be taken from it."""
    if np.ma.isMaskedArray(x):
        raise DtypeError("x: masked arrays are not supported; give x.filled(value)")
    if hasattr(x, "tocsr"):
        raise DtypeError(
            "x: sparse arrays are not supported; give x.toarray(), and in a pipeline make the step "
            "before give whole arrays: OneHotEncoder(sparse_output=False), "
            "ColumnTransformer(..., sparse_threshold=0)"
        )
    if hasattr(x, "to_numpy"):
        x = x.to_numpy()
    x = _indexable("x", x)
    kind, why = getattr(getattr(x, "dtype", None), "kind", "f"), ""
    if kind == "O" and isinstance(x, np.ndarray):
        try:
            return as_source(np.asarray(x.tolist(), dtype=np.float64))
        except TypeError as error:
            why = f" ({error})"  # this message names a type; others would show a row's contents
        except (ValueError, OverflowError):
            pass
    if kind == "c":
        raise ParameterError(
            f"x: Complex data not supported, got dtype {x.dtype}; give real and imaginary parts as "
            "features"
        )
    if kind not in "fiub":
        cure = "encode other columns as numbers first"
        if "float" in str(x.dtype):  # bfloat16 and others that NumPy does not know
            cure = 'give x.astype("float32")'
        raise DtypeError(f"x: expected real numbers, got dtype {x.dtype}{why}; {cure}")
    if len(x.shape) < 2:
        raise ShapeError(
            f"x: expected rows of features, shape (N, D) or more axes, got {tuple(x.shape)}. "
            "Reshape your data: x.reshape(-1, 1) if it is one feature, x.reshape(1, -1) if it is "
            "one row"
        )
    if 0 in x.shape[1:]:
        raise ShapeError(
            f"x: found 0 feature(s) (shape={tuple(x.shape)}) while a minimum of 1 is required."
        )
    return x


def as_rows(where: str, x: Any, y: Any, like: NDArray) -> tuple[Any, Any]:
    """x and y, lists of numbers as arrays of the library of `like`, with its dtype if they are
    floating point.

    Raises ShapeError or DtypeError for lists that are no table of numbers, ParameterError for
    objects that cannot be indexed.
    """
    found = []
    for name, given in ((f"{where}: x", x), (f"{where}: y", y)):
        rows = _indexable(name, given)
        if rows is not given:
            if rows.dtype.kind not in "biuf":
                raise DtypeError(f"{name}: expected numbers, got a list of dtype {rows.dtype}")
            if given is x or rows.dtype.kind == "f":
                rows = rows.astype(like.dtype.name)
            rows = namespace_of(like).asarray(rows)
        found.append(rows)
    return tuple(found)


def try_rows(**named: Any) -> None:
    """Take the first and the last row of x and y by their indices, as each step takes its lot.
    Raises ParameterError if that fails, before any charge.
    """
    for name, rows in named.items():
        size = rows.shape[0]
        ends = namespace_of(rows).asarray(np.unique([0, size - 1] if size else []).astype(np.int64))
        try:
            found = rows.take(ends, axis=0)
            fits = tuple(found.shape) == (len(ends), *rows.shape[1:])
            why = f"got an array of shape {tuple(found.shape)}"
        except Exception as error:  # from any library; its message may hold values
            fits, why = False, f"got {type(error).__name__}"
        if not fits:
            raise ParameterError(
                f"{name}: expected {len(ends)} rows by an array of their indices, {why}: every "
                f"lot is taken so; give numpy.asarray({name}), or a memory map"
            )


def _indexable(name, x):
    """x, lists and tensors as arrays. Raises ShapeError for rows of different lengths, DtypeError
    for a tensor whose type NumPy lacks, ParameterError for an object without shape and indexing.
    """
    if hasattr(x, "detach") and hasattr(x, "cpu"):
        return _of_tensor(name, x)
    listed = isinstance(x, Sequence) and not hasattr(x, "shape")
    if listed or hasattr(x, "__array__") and not hasattr(x, "shape"):
        try:
            return np.asarray(x[:] if listed else x)
        except ValueError:
            raise ShapeError(
                f"{name}: expected rows of one length, got a list of rows of different lengths"
            ) from None
    if not (hasattr(x, "shape") and hasattr(x, "__getitem__")):
        raise ParameterError(
            f"{name}: expected an array, a memory map, data.Examples or an object with shape and "
            f"indexing, got {type(x).__name__}: every lot is drawn at random from all rows, so "
            "each must be within reach; collect a generator's rows in an array or a memory map "
            "first"
        )
    return x


def _of_tensor(name, x):
    """A tensor of PyTorch as an array that shares its memory, if it is on the host."""
    try:
        return np.asarray(x.detach().cpu())
    except TypeError:
        raise DtypeError(
            f"{name}: NumPy has no numbers of the type {x.dtype}; give {name}.float()"
        ) from None


def rows_not_finite(x: Any) -> int:
    """Number of rows of an array or `data.Examples` with a number that is not finite."""
    if getattr(x, "always_finite", getattr(getattr(x, "dtype", None), "kind", "f") in "iub"):
        return 0
    xp, found = namespace_of(x), 0
    rows = max(1, BLOCK_BYTES // (8 * max(1, math.prod(x.shape[1:]))))
    for start in range(0, x.shape[0], rows):
        block = x[start : start + rows]
        found += int((~xp.isfinite(block).all(axis=tuple(range(1, block.ndim)))).sum())
    return found


def one_axis(y: Any, name: str = "y") -> NDArray:
    """y as an array (N,) on the host; bytes are decoded as UTF-8."""
    if isinstance(y, (str, bytes)):
        raise ShapeError(
            f"{name}: expected a list or an array, got the text {y!r:.80}; for a column of a table "
            f"give table[{y!r:.80}]"
        )
    if np.ma.isMaskedArray(y):
        raise DtypeError(f"{name}: masked arrays are not supported; drop the masked rows")
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    elif hasattr(y, "get") and hasattr(y, "dtype"):
        y = y.get()  # from a device
    elif hasattr(y, "detach") and hasattr(y, "cpu"):
        y = _of_tensor(name, y)
    y = np.asarray(y[:] if isinstance(y, Sequence) else y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        cure = ""
        if y.ndim == 2:
            cure = (
                f"; of one-hot rows give {name}.argmax(axis=1); of several labels or targets a "
                "row, fit each column by itself, with one ledger=FILE for all"
            )
        raise ShapeError(
            f"{name}: expected one label or target for each row, shape (N,), got {y.shape}{cure}"
        )
    if y.dtype.kind == "S":
        try:
            y = np.char.decode(y, "utf-8")
        except UnicodeDecodeError:
            raise DtypeError(
                f"{name}: expected text, or bytes in UTF-8, got other bytes; decode them first, "
                f"such as by numpy.char.decode({name}, 'latin-1')"
            ) from None
    if y.dtype.kind not in "iubfUO":
        raise DtypeError(f"{name}: expected numbers, booleans or strings, got dtype {y.dtype}")
    return y


def known_values(y: NDArray, name: str) -> tuple[NDArray, NDArray]:
    """(values of y (N,) that are not missing, mask (N,) of these). Raises DtypeError for a mixture
    of texts and numbers.
    """
    if y.dtype.kind == "O":
        plain = (str, bool, int, float, np.generic)
        known = np.array([isinstance(each, plain) and each == each for each in y], dtype=bool)
    else:
        known = y == y  # NaN is not
    values = y[known].tolist()
    if len({isinstance(each, str) for each in values}) > 1:
        raise DtypeError(f"{name}: expected values of one kind, got texts and numbers")
    found = np.asarray(values)
    if found.dtype.kind not in "biufU":
        raise DtypeError(
            f"{name}: expected texts, or numbers that 64 bits hold, got others; make texts of "
            "them, such as by [str(each) for each in values]"
        )
    return found, known


def refuse_bad_rows(x: Any, y: Any, outputs: int, weight: Any = None, classes: Any = None) -> None:
    """Raise RowsError, with the number of bad rows, if x (N, ...), y or weight is not valid.

    Integers y (N,) must be labels 0 to outputs - 1, other y finite, weight (N,) in [0, 1]. The
    message depends on the training data, so it is only for their owner.
    """
    if bad := rows_not_finite(x):
        raise RowsError(
            f"x: {bad} of {x.shape[0]} rows hold a number that is not finite (NaN, inf, or too "
            "large for float32; with a schema: text in place of a number, or what gaps=false "
            f"rules out); fill in or drop those rows. {OWNER}"
        )
    if y.dtype.kind in "iu":
        if bad := int(((y < 0) | (y >= outputs)).sum()):
            names = f"0 to {outputs - 1}" if classes is None else listed(classes)
            raise RowsError(
                f"y: {bad} of {y.shape[0]} labels are none of the {outputs} classes ({names}); "
                f"correct them or drop those rows. {OWNER}"
            )
    elif bad := rows_not_finite(y):
        raise RowsError(
            f"y: {bad} of {y.shape[0]} targets are not finite; correct them or drop those rows. "
            f"{OWNER}"
        )
    if weight is not None and (bad := int((~((weight >= 0) & (weight <= 1))).sum())):
        raise RowsError(
            f"example_weight: {bad} of {y.shape[0]} weights are not in [0, 1]; divide them by a "
            f"public number. {OWNER}"
        )
