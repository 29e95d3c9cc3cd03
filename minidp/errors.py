"""The errors that minidp raises. Each says what was wrong, where, what is allowed and what to do.

No message depends on the value of an example, only on shapes, dtypes and configuration, because an
error that occurs for one data set and not for its neighbour would itself leak. The exception is
`RowsError`, which is for the owner of the data and says so.
"""


class MinidpError(Exception):
    """Base of every error that minidp raises on purpose."""


class ShapeError(MinidpError, ValueError):
    """An array has the wrong shape."""


class DtypeError(MinidpError, TypeError):
    """An array has a dtype that the operation does not take."""


class BackendMismatchError(MinidpError, TypeError):
    """Arrays of two libraries (NumPy and CuPy, say) were mixed in one call."""


class ParameterError(MinidpError, ValueError):
    """A setting is outside its allowed range."""


class TrialError(ParameterError):
    """A layer or a loss lacks a property that private training relies on; nothing was charged."""


class UnsupportedEventError(MinidpError):
    """An accountant has no theorem for an event under the ledger's relation."""


class NumericalBoundError(MinidpError, ArithmeticError):
    """Floating-point precision does not suffice for a sound bound."""


class NoiseReuseError(MinidpError):
    """The random numbers of a release were asked for a second time."""


class BudgetExceededError(MinidpError):
    """The next release would exceed the privacy budget; it was not made."""


class DivergedError(MinidpError):
    """Weights left the range of their dtype, so that there is no model; the charges remain."""


class CheckpointError(MinidpError):
    """A checkpoint is missing, damaged, or belongs to another configuration."""


class DataError(MinidpError):
    """A data set is missing, damaged, or not what it claims to be."""


class RowsError(DataError, ValueError):
    """Rows, labels or targets have values that cannot be learned from; the message is for the
    data's owner.
    """


class RanksError(MinidpError):
    """The ranks of a run differ in data, settings or software; nothing more was released."""


class DeviceUnavailableError(MinidpError):
    """The requested device cannot be used here."""
