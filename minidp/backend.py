"""Where arrays live: NumPy on the CPU, CuPy on the GPU; and the few operations they spell
differently.

Layers keep no backend: they take `xp = namespace_of(x)` from their input. All that NumPy and CuPy
do not spell alike is a named function here, so that a faster kernel has one place to go to.
"""

import math
import os
import re
import sys
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from .errors import BackendMismatchError, DeviceUnavailableError, ParameterError
from .host import memory
from .kernels import kernel
from .ranks import current

_PLAIN = {np.ndarray}.__contains__
# environment variables that let products on a GPU round to fewer bits
FEWER_BITS = (
    "CUPY_TF32",
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION",
    "CUBLAS_EMULATION_STRATEGY",
)
DOUBLE_ROWS = 4096  # of a float64 product: what `mechanism.rounding` charges counts on it
# blocks of products, and their numbers, that stay in the cache until they are added
TOGETHER = 4
PARTS = 2**20
USE_CPU = "use --device cpu"
INSTALL = f"install the extra with pip install '.[gpu]', or {USE_CPU}"


def namespace_of(*arrays):
    """The library the arrays belong to, numpy or cupy.

    What is no array but gives arrays (data.Examples) names their library in its attribute `xp`.
    Raises BackendMismatchError if two libraries are mixed, or if something is no array.
    """
    if arrays and all(
        map(_PLAIN, map(type, arrays))
    ):  # the usual case, asked a hundred times per step
        return np
    spaces = {id(space): space for space in map(_namespace, arrays)}
    if len(spaces) != 1:
        kinds = ", ".join(type(a).__module__ + "." + type(a).__name__ for a in arrays)
        raise BackendMismatchError(
            f"expected arrays of one library, got {kinds}; move them with Backend.asarray or "
            "to_host"
        )
    return next(iter(spaces.values()))


def _namespace(array):
    if (own := getattr(array, "xp", None)) is not None:
        return own
    if isinstance(array, (np.ndarray, np.generic)):
        return np
    if (cupy := sys.modules.get("cupy")) is not None and isinstance(array, cupy.ndarray):
        return cupy
    raise BackendMismatchError(
        f"expected a numpy or cupy array, got {type(array).__name__}; convert it with "
        "Backend.asarray"
    )


