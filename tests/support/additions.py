"""Six things that somebody may add to minidp, as edits of its files: {file: a new file's text, or
pairs (what stands there, what takes its place)}. `tests/test_to_add.py` adds each to a copy.
"""

SAMPLER = {
    "minidp/mechanism/samplers.py": [
        ('"ShuffleSampler"]', '"ShuffleSampler", "CyclicSampler"]'),
        ("from numpy.typing", "import numpy as np\nfrom numpy.typing"),
        (
            "SAMPLERS = {",
            '''@dataclass(frozen=True)
class CyclicSampler(ShuffleSampler):
    r"""Cut the examples into lots in the order in which they are, each epoch from another on.

    Shapes
        a lot: indices (lot_size,), the last lot of an epoch possibly smaller

    Forward
        [F1]  each epoch the examples in their order, from any of them on with the same chance; its
              consecutive runs of `lot_size`

    Event
        [S1]  the event itself, not sampled, once per epoch, under ZERO_OUT: each example is in one
              lot of the epoch

    Source
        [S1]  own derivation (parallel composition over the lots of an epoch)
    """

    name: ClassVar = "cyclic"
    said: ClassVar = "runs of the rows in their order"

    def _lots(self, num_examples, steps, stream):
        for number, step in enumerate(steps):
            place = number % self.period
            if place == 0:
                first = stream(step).choice(num_examples, 1)  # [F1]
                order = (first + np.arange(num_examples)) % num_examples  # [F1]
            yield order[place * self.lot_size : (place + 1) * self.lot_size]  # [F1]

    def wrap(self, event: Event) -> Event:
        """The event itself."""
        return event  # [S1]


SAMPLERS = {''',
        ),
    ],
    "minidp/audit/checks/lots_and_charges.py": [
        (
            "def _values(",
            """CYCLIC = "mechanism.samplers.CyclicSampler"


@measures(CYCLIC, "F1", "all pairs of epochs, in standard errors", SIGMAS)
def law_of_cyclic_lots(bench):
    orders = (0, 1, 2), (1, 2, 0), (2, 0, 1)
    chances = {(order[:2], order[2:]): 1 / 3 for order in orders}
    return _law_of_lots(samplers.CyclicSampler(3, 2), 3, chances)


@measures(CYCLIC, "S1", "event, relation and number, by hand", 0.0)
def charges_of_cyclic_lots(bench):
    sampler = samplers.CyclicSampler(10, 4)
    yield holds((sampler.wrap(RELEASE), sampler.relation) == (RELEASE, Relation.ZERO_OUT))
    yield holds(sampler.charges(RELEASE, 4) == (RELEASE, 2))


in_words(CYCLIC, "F1 S1", "a law of draws; names the event")


def _values(""",
        ),
    ],
}

OPTIMIZER = {
    "minidp/train/optimizer.py": [
        ('"AdamW"]', '"AdamW", "RMSprop"]'),
        (
            "OPTIMIZERS = {",
            '''@dataclass
class RMSprop(Optimizer):
    r"""Rates that shrink with each coordinate's recent gradients.

    Forward
        [F1]  s <- d s + (1 - d) g^2;  theta <- theta - eta g / (sqrt(s) + e)

    Source
        [F1]  Tieleman and Hinton 2012, lecture 6.5
    """

    decay: float = 0.9
    offset: float = 1e-8
    slot_names = ("mean_of_squares",)

    def __post_init__(self):
        super().__post_init__()
        in_range(0, 1, open_high=True, decay=self.decay)
        positive_finite(offset=self.offset)

    def update_one(self, theta, g, rate, step, slots):
        (s,) = slots
        s *= self.decay
        s += (1 - self.decay) * (g * g)  # [F1]
        theta -= rate * g / (namespace_of(s).sqrt(s) + self.offset)  # [F1]


OPTIMIZERS = {''',
        ),
    ],
    "minidp/audit/checks/optimizers.py": [
        (
            '"weight_decay": "w"}',
            '"weight_decay": "w"}\nNAMED |= {"decay": "d", "mean_of_squares": "s"}',
        ),
        (
            "def steps(",
            '@states("train.optimizer.RMSprop", "F1", case=(train.RMSprop, (0.5, 0.2)))\n'
            "def steps(",
        ),
    ],
}

LAYER = {
    "minidp/layers/scale.py": '''"""Multiplication of each coordinate."""

import numpy as np

from ..grads.forms import Explicit
from ..nn.layer import Layer


class Scale(Layer):
    r"""Each coordinate times a trained factor and a fixed one.

    Shapes
        x, y (B, I)   w (I,)

    Forward
        [F1]  y_bi = a x_bi w_i

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bi = a dy_bi w_i
        [P1]  dw_bi = a x_bi dy_bi

    Source
        [P1]  own derivation: the derivative of a product
    """

    kind = "scale"
    examples = [((4, 0.5), (4,), (5,))]
    symbols = {"a": "factor"}

    def __init__(self, inputs: int, factor: float = 1.0, name: str | None = None):
        """inputs I; factor: the fixed one."""
        super().__init__(name)
        self.params = {"w": np.ones(inputs, "float32")}
        self.inputs, self.factor, self.input_shape = inputs, factor, (inputs,)

    def compute_y(self, x, rng):
        return self.factor * x * self.params["w"], x  # [F1]

    def compute_dx(self, dy, x):
        return self.factor * dy * self.params["w"]  # [B1]

    def compute_grads(self, dy, x):
        return {"w": Explicit(self.factor * x * dy)}  # [P1]
''',
    "minidp/nn/__init__.pyi": [
        (
            "from ..layers.standardise",
            "from ..layers.scale import Scale as Scale\nfrom ..layers.standardise",
        ),
    ],
}

