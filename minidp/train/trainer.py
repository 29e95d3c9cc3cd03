"""Algorithm 1: charge, sample a lot, clip, sum, add noise, divide by the public lot size,
descend.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import batch_budget, measure_memory, namespace_of, synchronise, to_host
from ..data.arrays import as_rows
from ..data.examples import Examples, LabelledExamples
from ..errors import BudgetExceededError, DtypeError, ParameterError
from ..host import threads
from ..mechanism import Plan
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..privacy.budget import Filter, max_steps
from ..privacy.ledger import STEP, Ledger
from ..ranks import current
from ..streams import Streams, as_streams
from ..util.validate import count, inexact, shape
from . import selfcheck
from .twins import try_twins

MAX_BATCH = 4096  # examples of a batch: more gain nothing and cost memory
# examples: fewer rows make slow matrix products, and what a step costs per batch weighs more
MIN_BATCH = 128


@dataclass(frozen=True)
class Progress:
    """How far training is.

    step      lots processed
    charged   lots that the ledger covers, never fewer than ran
    """

    step: int = 0
    charged: int = 0

    def __post_init__(self):
        count(step=self.step)
        count(self.step, charged=self.charged)


@dataclass(frozen=True)
class TrainRecord:
    """What a run did. `stopped` is "finished", "budget" (nothing more fits into it) or
    "interrupted".
    """

    progress: Progress
    ledger: Ledger
    stopped: str


class Trainer:
    r"""Differentially private descent, one lot at a time, in the order of Algorithm 1.

    Shapes
        x (N, *input_shape)   y (N,) or (N, K)   on the network's device

    Forward
        [F1]  the ledger covers a step before the step draws its lot
        [F2]  released = clipped sum over the lot, in batches, plus noise once
        [F3]  g = released / L, L the public expected lot size
        [F4]  theta <- optimizer(theta, g)
        [V1]  with an augmentation multiplicity K, an example's gradient is (1/K) sum_v g_bv over K
              views of it, before clipping

    Source
        [F1]  Abadi et al. 2016, Figure 1: "Accumulate privacy spending before computing and using
              the gradients"
        [F2]  Abadi et al. 2016, Algorithm 1
        [F3]  Abadi et al. 2016, Algorithm 1, "Add noise": L is the parameter, not the size of the
              lot at hand
        [F4]  Abadi et al. 2016, Algorithm 1, "Descent"
        [V1]  De et al. 2022, arXiv:2204.13650, "augmentation multiplicity"

    Guarantees
        An empty lot releases noise alone. The result does not depend on batch_size, but for
        rounding. With a budget, training stops before the step that would exceed it. The guarantee
        rests on every view being made from its own example alone. Nothing that has not been noised
        is stored or returned.

    Raises
        TrialError       a layer or the loss mixes examples, carries a 1/B or has wrong gradients:
                         tried on random rows before the first charge (`train.selfcheck`)
        BudgetExceededError  not one lot fits into the budget
        ParameterError   the clip groups are not the network's parameters; the ledger has another
                         relation; expected_lot_size does not fit dataset_size
        DtypeError       parameters that are not float32 or float64
        ShapeError       x and y differ in number, or do not fit the network
    """

    def __init__(
        self,
        network: Sequential,
        loss: Loss,
        optimizer: Any,
        plan: Plan,
        budget: Filter | None = None,
        ledger: Ledger | None = None,
        batch_size: int | None = None,
        augmentation_multiplicity: int = 1,
        dataset_size: int | None = None,
        ranks: Any = None,
    ):
        """budget: a privacy.Filter, whose ledger is used; or a ledger to charge; or neither, for a
        new one.

        dataset_size: the public number of examples, if there is one: a plan whose expected_lot_size
        is not q times it is then refused. (len(x) is not asked: under ADD_REMOVE it is private.)
        batch_size: examples computed at once; None for up to MAX_BATCH, on the host what a cache
        holds. augmentation_multiplicity: augmented views of each example of a lot. `x.take_views`,
        if there is one, is asked for an example this many times and gives a different view each
        time. ranks: between which each lot is divided; by default those that a launcher started
        (`minidp.ranks`).
        """
        self.ranks = current() if ranks is None else ranks
        count(1, augmentation_multiplicity=augmentation_multiplicity)
        if batch_size is not None:
            count(1, batch_size=batch_size)
        if set(plan.sanitizer.keys) != set(network.params):
            raise ParameterError(
                f"expected clip groups over the trained parameters {sorted(network.params)}, "
                f"got {sorted(plan.sanitizer.keys)}"
            )
        for key, array in network.params.items():
            if array.dtype.name not in ("float32", "float64"):
                raise DtypeError(
                    f"{'.'.join(key)}: expected float32 or float64 to train, got {array.dtype}"
                )
        try_twins(namespace_of(*network.params.values()))
        if dataset_size is not None:
            plan.check_lot_size(dataset_size)
        if budget is not None and ledger is not None:
            raise ParameterError(
                "expected a budget or a ledger, got both; the budget has its own ledger"
            )
        self.network, self.loss, self.optimizer, self.plan = network, loss, optimizer, plan
        network.use(plan.sanitizer.arithmetic)
        self.budget, self.batch_size, self.augmentation_multiplicity = (
            budget,
            batch_size,
            augmentation_multiplicity,
        )
        self._cached = max(min(cache_examples(network), MAX_BATCH) // augmentation_multiplicity, 1)
        self.seconds = 0.0  # spent in steps; charging and callbacks are left out
        self.ledger = (
            budget.ledger if budget else Ledger(plan.relation) if ledger is None else ledger
        )
        if self.ledger.relation is not plan.relation:
            raise ParameterError(
                f"the sampler's analysis is for {plan.relation.value}, the ledger is in "
                f"{self.ledger.relation.value}: one relation per run"
            )

    def __repr__(self):
        return (
            f"Trainer of {len(self.network.params)} arrays by {type(self.optimizer).__name__}, "
            f"{self.plan.steps} steps of {self.plan.sampler}, {self.ledger.count_of(STEP)} charged"
        )

    def run(
        self,
        x: NDArray | Examples,
        y: NDArray,
        streams: Streams | int | None,
        *,
        example_weight: NDArray | None = None,
        progress: Progress = Progress(),
        block_steps: int = 100,
        on_charge: Callable[..., Any] | None = None,
        on_block: Callable[..., Any] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> TrainRecord:
        """Train from `progress` to the end of the plan; returns a TrainRecord.

        x, y         training inputs (an array or data.Examples) and targets
        streams      Streams, or a seed of them
        example_weight  (N,) in [0, 1]: what an example's clipped gradient is multiplied by; None
                        for 1
        block_steps  steps that are charged together, rounded up to the sampler's period
        on_charge    called, on rank 0 only, with the ledger once it covers a block, before the
                     block runs: write it to disk
        on_block     called, on rank 0 only, with the Progress after each block: checkpoint,
                     evaluate
        should_stop  asked after every step, of the last one of a block after on_block, until it is
                     true; training then ends at the next point it can resume from. On several ranks
                     each is asked, after every step
        """
        streams, (x, y) = (
            as_streams(streams),
            as_rows("Trainer.run", x, y, next(iter(self.network.params.values()))),
        )
        if hasattr(
            getattr(x, "dtype", None), "kind"
        ):  # an array; what `Examples` give is checked by the network
            inexact("Trainer.run", x=x)
        examples = LabelledExamples(x, y, self.augmentation_multiplicity, example_weight)
        shape("Trainer.run", "x", x, ("N", *self.network.input_shape))
        self.plan.sampler.check(len(examples))
        count(1, block_steps=block_steps)
        measure_memory(namespace_of(*self.network.params.values()))
        if progress == Progress():
            selfcheck.check(self.network, self.loss, y)
            if self.plan.sanitizer.exact:
                selfcheck.check_bits(self.network, self.loss, y)
        examples.check_shared(self.ranks)
        if self.ranks.size > 1:
            wanted = should_stop or (lambda: False)

            def should_stop():
                return self.ranks.any(wanted())

        stopped = "finished"
        steps = self.plan.steps - progress.step
        lots = self.plan.sampler.lots(len(examples), steps, streams.sampling, progress.step)
        block_steps = -(-block_steps // self.plan.sampler.period) * self.plan.sampler.period
        while progress.step < self.plan.steps:
            if progress.charged == progress.step:
                stop = self._charge(
                    progress.step, min(progress.step + block_steps, self.plan.steps)
                )  # [F1]
                self._check_equal(stop, streams)
                if stop == progress.step:
                    if (
                        self.budget is not None and self.ledger.count_of(STEP) == 0
                    ):  # not used up, but too small
                        self.plan.check_budget(
                            self.budget.accountant,
                            self.ledger,
                            self.budget.epsilon,
                            self.budget.delta,
                        )
                    stopped = "budget"
                    break
                progress = replace(progress, charged=stop)
                if on_charge:
                    self.ranks.of_first(lambda: on_charge(self.ledger))
            started = time.perf_counter()
            progress, interrupted = self._block(examples, lots, streams, progress, should_stop)
            self.seconds += time.perf_counter() - started
            self._check_equal(progress.step, streams)
            if on_block:
                self.ranks.of_first(lambda: on_block(progress))
            if interrupted or progress.step < self.plan.steps and should_stop and should_stop():
                stopped = "interrupted"
                break
        return TrainRecord(progress, self.ledger, stopped)

    def _check_equal(self, step, streams):
        """Raise RanksError unless all ranks are as far as each other, hold the same parameters, and
        draw and clip alike.
        """
        if self.ranks.size > 1:
            groups = self.plan.sanitizer.for_step(min(step, self.plan.steps - 1)).groups
            self.ranks.check_equal(
                "clip groups, sampler, lot size or seed",
                (
                    repr(groups),
                    repr(self.plan.sampler),
                    self.plan.expected_lot_size,
                    self.plan.sanitizer.arithmetic,
                    streams.seed,
                ),
            )
            held = sha256(
                b"".join(to_host(array).tobytes() for array in self.network.params.values())
            ).digest()
            self.ranks.check_equal(
                "parameters, charges or steps", (held, self.ledger.sha256(), step)
            )

    def _charge(self, start, stop):
        """Charge the steps start..stop-1, or as many as the budget allows; returns where the charge
        ends.
        """
        if self.budget is None:
            for event, times in self.plan.charges(start, stop):
                self.ledger.append(event, times)
            return stop
        try:
            self.budget.charge_all(self.plan.charges(start, stop))
            return stop
        except BudgetExceededError:
            steps = max_steps(
                self.budget.accountant,
                self.ledger,
                lambda n: self.plan.charges(start, start + n),
                self.budget.epsilon,
                self.budget.delta,
                limit=stop - start,
            )
            self.budget.charge_all(self.plan.charges(start, start + steps))
            return start + steps

    def _block(self, examples, lots, streams, progress, should_stop):
        """Run the charged steps; returns (progress, whether it was asked to stop)."""
        step, end, asked = progress.step, progress.charged, False
        for lot in islice(lots, end - step):
            self.step(examples, lot, step, streams)
            step += 1
            asked = asked or bool(step < end and should_stop and should_stop())
            if asked and (step - progress.step) % self.plan.sampler.period == 0:
                break
        synchronise(examples.xp)
        return replace(progress, step=step), asked and step < self.plan.steps

    # a warning would tell of values; whoever needs finite weights looks at them
    @np.errstate(all="ignore")
    def step(self, examples: LabelledExamples, lot: NDArray, step: int, streams: Streams) -> None:
        """Descend once along the release of one lot (host indices), whose charge is in the ledger
        already.
        """
        sanitizer = self.plan.sanitizer.for_step(step)
        shards, dropout, views = (
            self._shards(examples, examples.share(lot, self.ranks)),
            streams.dropout(step),
            streams.views(step),
        )
        size = self._cached if self.batch_size is None else -(-self.batch_size // len(shards))
        products = self.plan.products.for_lot(len(lot))

        @np.errstate(all="ignore")
        def clipped_sum(shard):
            raw_sum = {}
            for batch in examples.batches(shard, size, views):
                grads = self._per_example_grads(batch, dropout.rows(batch.rows))
                sanitizer.add_clipped(
                    grads, into=raw_sum, example_weight=batch.weight, products=products
                )
            return raw_sum

        raw_sum, *others = threads.map_parallel(clipped_sum, shards)
        params, scale = self.network.params, 1 / self.plan.expected_lot_size  # [F3]
        dtype = params[next(iter(params))].dtype
        noise = streams.noise(step)
        released = sanitizer.release(raw_sum, noise, others, scale, dtype, self.ranks)  # [F2] [F3]
        noise_std = {
            key: group.noise_std * scale for group in sanitizer.groups for key in group.keys
        }
        self.optimizer.update(params, released, step, noise_std)  # [F4]

    def _per_example_grads(self, batch, dropout):
        """{key: PerExampleGrad}: forward, loss, backward; an example's gradient is the mean over
        its views.
        """
        z, caches = self.network.forward(batch.x, rng=dropout)
        _, dz = self.loss(z, batch.y)
        views = self.augmentation_multiplicity
        if views == 1:
            return self.network.param_grads(dz, caches)
        dz *= 1 / views  # [V1]
        return {
            key: g.sum_over_views(views) for key, g in self.network.param_grads(dz, caches).items()
        }  # [V1]

    def _shards(self, examples, lot):
        """The lot in shards that run side by side: one on a device."""
        return np.array_split(lot, threads.shards_for(len(lot)) if examples.in_host_memory else 1)


def cache_examples(network: Sequential) -> int:
    """Examples of a batch that stays in the host's cache, and yet is worth a sum over parameters;
    on a GPU any.
    """
    params = network.params.values()
    bytes_ = max(batch_budget(namespace_of(*params)), 4 * sum(array.nbytes for array in params))
    example_bytes = network.example_numbers * max(array.itemsize for array in params)
    return max(MIN_BATCH, int(min(bytes_ / example_bytes, 2**31)))
