"""The networks that are timed, as data, so that every library builds the same one in its own
words.
"""

from dataclasses import dataclass, replace

CLIP_NORM, NOISE_MULTIPLIER, LEARNING_RATE = 4.0, 4.0, 0.05


@dataclass(frozen=True)
class Workload:
    """A network, its lot and the size of its data set; images are (height, width, channels).

    layers      ("dense", inputs, outputs, bias), ("conv", inputs, outputs, kernel, stride,
                padding), ("maxpool", window, stride), ("relu",) and ("flatten",); padding is "same"
                or "valid"
    strategies  the forms of per-example gradients that suit it
    flat        one clip group over all parameters, else one per layer
    """

    name: str
    layers: tuple
    input_shape: tuple
    classes: int
    lot: int
    examples: int
    strategies: tuple = ("factored", "explicit")
    flat: bool = False

    @property
    def convolutional(self):
        return any(kind == "conv" for kind, *_ in self.layers)

    def of_lot(self, lot):
        """The same with lots of another size, and enough examples for them."""
        return replace(self, lot=lot, examples=max(self.examples, lot))

    def small(self):
        """A few examples, for a trial of the tool itself."""
        return replace(self, lot=min(self.lot, 16), examples=64)


def dense_relu(*widths, bias):
    """Dense layers of these widths with ReLU between them."""
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [("dense", inputs, outputs, bias), ("relu",)]
    return tuple(layers[:-1])


# Two convolutions 5x5x64 with ReLU and 2x2 max pooling, dense 384, 384, 10 (Abadi et al., Section
# 5.3).
CIFAR_NETWORK = (
    ("conv", 3, 64, 5, 1, "same"),
    ("relu",),
    ("maxpool", 2, 2),
    ("conv", 64, 64, 5, 1, "same"),
    ("relu",),
    ("maxpool", 2, 2),
    ("flatten",),
    *dense_relu(6 * 6 * 64, 384, 384, 10, bias=True),
)

# The tutorial network for private MNIST: convolutions 8x8x16 and 4x4x32, stride 2, dense 32, 10.
MNIST_CNN = (
    ("conv", 1, 16, 8, 2, "same"),
    ("relu",),
    ("maxpool", 2, 1),
    ("conv", 16, 32, 4, 2, "valid"),
    ("relu",),
    ("maxpool", 2, 1),
    ("flatten",),
    *dense_relu(4 * 4 * 32, 32, 10, bias=True),
)

CONVOLUTIONAL = ("auto", "factored", "explicit")
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", dense_relu(60, 1000, 10, bias=False), (60,), 10, 600, 60_000),
        Workload("W2", dense_relu(784, 1000, 10, bias=False), (784,), 10, 600, 60_000),
        Workload("W3", dense_relu(2304, 384, 384, 10, bias=False), (2304,), 10, 2000, 50_000),
        Workload("W4", CIFAR_NETWORK, (24, 24, 3), 10, 128, 10_000, CONVOLUTIONAL, flat=True),
        Workload("W5", MNIST_CNN, (28, 28, 1), 10, 256, 60_000, CONVOLUTIONAL, flat=True),
    )
}


def same_padding(size, kernel, stride):
    """(before, after): zeros such that ceil(size / stride) windows fit, the odd one behind."""
    total = max(0, (-(-size // stride) - 1) * stride + kernel - size)
    return total // 2, total - total // 2


def data(workload):
    """x (examples, *input_shape) float32 and y (examples,) int64: a few thousand random examples,
    repeated.

    Filled in place: what is allocated and freed here would be missing from the peak of the steps.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    x = np.empty((workload.examples, *workload.input_shape), dtype=np.float32)
    unlike = min(workload.examples, 2000)
    rng.standard_normal(out=x[:unlike], dtype=np.float32)
    for start in range(unlike, workload.examples, unlike):
        stop = min(start + unlike, workload.examples)
        x[start:stop] = x[: stop - start]
    return x, rng.integers(0, workload.classes, workload.examples)


def slices(workload):
    """Endless index arrays of exactly one lot: permutations of the data set, cut into lots."""
    import numpy as np

    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(workload.examples)
        for start in range(0, workload.examples - workload.lot + 1, workload.lot):
            yield order[start : start + workload.lot]
