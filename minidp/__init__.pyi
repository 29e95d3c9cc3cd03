from . import (
    audit as audit,
    backend as backend,
    data as data,
    errors as errors,
    grads as grads,
    host as host,
    mechanism as mechanism,
    nn as nn,
    privacy as privacy,
    run as run,
    streams as streams,
    train as train,
)
from .estimators import PrivateClassifier as PrivateClassifier, PrivateRegressor as PrivateRegressor
from .fitting import fit as fit
from .run.model import load_model as load_model

__version__: str