def to_host(array):
    """A numpy array with the same values; a numpy array is returned as it is."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


@dataclass(frozen=True)
class Backend:
    """One device: its name ("cpu" or "gpu") and its array library `xp`."""

    name: str
    xp: ModuleType

    @classmethod
    def numpy(cls):
        """The CPU."""
        return cls("cpu", np)

    @classmethod
    def cupy(cls, device=None):
        """CUDA device number `device`, by default that of the rank, 0 for one process.

        Raises DeviceUnavailableError where CuPy or the GPU cannot be used, or rounds too much.
        """
        for name in FEWER_BITS:
            if os.environ.get(name, "0") != "0":
                raise _unavailable(
                    f"{name} is set, and products of fewer bits are not charged", "unset it"
                )
        try:
            import cupy
        except ModuleNotFoundError as error:
            missing = (
                "CuPy is not installed" if error.name == "cupy" else f"CuPy lacks {error.name}"
            )
            raise _unavailable(missing, INSTALL) from error
        except Exception as error:  # a broken CUDA install raises anything
            raise _unavailable(
                f"CuPy cannot be imported ({_first_line(error)})", INSTALL
            ) from error
        try:
            found = cupy.cuda.runtime.getDeviceCount()
        except Exception as error:
            lacking = f"GPU ({_first_line(error)})"
            if "InsufficientDriver" in str(error):  # what CUDA says without any driver, too
                lacking = "NVIDIA driver, or one that is too old"
            raise _unavailable(f"CuPy is installed but found no {lacking}") from error
        if found == 0:
            raise _unavailable("CuPy is installed but found no GPU")
        device = current().rank % found if device is None else device
        if not 0 <= device < found:
            raise _unavailable(
                f"expected a device number below {found}, got {device}",
                "CUDA_VISIBLE_DEVICES decides which GPUs are counted",
            )
        try:
            cupy.cuda.Device(device).use()
            cupy.zeros(1).sum()
        except Exception as error:
            raise _unavailable(f"the GPU cannot be used ({_first_line(error)})") from error
        return cls("gpu", cupy)

    @classmethod
    def pick(cls, device, on_notice=lambda line: None):
        """The backend for "cpu", "gpu", "gpu:N" or "auto" (the first GPU if it can be used, else
        the CPU).

        on_notice is called with the line that says what "auto" took, and why it took the CPU.
        Raises ParameterError for another name, DeviceUnavailableError for a GPU that cannot be
        used.
        """
        check_device(device=device)
        if device != "auto":
            return cls.numpy() if device == "cpu" else cls.cupy(*map(int, device.split(":")[1:]))
        try:
            found = cls.cupy()
        except DeviceUnavailableError as error:
            why = str(error).removeprefix("device gpu: ").partition(";")[0]
            on_notice(f"device auto: took cpu: {why}")
            return cls.numpy()
        on_notice("device auto: took gpu")
        return found

    def asarray(self, x, dtype=None):
        """The values of x as an array of this backend."""
        if self.xp is np:
            x = to_host(x)
        return self.xp.asarray(x, dtype=dtype)


def check_device(**named):
    """Raise ParameterError unless each is the name of a device."""
    for name, device in named.items():
        if not (isinstance(device, str) and re.fullmatch("auto|cpu|gpu(:[0-9]{1,4})?", device)):
            raise ParameterError(
                f"expected {name}={device!r:.80} to be auto, cpu, gpu or gpu:N, N the number of a "
                "GPU"
            )


def _unavailable(reason, cure=USE_CPU):
    return DeviceUnavailableError(f"device gpu: {reason}; {cure}")


# What the libraries spell differently, or one has a faster way for. Each is defined by the plain
# reference in its docstring.
def zero_rows_unless(keep, array):
    """The array with the rows b where keep_b is false replaced by zeros: where(keep, array, 0).

    A factor that is not finite has to go before a product: zero times NaN is NaN. A device is not
    made to wait for `keep`.
    """
    xp = namespace_of(array, keep)
    if xp is np and keep.all():
        return array
    return xp.where(keep.reshape(keep.shape + (1,) * (array.ndim - 1)), array, array.dtype.type(0))


def row_squares(x):
    """Sums of squares along the last axis: einsum("...p,...p->...", x, x)."""
    xp = namespace_of(x)
    # one BLAS dot per row, three times faster
    return np.vecdot(x, x) if xp is np else xp.einsum("...p,...p->...", x, x)


def row_norms(x):
    """float64 L2 norms along the last axis, sqrt(einsum("...p,...p->...", x, x)): no square
    overflows or vanishes.
    """
    xp = namespace_of(x)
    twin = kernel("row_norms", x)
    if twin:
        norms = xp.empty(x.shape[:-1])
        twin(xp.ascontiguousarray(x).reshape((norms.size, x.shape[-1])), norms.reshape(-1))
        return norms
    x = x.astype(xp.float64)
    largest = xp.concatenate([xp.abs(x), xp.zeros_like(x[..., :1])], axis=-1).max(axis=-1)
    largest = xp.where(xp.isfinite(largest) & (largest > 0), largest, 1)
    x = x / largest[..., None]
    return xp.sqrt(row_squares(x)) * largest


def outer_products(a, d):
    """(g, sq): einsum("bi,bo->bio", a, d) and its squared norms in one pass, by a twin.

    On the host g lies in memory with the longer of its two last axes last: three times faster where
    the other is short.
    """
    xp = namespace_of(a, d)
    if xp is np and a.shape[1] > d.shape[1]:
        g, sq = outer_products(d, a)
        return g.transpose(0, 2, 1), sq
    g, sq = xp.empty((*a.shape, d.shape[1]), np.float32), xp.empty(a.shape[0])
    kernel("form_outer", a, d)(xp.ascontiguousarray(a), xp.ascontiguousarray(d), g, sq)
    return g, sq


def add_weighted(total, w, g):
    """total += w @ g in float64, in place, without the rows of g whose weight is 0; total (P,), w
    (B,), g (B, P).
    """
    twin = kernel("add_weighted", g)
    if twin:
        twin(total, w, g)
    else:
        total += w @ zero_rows_unless(w != 0, g).astype(total.dtype)


def add_whole(total, scale, G):
    """total += sum_b trunc(scale_b G_b), in place, without rows whose scale is 0; all float64,
    total (P,), G (B, P).
    """
    twin = kernel("add_whole", G)
    if twin:
        twin(total, scale, G)
    else:
        total += namespace_of(G).trunc(scale[:, None] * zero_rows_unless(scale != 0, G)).sum(axis=0)


def add_products(total, a, d, rows):
    """total += a^T d; total (I, O) float64, or None for a new one, a (B, I), d (B, O); returns it.

    rows: of one product in float32, added in float64; 0 for float64. A new total of a few such
    products is their float32 sum.
    """
    (examples, inputs), outputs = a.shape, d.shape[1]
    blocks, add_blocks = -(-examples // rows) if rows else 0, kernel("add_blocks", a, d)
    few = total is None and add_blocks is not None and 0 < blocks <= TOGETHER
    if total is None:
        total = (
            np.empty((inputs, outputs), np.float32)
            if few
            else namespace_of(a).zeros((inputs, outputs))
        )
    if not rows:
        for at in range(0, examples, DOUBLE_ROWS):
            total += a[at : at + DOUBLE_ROWS].T.astype(total.dtype) @ d[
                at : at + DOUBLE_ROWS
            ].astype(total.dtype)
        return total
    rows = max(-(-examples // max(blocks, 1)), 1)  # the blocks are about as large as each other
    if add_blocks is None or not total.flags.c_contiguous:
        for at in range(0, examples, rows):
            total += a[at : at + rows].T @ d[at : at + rows]
        return total
    together = max(min(blocks - few, TOGETHER), 1)
    # rows of the sum, in tiles about as large as each other
    tile = -(-inputs // max(-(-inputs * outputs * together // PARTS), 1))
    parts = np.empty((together, tile, outputs), np.float32)
    for at in range(0, inputs, tile):
        sums, left = total[at : at + tile], a[:, at : at + tile].T
        if few:
            np.matmul(left[:, :rows], d[:rows], out=sums)
        for start in range(few * rows, examples, together * rows):
            places = range(start, min(start + together * rows, examples), rows)
            for part, place in zip(parts, places):
                np.matmul(
                    left[:, place : place + rows], d[place : place + rows], out=part[: len(sums)]
                )
            add_blocks(sums, parts[: len(places), : len(sums)])
    return total


def synchronise(xp):
    """Wait until the device has finished what it was given."""
    if xp is not np:
        xp.cuda.get_current_stream().synchronize()


_free: dict[
    tuple[ModuleType, int], int
] = {}  # bytes on each device when a run began: asking takes as long as many kernels


def measure_memory(xp):
    """Ask a device how many bytes are free, those that its pool holds unused among them; a run does
    so once, when it begins.
    """
    if xp is not np:
        _free[xp, xp.cuda.runtime.getDevice()] = (
            xp.cuda.runtime.memGetInfo()[0] + xp.get_default_memory_pool().free_bytes()
        )


def _budget(xp, on_host):
    """Bytes to hold at once: on a GPU an eighth of what was free."""
    if xp is np:
        return on_host
    if (device := (xp, xp.cuda.runtime.getDevice())) not in _free:
        measure_memory(xp)
    return _free[device] // 8


def explicit_budget(xp):
    """Bytes of materialised gradients to hold at once: on the host what stays in a core's cache
    from writing to summing.
    """
    return _budget(xp, memory.EXPLICIT_BYTES)


def batch_budget(xp):
    """Bytes of the layers' outputs to hold at once: on the host what stays in the cache, on a GPU
    any.
    """
    return memory.BATCH_BYTES if xp is np else math.inf


def patch_budget(xp):
    """Bytes of a convolution's patches to hold at once."""
    return _budget(xp, memory.PATCH_BYTES)


def explicit_fits(xp, size):
    """True on a GPU with room for `size` bytes of materialised gradients."""
    return xp is not np and size <= explicit_budget(xp)


def _first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
