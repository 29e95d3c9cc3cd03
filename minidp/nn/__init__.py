"""Layers, losses and networks, each with its gradients written by hand."""
from . import init
from .activation import ReLU, Sigmoid, Softmax, Tanh
from .dense import Dense
from .layer import Layer
from .loss import SoftmaxCrossEntropy, SquaredError
from .network import Sequential
from .reshape import Flatten, Project, Standardise

__all__ = [
    "Dense",
    "Flatten",
    "Layer",
    "Project",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "SoftmaxCrossEntropy",
    "SquaredError",
    "Standardise",
    "Tanh",
    "init",
]