COMMAND = {
    "minidp/commands/lots.py": '''"""lots: how large lots are."""

from dataclasses import dataclass

from ..mechanism.samplers import make_sampler
from ..run.options import REQUIRED, option
from .output import json_option, show


@dataclass(frozen=True, kw_only=True)
class LotsCommand:
    """Flags of `minidp lots`."""

    examples = "example: %(prog)s --dataset-size 100 --lot-size 30"
    dataset_size: int = option(REQUIRED, "public number of examples", metavar="N")
    lot_size: int = option(REQUIRED, "examples per step", metavar="L")
    json: bool = json_option()

    def run(self):
        """Run the command."""
        period = make_sampler("shuffle", self.dataset_size, self.lot_size).period
        show(self, {"lots": period}, [f"{period} lots in a pass"])
''',
    "minidp/commands/__init__.py": [
        (
            '    "audit": (\n',
            '    "lots": ("lots", "count the lots of one pass over the data"),\n    "audit": (\n',
        ),
    ],
}

ACCOUNTANT = {
    "minidp/privacy/concentrated.py": '''"""Zero-concentrated differential privacy."""

import math

import numpy as np

from .accountant import Accountant
from .bound import Bound
from .events import Gaussian


class ConcentratedAccountant(Accountant):
    r"""Zero-concentrated DP (zCDP) of Gaussian releases that are not sampled.

    Bound
        [M1]  rho = 1 / (2 s^2)    of a Gaussian with noise multiplier s; rho adds up
        [C1]  epsilon = rho + 2 sqrt(rho ln(1 / delta))

    Valid for
        Gaussian noise, not sampled

    Source
        [M1]  Bun, Steinke 2016 (arXiv:1605.02065), Proposition 1.6 and Lemma 1.7
        [C1]  Bun, Steinke 2016 (arXiv:1605.02065), Proposition 1.3
    """

    name = "concentrated"
    short = "zcdp"
    note = "zero-concentrated DP (Bun, Steinke 2016)"
    since = "99.0.0"

    def covers(self, primitive):
        return isinstance(primitive, Gaussian) and primitive.noise_multiplier > 0

    def cost_curve(self, event, grid):
        return np.array([1 / (2 * event.noise_multiplier**2)])  # [M1]

    def epsilon_of(self, parts, delta):
        rho = float(self.composed(parts, None)[0]) * (1 + 1e-12)
        epsilon = rho + 2 * math.sqrt(rho * -math.log(delta))  # [C1]
        return Bound(None, epsilon, epsilon * (1 + 1e-12))

    def delta_of(self, parts, epsilon):
        """delta from [C1], solved for it."""
        rho = float(self.composed(parts, None)[0]) * (1 + 1e-12)
        if epsilon <= rho or rho == 0:
            return Bound(None, 1.0, 1.0)
        delta = math.exp(-((epsilon - rho) ** 2) / (4 * rho)) * (1 + 1e-9)
        return Bound(None, delta, min(1.0, delta))
''',
    "minidp/audit/checks/closed_forms.py": [
        (
            "MIXED = (",
            """@states("privacy.concentrated.ConcentratedAccountant", "M1 C1", 1e-11)
def concentrated(bench):
    for sigma in (0.7, 4.0):
        accountant, event = make("zcdp"), Gaussian(sigma)
        found = accountant.epsilon(ledger_of((event, 1)), 1e-5).upper
        rho = float(accountant.cost_curve(event, None)[0])
        yield Case({"s": sigma, "rho": rho, "epsilon": found, "delta": 1e-5})


MIXED = (""",
        ),
        (
            "from ...privacy.events import (",
            "from ...privacy.accountants import make\nfrom ...privacy.events import (",
        ),
    ],
    "minidp/privacy/accountant_list.pyi": [
        (
            "from ..certified.gaussian",
            "from .concentrated import ConcentratedAccountant as ConcentratedAccountant\n"
            "from ..certified.gaussian",
        ),
    ],
    # a person has to say what must be true in it
    "minidp/mechanism/README.md": [
        (
            "## `basic`",
            "## `zcdp`\n\n| file | what must be true in it |\n|---|---|\n"
            "| `privacy/concentrated.py` | Each release's rho is not below the true one. |\n\n"
            "## `basic`",
        ),
    ],
}
