"""Answers to names that minidp does not have, such as the words of other libraries."""

import re
from collections.abc import Callable, Collection, Iterable
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from ..errors import ParameterError

# a name of another library: what to write here; names of parameters end in "="
_ANSWERS = """
sample_rate: it is sampling_probability=, or lot_size= and dataset_size=
batch_size: it is lot_size=, the examples of a step on average
max_grad_norm: it is clip_norm=
l2_norm_clip: it is clip_norm=
l2_clip_norm: it is clip_norm=
sampling_prob: it is sampling_probability=
iterations: it is steps=
target_delta: it is delta=
expected_batch_size: it is expected_lot_size=, the public divisor of a sum
lr: it is learning_rate=
momentum: minidp.train has Momentum, Nesterov and Adam beside SGD
BatchNorm2d: batch normalisation mixes examples, which no private step may; there is nn.GroupNorm
epochs: it is steps=, the epochs times the rows, divided by lot_size=
target_epsilon: it is epsilon=
noise_multiplier: the noise follows from epsilon=; minidp.epsilon says what a noise costs
loss: it follows from the labels, or from target_bounds= of numbers; minidp.run.Run takes any loss
model: it is network=, an nn.Sequential
optimizer: it follows from public numbers; minidp.run.Run takes any optimizer
random_state: it is seed=
sample_weight: a weight may depend on its own row only, and boosting and bagging compute it from
  all rows; such a weight, in [0, 1], is example_weight=
class_weight: a weight may depend on its own row only, and balanced classes depend on all rows;
  public weights of the classes, in [0, 1], go into example_weight=
PrivacyEngine: minidp.fit trains privately, and minidp.run.Run with parts of your own
get_noise_multiplier: it is minidp.calibrate
get_epsilon: it is minidp.epsilon
RDPAccountant: it is RenyiAccountant
PRVAccountant: it is LossDistributionAccountant
GaussianDpEvent: it is Gaussian
Linear: it is nn.Dense(inputs, outputs)
Conv2d: it is nn.Conv2D(in_channels, out_channels, kernel)
kernel_size: it is kernel=
cuda: it is "gpu"
make_private: minidp.fit trains privately, and minidp.run.Run with parts of your own
make_private_with_epsilon: minidp.fit(..., epsilon=, network=) does, and Plan.calibrated
BatchMemoryManager: a lot is split into what fits into memory; Training(batch_size=) sets how many
  examples are computed at once
max_physical_batch_size: it is batch_size= of run.Training
DataLoader: give arrays, a memory map or data.Examples; the sampler of a Plan draws lots
DPDataLoader: the lots are drawn by the sampler of a Plan, such as PoissonSampler
DPOptimizer: clipping and noise are mechanism.Sanitizer, and the optimizer is one of minidp.train
ModuleValidator: audit.check_layer tests a layer; write nn.GroupNorm for batch normalisation
CrossEntropyLoss: it is nn.SoftmaxCrossEntropy()
MSELoss: it is nn.SquaredError(), half the squared distance
GELU: there are nn.ReLU, nn.Tanh and nn.Sigmoid; a layer of your own takes ten lines
  (minidp/nn/README.md)
BatchNorm2D: batch normalisation mixes examples, which no private step may; there is nn.GroupNorm
secure_mode: it is always on: noise comes from the system's entropy unless there is a seed
noise_generator: it is streams=; Streams(seed) for a run that may not be published
poisson_sampling: it is sampler=: PoissonSampler, or ShuffleSampler, which costs more
page: print(minidp.audit.check_layer(layer, input_shape)) shows what was tried, and minidp audit
  --html FILE writes the library's page
write_html: print(report) is its text
per_sample_gradients: they are network.per_example_grads(loss, x, y)
Model: it is minidp.run.Model(network, classes)
label_smoothing: write the loss as a function: minidp/nn/README.md has label smoothing
seed: it is streams=, such as Streams(seed)
"""
WORDS = {
    name: " ".join(answer.split())
    for name, answer in re.findall(r"^(\w+): (.*(?:\n  .*)*)", _ANSWERS, re.M)
}
P = ParamSpec("P")
R = TypeVar("R")


def hint(name: str, known: Collection[str]) -> str:
    """Advice for a name that is unknown: what to write instead."""
    from difflib import get_close_matches  # here, because it is for errors alone

    if name in WORDS:
        return WORDS[name]
    if near := get_close_matches(name, known, 1, 0.7):
        return f"did you mean {near[0]}?"
    return f"there are {', '.join(known)}"


@cache
def _parameters(function):
    return signature(function).parameters


def check_names(where: str, function: Callable[..., Any], given: Iterable[str]) -> None:
    """Raise ParameterError for a keyword that a function does not take, and say what to write
    instead.
    """
    parameters = _parameters(function)
    if Parameter.VAR_KEYWORD in [each.kind for each in parameters.values()]:
        return
    known = [name for name in parameters if name != "self"]
    for name in given:
        if name not in known:
            raise ParameterError(f"{where} has no parameter {name!r}; {hint(name, known)}")


def names_checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the function raises ParameterError for a keyword that it does not take."""

    @wraps(function)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        check_names(function.__name__, function, named)
        return function(*args, **named)

    return checked


class Named:
    """Base of classes that raise ParameterError for a keyword that their constructor does not
    take.
    """

    def __new__(cls, *_: Any, **named: Any) -> Any:
        """A new instance, not yet initialised."""
        check_names(cls.__name__, cls.__init__, named)
        return super().__new__(cls)
