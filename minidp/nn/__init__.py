"""Layers, losses and networks, each with its gradients written by hand."""

from ..util.words import hint
from . import init
from .activation import Clamp, ReLU, Sigmoid, Softmax, Tanh
from .conv import Conv2D
from .dense import Dense
from .dropout import Dropout
from .embedding import Embedding
from .layer import Layer
from .loss import SequenceCrossEntropy, SoftmaxCrossEntropy, SquaredError
from .network import Sequential
from .norm import GroupNorm, LayerNorm, UnitNorm
from .pieces import Pieces
from .pool import AvgPool2D, MaxPool2D
from .recurrent import LSTM
from .reshape import Flatten, Project, Standardise
from .torch_weights import load_state_dict, state_dict

__all__ = [
    "LSTM",
    "AvgPool2D",
    "Clamp",
    "Conv2D",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Layer",
    "LayerNorm",
    "MaxPool2D",
    "Pieces",
    "Project",
    "ReLU",
    "SequenceCrossEntropy",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "SoftmaxCrossEntropy",
    "SquaredError",
    "Standardise",
    "Tanh",
    "UnitNorm",
    "init",
    "load_state_dict",
    "state_dict",
]


def __getattr__(name):
    raise AttributeError(f"minidp.nn has no {name}; {hint(name, __all__)}")
