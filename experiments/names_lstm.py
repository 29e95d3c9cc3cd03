"""A private character model of surnames: bits per character beside private tables of n-grams.

    python experiments/names_lstm.py --data-dir DIR --json experiments/results/names_lstm.json

DIR holds dist.all.last, the 88,799 surnames of the US census of 1990 (public domain), as in the
package `names` 0.3.0; without --data-dir and $MINIDP_DATA/names the installed package is read.

The unit is one surname, which is not a person: many persons share one, and one may have two. The
alphabet is public: 26 letters and the end of a name. A name has at most 13 letters, and so 14
positions. 80,000 names train and 8,799 judge. The network is an LSTM of 128 on one letter at a
time. Tables of bigrams and trigrams are each released once at the same epsilon and delta: the
counts of a name are clipped to L2 norm 4, summed, and get Gaussian noise.

Clip norm, rate and the tables' constant were chosen on the words of `pydoc_data.topics`
(results/names_lstm_search.json), before the first run on names.
"""

import math
import time
from dataclasses import asdict, dataclass
from itertools import product

import common

common.start(__name__)

from common.names import (
    END,
    POSITIONS,
    SYMBOLS,
    decode,
    load,
    split,
    table,
    table_bits,
)
from common.tables import TableFlags, main_of_table, mean_and_error

import numpy as np

from minidp import nn
from minidp.mechanism import LinearDecay, Plan, PoissonSampler, Sanitizer, flat_group
from minidp.privacy import Filter
from minidp.run.options import option
from minidp.streams import Streams
from minidp.train import Adam, Averaged, Trainer, evaluate

DELTA, SEEDS, EPSILONS = 1e-6, 5, (1.0, 2.0, 8.0, math.inf)
SAMPLES = 12


@dataclass(frozen=True)
class Settings:
    """What is chosen on other text."""

    hidden: int = 128
    lot: int = 2_000
    steps: int = 400
    clip_norm: float = 1.0
    rate: float = 0.03
    last_rate: float = 0.1  # of the first
    decay: float = 0.98
    constant: float = 0.5  # added to each count of a table


# settings, names that are generated, names that are read at most
WHOLE = Settings(), 2_000, None
SMOKE = Settings(hidden=16, lot=60, steps=3), 50, 400


@dataclass
class AdamBC(Adam):
    """Adam with the known variance of the noise subtracted from the second moment, in each step
    (Tang, Shpilevskiy, Lecuyer 2024, arXiv:2312.14334, Algorithm 1).
    """

    noise_std: float = 0.0  # of each number of a released gradient
    floor: float = 1e-10  # of the second moment

    def update_one(self, theta, g, rate, step, slots):
        m, v = slots
        m *= self.beta1
        m += (1 - self.beta1) * g
        v *= self.beta2
        v += (1 - self.beta2) * (g * g - self.noise_std**2)
        rate = rate / (1 - self.beta1 ** (step + 1))
        root = np.sqrt(np.maximum(v / (1 - self.beta2 ** (step + 1)), self.floor))
        theta -= rate * m / root


def inputs(symbols):
    """The symbol before each position, (N, 14, 27): rows of 0 and 1, all 0 before the first."""
    before = np.concatenate([np.full_like(symbols[:, :1], -1), symbols[:, :-1]], axis=1)
    return (before[:, :, None] == np.arange(SYMBOLS)).astype("float32")


def make_network(settings, rng):
    """The model of the next symbol."""
    layers = [
        nn.LSTM(SYMBOLS, settings.hidden, rng=rng),
        nn.Dense(settings.hidden, SYMBOLS, rng=rng),
    ]
    return nn.Sequential(layers, (POSITIONS, SYMBOLS))


def plan_of(params, size, settings, epsilon):
    """The plan with the least noise for epsilon; without clipping and noise for infinity."""
    private = epsilon < math.inf
    groups = flat_group(params, settings.clip_norm if private else math.inf, float(private))
    sampler = PoissonSampler(settings.lot / size)
    plan = Plan(sampler, Sanitizer(groups), settings.steps, settings.lot)
    return plan.calibrated("pld", epsilon, DELTA) if private else plan


def train(symbols, settings, epsilon, seed):
    """(the network, a context in which it has its averaged weights, facts on its training)."""
    streams = Streams(seed)
    network = make_network(settings, streams.init)
    plan = plan_of(network.params, len(symbols), settings, epsilon)
    (group,) = plan.sanitizer.groups
    noise = group.noise_std / settings.lot
    rate = LinearDecay(settings.rate, settings.rate * settings.last_rate, settings.steps)
    # the floor follows the noise, which is public
    floor = max((noise / 4) ** 2, 1e-10)
    adam = AdamBC(rate, beta2=0.99, noise_std=noise, floor=floor)
    optimizer = Averaged(adam, settings.decay)
    budget = Filter("pld", epsilon, DELTA)
    trainer = Trainer(
        network, nn.SequenceCrossEntropy(), optimizer, plan, budget, dataset_size=len(symbols)
    )
    record = trainer.train(inputs(symbols), symbols, streams, block_steps=settings.steps)
    facts = {
        "noise_multiplier": group.noise_multiplier,
        "epsilon": budget.accountant.epsilon(record.ledger, DELTA).upper if noise else None,
        "ledger_sha256": record.ledger.sha256(),
        "seconds_of_a_step": trainer.seconds / settings.steps,
    }
    return network, optimizer.averaged_weights(network.params), facts


