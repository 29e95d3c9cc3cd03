"""Layers, losses and networks, each with its gradients written by hand."""

from ..util.lazy import names_of

# module: its names, which __init__.pyi repeats for type checkers
__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        "": "init",
        "activation": "Clamp ReLU Sigmoid Softmax Tanh",
        "conv": "Conv2D",
        "dense": "Dense",
        "layer": "Layer",
        "loss": "SoftmaxCrossEntropy SquaredError",
        "network": "Sequential",
        "pool": "MaxPool2D",
        "reshape": "Flatten Project",
        ".layers.average_pool": "AvgPool2D",
        ".layers.dropout": "Dropout",
        ".layers.embedding": "Embedding",
        ".layers.norm": "GroupNorm LayerNorm UnitNorm",
        ".layers.recurrent": "LSTM",
        ".layers.sequence_loss": "SequenceCrossEntropy",
        ".layers.standardise": "Standardise",
        ".layers.torch_weights": "load_state_dict state_dict",
        ".fitting.pieces": "Pieces",
    },
)
