"""Where arrays live: NumPy on the CPU, CuPy on the GPU; and how much of each memory to use.

Layers keep no backend: they take `xp = namespace_of(x)` from their input.
"""

import math
import os
import re
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from .arrays import namespace_of, synchronise, to_host  # noqa: F401, also public here
from .errors import DeviceUnavailableError, ParameterError
from .host import memory
from .ranks import current
from .util.words import WORDS

# environment variables that let products on a GPU round to fewer bits
FEWER_BITS = (
    "CUPY_TF32",
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION",
    "CUBLAS_EMULATION_STRATEGY",
)
USE_CPU = "use --device cpu"
INSTALL = f"install the extra with pip install '.[gpu]', or {USE_CPU}"


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
        """CUDA device number `device`; default: the rank's own, 0 for a single process.

        Raises DeviceUnavailableError if CuPy or the GPU cannot be used, or if its products are
        rounded too coarsely.
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
            if "InsufficientDriver" in str(error):  # CUDA also says this if there is no driver
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

        on_notice is called with a line that says which device "auto" chose, and why if it is the
        CPU. Raises ParameterError for another name, DeviceUnavailableError for a GPU that cannot be
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
        """Copy or convert x to an array of this backend."""
        if self.xp is np:
            x = to_host(x)
        return self.xp.asarray(x, dtype=dtype)


def check_device(**named):
    """Raise ParameterError unless each value is the name of a device."""
    for name, device in named.items():
        if not (isinstance(device, str) and re.fullmatch("auto|cpu|gpu(:[0-9]{1,4})?", device)):
            said = WORDS.get(str(device).partition(":")[0])
            raise ParameterError(
                f"expected {name}={device!r:.80} to be auto, cpu, gpu or gpu:N, N the number of a "
                f"GPU{f'; {said}' if said else ''}"
            )


def _unavailable(reason, cure=USE_CPU):
    return DeviceUnavailableError(f"device gpu: {reason}; {cure}")


# free bytes on each device at the start of a run, because asking takes as long as many kernels
_free: dict[tuple[ModuleType, int], int] = {}


def measure_memory(xp):
    """Ask a device for its free bytes, including unused ones in its memory pool. A run asks once,
    when it begins.
    """
    if xp is not np:
        _free[xp, xp.cuda.runtime.getDevice()] = (
            xp.cuda.runtime.memGetInfo()[0] + xp.get_default_memory_pool().free_bytes()
        )


def _budget(xp, on_host):
    """Bytes to hold at once: on a GPU an eighth of the free memory."""
    if xp is np:
        return on_host
    if (device := (xp, xp.cuda.runtime.getDevice())) not in _free:
        measure_memory(xp)
    return _free[device] // 8


def explicit_budget(xp):
    """Bytes of materialised gradients to hold at once: on the host as many as stay in a core's
    cache between writing and summing.
    """
    return _budget(xp, memory.EXPLICIT_BYTES)


def batch_budget(xp):
    """Bytes of the layers' outputs to hold at once: on the host as many as fit the cache, on a GPU
    without limit.
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
