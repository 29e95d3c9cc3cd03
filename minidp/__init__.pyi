from typing import Any

from numpy.typing import ArrayLike

from . import (
    audit as audit,
)
from . import (
    backend as backend,
)
from . import (
    data as data,
)
from . import (
    errors as errors,
)
from . import (
    grads as grads,
)
from . import (
    host as host,
)
from . import (
    mechanism as mechanism,
)
from . import (
    nn as nn,
)
from . import (
    privacy as privacy,
)
from . import (
    run as run,
)
from . import (
    streams as streams,
)
from . import (
    train as train,
)
from .costs import calibrate as calibrate
from .costs import epsilon as epsilon
from .fitting.model import Fitted
from .fitting.settings import Settings as Settings
from .run.model_file import load_model as load_model
from .sklearn import PrivateClassifier as PrivateClassifier
from .sklearn import PrivateRegressor as PrivateRegressor
from .util.files import StrPath

__version__: str

# every field of Settings by its name, as `help(fit)` shows them
def fit(
    x: Any,
    y: ArrayLike | None,
    *,
    epsilon: float,
    delta: float | None = None,
    folder: StrPath | None = None,
    ledger: StrPath | None = None,
    test: tuple[Any, ArrayLike] | None = None,
    seed: int | None = None,
    quiet: bool = False,
    settings: Settings | None = None,
    classes: ArrayLike | None = None,
    target_bounds: tuple[float, float] | None = None,
    scale: str = "auto",
    bounds: tuple[Any, Any] | None = None,
    schema: Any = None,
    hidden: tuple[int, ...] | int = (),
    network: nn.Sequential | None = None,
    dataset_size: int | None = None,
    person: Any = None,
    rows_per_person: int | None = None,
    lot_size: int | None = None,
    steps: int | None = None,
    clip_norm: float | None = None,
    learning_rate: float | None = None,
    example_weight: ArrayLike | None = None,
    check: bool = True,
    device: str = "cpu",
    source: str | None = None,
    group_size: int = 1,
    ledger_limit: float | None = None,
) -> Fitted: ...
