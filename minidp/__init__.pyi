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
from .fitting.fit import fit as fit
from .fitting.settings import Settings as Settings
from .run.model_file import load_model as load_model
from .sklearn import PrivateClassifier as PrivateClassifier
from .sklearn import PrivateRegressor as PrivateRegressor

__version__: str