def bits(network, symbols):
    """Bits per character, ends included."""
    found = evaluate(network, nn.SequenceCrossEntropy(), inputs(symbols), symbols)
    return found.loss * POSITIONS * len(symbols) / (math.log(2) * (symbols >= 0).sum())


def generate(network, count, rng):
    """Names that the network makes up, a symbol at a time; those that do not end are cut."""
    symbols = np.full((count, POSITIONS), -1)
    for at in range(POSITIONS):
        z = network.predict(inputs(symbols))[:, at, :SYMBOLS].astype("float64")
        gumbel = -np.log(-np.log(rng.random(z.shape)))
        symbols[:, at] = (z + gumbel).argmax(axis=1)
        ended = (symbols[:, :at] == END).any(axis=1)
        symbols[ended, at] = -1
    return [decode(row) for row in symbols]


def copied(names, trained, held):
    """How many different generated names are trained on, and by chance: of those that are held out
    the model knew nothing, and there are fewer of them.
    """
    made, known, unknown = set(names), set(map(decode, trained)), set(map(decode, held))
    unknown -= known
    return {
        "different": len(made),
        "in_training_set": len(made & known),
        "by_chance": len(made & unknown) * len(known) / max(len(unknown), 1),
    }


def one_run(trained, held, settings, epsilon, seed, generated):
    """A row of the table."""
    began = time.perf_counter()
    network, averaged, facts = train(trained, settings, epsilon, seed)
    with averaged:
        made = generate(network, generated, np.random.default_rng(seed))
        judged = bits(network, held)
    return {
        "target_epsilon": epsilon,
        "seed": seed,
        "bits": judged,
        **facts,
        "generated": copied(made, trained, held),
        "samples": made[:SAMPLES],
        "seconds": time.perf_counter() - began,
    }


def tables(trained, held, settings, epsilon, seed):
    """Bits per character of both tables at epsilon."""
    streams = Streams(seed)
    return {
        name: table_bits(table(trained, order, epsilon, DELTA, streams), held, settings.constant)
        for name, order in (("bigrams", 2), ("trigrams", 3))
    }


def summary(runs):
    """{epsilon: mean bits, their standard error and number, of the network and the tables}."""
    found = {}
    for epsilon in dict.fromkeys(run["target_epsilon"] for run in runs):
        rows = [run for run in runs if run["target_epsilon"] == epsilon]
        of = {"network": [run["bits"] for run in rows]}
        of |= {name: [run["tables"][name] for run in rows] for name in rows[0]["tables"]}
        means = {name: mean_and_error(each) for name, each in of.items()}
        found[f"{epsilon:g}"] = {"seeds": len(rows), **means}
    return found


def show(run):
    """Print a run."""
    made, grams = run["generated"], run["tables"]
    privacy = "no privacy" if run["target_epsilon"] == math.inf else f"at {run['epsilon']:.3f}"
    print(
        f"epsilon {run['target_epsilon']:g} ({privacy}), seed {run['seed']}: "
        f"{run['bits']:.3f} bits per character; bigrams {grams['bigrams']:.3f}, trigrams "
        f"{grams['trigrams']:.3f}; of {made['different']} different names "
        f"{made['in_training_set']} are in the training set, by chance {made['by_chance']:.0f}: "
        f"{', '.join(run['samples'])}",
        flush=True,
    )


def figures(args):
    """Train and print; return what --json holds."""
    settings, generated, most = SMOKE if args.smoke else WHOLE
    names, source = load(args.data_dir)
    trained, held = split(names[:most])
    runs = []
    for seed, epsilon in product(args.seed, args.target_epsilon):
        run = one_run(trained, held, settings, epsilon, seed, generated)
        run["tables"] = tables(trained, held, settings, epsilon, seed)
        runs.append(run)
        show(run)
    bits_of = summary(runs)
    for epsilon, row in bits_of.items():
        listed = ", ".join(f"{name} {row[name]['mean']:.3f}" for name in list(row)[1:])
        print(f"epsilon {epsilon}, {row['seeds']} seeds: {listed}")
    return {
        "unit": "one surname, which is not a person",
        "network": "lstm",
        "delta": DELTA,
        "trained_on": len(trained),
        "held_out": len(held),
        **source,
        "settings": asdict(settings),
        "bits": bits_of,
        "runs": runs,
    }


@dataclass(frozen=True)
class Flags(TableFlags):
    """The flags."""

    target_epsilon: tuple[float, ...] = option(EPSILONS, "models for each", also=("--epsilon",))
    seed: tuple[int, ...] = option(tuple(range(SEEDS)), "a model for each")


main = main_of_table("names_lstm.py", __doc__, Flags, figures)

if __name__ == "__main__":
    main()
