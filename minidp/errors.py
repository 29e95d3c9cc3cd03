"""The errors minidp raises. Each says what was wrong, where, what is allowed and what to do.

No message depends on the value of an example: shapes, dtypes and configuration only, since an error
that fires for one data set and not for its neighbour would itself leak. The one exception is
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
    """A layer or a loss does not do what private training rests on; nothing was charged."""


class UnsupportedEventError(MinidpError):
    """An accountant has no theorem for an event under the ledger's relation."""


class NumericalBoundError(MinidpError, ArithmeticError):
    """Precision ran out, so that no sound bound can be given."""


class NoiseReuseError(MinidpError):
    """The random numbers of a release were asked for a second time."""


class BudgetExceededError(MinidpError):
    """The next release would exceed the privacy budget; it was not made."""


class DivergedError(MinidpError):
    """Weights left the range of their dtype, so that there is no model; what was charged stays."""


class CheckpointError(MinidpError):
    """A checkpoint is missing, damaged, or belongs to another configuration."""


class DataError(MinidpError):
    """A data set is missing, damaged, or not what it claims to be."""


class RowsError(DataError, ValueError):
    """Rows, labels or targets hold what cannot be learned from; the message is for the data's
    owner.
    """


class RanksError(MinidpError):
    """The ranks of a run do not hold the same; nothing more was released."""


class DeviceUnavailableError(MinidpError):
    """The asked-for device cannot be used here."""
