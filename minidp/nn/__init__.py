"""Layers, losses and networks, each with its gradients written by hand."""
from . import init
from .activation import ReLU, Sigmoid, Softmax, Tanh
from .conv import Conv2D
from .dense import Dense
from .layer import Layer
from .loss import SoftmaxCrossEntropy, SquaredError
from .network import Sequential
from .pool import MaxPool2D
from .reshape import Flatten, Project, Standardise

__all__ = [
    "Conv2D",
    "Dense",
    "Flatten",
    "Layer",
    "MaxPool2D",
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
