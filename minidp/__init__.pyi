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
from .fitting.estimators import PrivateClassifier as PrivateClassifier
from .fitting.estimators import PrivateRegressor as PrivateRegressor
from .fitting.fit import fit as fit
from .fitting.settings import Settings as Settings
from .run.costs import calibrate as calibrate
from .run.costs import epsilon as epsilon
from .run.model_file import load_model as load_model

__version__: str
