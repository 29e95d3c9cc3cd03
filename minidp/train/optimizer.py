"""Descent along released gradients: SGD, Momentum, Nesterov, AdaGrad, Adam, AdamW.

An optimizer sees only released gradients, so all it computes is post-processing and costs no
privacy. SVRG, which the paper names, is missing: it needs the gradient of all data at a snapshot of
the weights, which would have to be charged as another release.
"""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.typing import NDArray

from ..backend import namespace_of
from ..errors import ParameterError
from ..grads.forms import Arrays
from ..mechanism.schedule import Setting, value_at
from ..util.validate import able, in_range, non_negative_finite, positive_finite
from ..util.words import Named

# those of the library, which `minidp.train` exports
__all__ = ["SGD", "Momentum", "Nesterov", "AdaGrad", "Adam", "AdamW"]


def check_parts(loss: Any, optimizer: Any) -> None:
    """Raise ParameterError unless the loss can be called and the optimizer has `update`."""
    able("nn.SoftmaxCrossEntropy()", "__call__", loss=loss)
    able("train.SGD(0.1)", "update", optimizer=optimizer)


@dataclass
class Optimizer(Named):
    """Base: holds the learning rate (a number or a schedule over steps) and one array per slot and
    parameter.

    A subclass gives `slot_names` and `update_one`.

    `update` changes the parameters in place. `slots` is {slot name: {key: array}}, empty before the
    first step.
    """

    learning_rate: Setting
    slots: dict[str, Arrays] = field(default_factory=dict, init=False, repr=False)
    slot_names: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self):
        if not callable(self.learning_rate):
            non_negative_finite(learning_rate=self.learning_rate)

    def update(self, params: Arrays, grads: Arrays, step: int) -> None:
        """Descend: params and grads are {key: array}, `step` counts from 0; grads may be
        overwritten.
        """
        if set(params) != set(grads):
            raise ParameterError(f"expected gradients of {sorted(params)}, got {sorted(grads)}")
        rate = float(value_at(self.learning_rate, step))
        self.allocate(params)
        for key, theta in params.items():
            slots = [self.slots[name][key] for name in self.slot_names]
            self.update_one(theta, grads[key], rate, step, slots)

    def update_one(
        self, theta: NDArray, g: NDArray, rate: float, step: int, slots: list[NDArray]
    ) -> None:
        """Descend one parameter along its released gradient g, in place.

        slots: its arrays, in the order of slot_names.
        """
        raise NotImplementedError

    def allocate(self, params: Arrays) -> None:
        """Give every parameter its slots, zero where they are new."""
        for name in self.slot_names:
            slot = self.slots.setdefault(name, {})
            for key, theta in params.items():
                if key not in slot:
                    slot[key] = namespace_of(theta).zeros_like(theta)


@dataclass
class SGD(Optimizer):
    r"""Plain descent.

    Forward
        [F1]  theta <- theta - eta g

    Source
        [F1]  Abadi et al. 2016, Algorithm 1, "Descent"
    """

    def update_one(self, theta, g, rate, step, slots):
        g *= rate
        theta -= g  # [F1]


@dataclass
class Momentum(Optimizer):
    r"""Descent along a decaying sum of gradients.

    Forward
        [F1]  v <- m v + g;  theta <- theta - eta v

    Source
        [F1]  Polyak 1964, in the form of Sutskever et al. 2013 with the rate outside
    """

    momentum: float = 0.9
    slot_names = ("velocity",)

    def __post_init__(self):
        super().__post_init__()
        in_range(0, 1, open_high=True, momentum=self.momentum)

    def update_one(self, theta, g, rate, step, slots):
        (v,) = slots
        v *= self.momentum
        v += g  # [F1]
        theta -= rate * v  # [F1]


@dataclass
class Nesterov(Momentum):
    r"""Momentum that looks one step ahead.

    Forward
        [F1]  v <- m v + g;  theta <- theta - eta (g + m v)

    Source
        [F1]  Nesterov 1983, in the form of Sutskever et al. 2013 with the rate outside
    """

    def update_one(self, theta, g, rate, step, slots):
        (v,) = slots
        v *= self.momentum
        v += g  # [F1]
        theta -= rate * (g + self.momentum * v)  # [F1]


@dataclass
class AdaGrad(Optimizer):
    r"""Rates that shrink with each coordinate's past gradients.

    Forward
        [F1]  s <- s + g^2;  theta <- theta - eta g / (sqrt(s) + e)

    Source
        [F1]  Duchi, Hazan, Singer 2011, diagonal form
    """

    offset: float = 1e-8
    slot_names = ("sum_of_squares",)

    def __post_init__(self):
        super().__post_init__()
        positive_finite(offset=self.offset)

    def update_one(self, theta, g, rate, step, slots):
        (s,) = slots
        s += g * g  # [F1]
        theta -= rate * g / (namespace_of(s).sqrt(s) + self.offset)  # [F1]


@dataclass
class Adam(Optimizer):
    r"""Adam over released gradients ("NoisyAdam" of Bu et al. 2020); v includes the noise.

    Forward
        [F1]  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
        [F2]  theta <- theta - eta (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + e)    t = 1 at the
              first step

    Source
        [F1]  Kingma and Ba 2015, Algorithm 1
        [F2]  Kingma and Ba 2015, Algorithm 1
    """

    beta1: float = 0.9
    beta2: float = 0.999
    offset: float = 1e-8
    slot_names = ("mean", "square")

    def __post_init__(self):
        super().__post_init__()
        in_range(0, 1, open_high=True, beta1=self.beta1, beta2=self.beta2)
        positive_finite(offset=self.offset)

    def update_one(self, theta, g, rate, step, slots):
        m, v = slots
        m *= self.beta1
        m += (1 - self.beta1) * g  # [F1]
        v *= self.beta2
        v += (1 - self.beta2) * (g * g)  # [F1]
        rate = rate / (1 - self.beta1 ** (step + 1))
        root = namespace_of(v).sqrt(v) / math.sqrt(1 - self.beta2 ** (step + 1))
        theta -= rate * m / (root + self.offset)  # [F2]


@dataclass
class AdamW(Adam):
    r"""Adam with decoupled weight decay: each step also shrinks the weights, which are public, so
    that decay costs no privacy.

    Forward
        [F1]  theta <- (1 - eta w) theta - eta (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + e)    with
              m, v and t of `Adam`

    Source
        [F1]  Loshchilov and Hutter 2019, arXiv:1711.05101, Algorithm 2, in the form of PyTorch with
              the decay times the learning rate
    """

    weight_decay: float = 0.01

    def __post_init__(self):
        super().__post_init__()
        non_negative_finite(weight_decay=self.weight_decay)

    def update_one(self, theta, g, rate, step, slots):
        theta *= 1 - rate * self.weight_decay  # [F1]
        super().update_one(theta, g, rate, step, slots)  # [F1]


OPTIMIZERS = {name.lower(): globals()[name] for name in __all__}
