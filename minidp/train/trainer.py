"""Algorithm 1: charge, sample a lot, clip, sum, add noise, divide by the public lot size, descend."""
import time
from dataclasses import dataclass, replace

import numpy as np

from .. import threads
from ..backend import batch_budget, keep_freed_pages, namespace_of, synchronise
from ..errors import BudgetExceededError, DtypeError, ParameterError
from ..privacy.budget import max_steps
from ..privacy.ledger import Ledger
from ..validate import count, same_batch, shape

MAX_ROWS = 4096  # examples of a batch: more gain nothing and cost memory
MIN_ROWS = 128  # examples: fewer rows make slow matrix products, and what a step costs per batch weighs more


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
    """What a run did. `stopped` is "finished", "budget" (the filter refused) or "interrupted"."""

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
        [V1]  with a multiplicity K, an example's gradient is (1/K) sum_v g_bv over K views of it, before clipping

    Source
        [F1]  Abadi et al. 2016, Figure 1: "Accumulate privacy spending before computing and using the gradients"
        [F2]  Abadi et al. 2016, Algorithm 1
        [F3]  Abadi et al. 2016, Algorithm 1, "Add noise": L is the parameter, not the size of the lot at hand
        [F4]  Abadi et al. 2016, Algorithm 1, "Descent"
        [V1]  De et al. 2022, arXiv:2204.13650, "augmentation multiplicity"

    Guarantees
        An empty lot releases noise alone. The result does not depend on batch_size, but for rounding.
        With a filter, training stops before the step that would exceed the budget.
        Nothing that has not been noised is stored or returned.

    Raises
        ParameterError   the clip groups are not the network's parameters; the ledger has another relation
        DtypeError       parameters that are not float32 or float64
        ShapeError       x and y differ in number, or do not fit the network
    """

    def __init__(self, network, loss, optimizer, plan, filter=None, ledger=None, batch_size=None,
                 multiplicity=1):
        """filter: a privacy.Filter, whose ledger is used; or a ledger to charge; or neither, for a new one.

        batch_size: examples computed at once; None for up to MAX_ROWS, on the host what a cache holds (`cache_rows`).
        multiplicity: views of each example of a lot (x.take is asked for it as often, and may draw another each time).
        The guarantee rests on every view being made from its own example alone.
        """
        count(1, multiplicity=multiplicity)
        if batch_size is not None:
            count(1, batch_size=batch_size)
        params = network.params()
        if set(plan.sanitizer.keys) != set(params):
            raise ParameterError(f"expected clip groups over the trained parameters {sorted(params)}, "
                                 f"got {sorted(plan.sanitizer.keys)}")
        for key, array in params.items():
            if array.dtype.name not in ("float32", "float64"):
                raise DtypeError(f"{'.'.join(key)}: expected float32 or float64 to train, got {array.dtype}")
        if filter is not None and ledger is not None:
            raise ParameterError("expected a filter or a ledger, got both; the filter has its own ledger")
        keep_freed_pages()
        self.network, self.loss, self.optimizer, self.plan = network, loss, optimizer, plan
        self.filter, self.batch_size, self.multiplicity = filter, batch_size, multiplicity
        self._cache_rows = max(min(cache_rows(network), MAX_ROWS) // multiplicity, 1)
        self.seconds = 0.0  # spent in steps; charging and callbacks are left out
        self.ledger = filter.ledger if filter else Ledger(plan.relation) if ledger is None else ledger
        if self.ledger.relation is not plan.relation:
            raise ParameterError(f"the sampler's analysis is for {plan.relation.value}, the ledger is in "
                                 f"{self.ledger.relation.value}: one relation a run")

    def run(self, x, y, streams, *, progress=Progress(), block_steps=100, on_charge=None, on_block=None,
            should_stop=None):
        """Train from `progress` to the end of the plan; returns a TrainRecord.

        block_steps  steps that are charged together, rounded up to the sampler's period
        on_charge    called with the ledger once it covers a block, before the block runs: write it to disk
        on_block     called with the Progress after each block: checkpoint, evaluate
        should_stop  asked after every step until it is true; training then ends at the next point it can resume from
        """
        same_batch("Trainer.run", x=x, y=y)
        shape("Trainer.run", "x", x, ("N", *self.network.input_shape))
        list(self.plan.sampler.lots(x.shape[0], 0, streams.sampling))  # refuses a wrong size before any charge
        count(1, block_steps=block_steps)
        stopped = "finished"
        block_steps = -(-block_steps // self.plan.sampler.period) * self.plan.sampler.period
        while progress.step < self.plan.steps:
            if progress.charged == progress.step:
                stop = self._charge(progress.step, min(progress.step + block_steps, self.plan.steps))  # [F1]
                if stop == progress.step:
                    stopped = "budget"
                    break
                progress = replace(progress, charged=stop)
                if on_charge:
                    on_charge(self.ledger)
            started = time.perf_counter()
            progress, interrupted = self._block(x, y, streams, progress, should_stop)
            self.seconds += time.perf_counter() - started
            if on_block:
                on_block(progress)
            if interrupted:
                stopped = "interrupted"
                break
        return TrainRecord(progress, self.ledger, stopped)

    def _charge(self, start, stop):
        """Charge the steps start..stop-1, or as many as the budget allows; returns where the charge ends."""
        if self.filter is None:
            for event, times in self.plan.charges(start, stop):
                self.ledger.append(event, times)
            return stop
        try:
            self.filter.charge_all(self.plan.charges(start, stop))
            return stop
        except BudgetExceededError:
            steps = max_steps(self.filter.accountant, self.ledger, lambda n: self.plan.charges(start, start + n),
                              self.filter.epsilon, self.filter.delta, limit=stop - start)
            self.filter.charge_all(self.plan.charges(start, start + steps))
            return start + steps

    def _block(self, x, y, streams, progress, should_stop):
        """Run the charged steps; returns (progress, whether it was asked to stop)."""
        step, end, asked = progress.step, progress.charged, False
        for lot in self.plan.sampler.lots(x.shape[0], end - step, streams.sampling):
            self.step(x, y, lot, step, streams)
            step += 1
            asked = asked or bool(should_stop and should_stop())
            if asked and (step - progress.step) % self.plan.sampler.period == 0:
                break
        synchronise(namespace_of(x))
        return replace(progress, step=step), asked and step < self.plan.steps

    def step(self, x, y, lot, step, streams):
        """Descend once along the release of one lot (host indices), whose charge is in the ledger already."""
        sanitizer = self.plan.sanitizer.at(step)
        parts = np.array_split(lot, self._count_parts(x, y, len(lot)))
        rows = self._cache_rows if self.batch_size is None else -(-self.batch_size // len(parts))
        raw_sums = threads.run(lambda part: self._raw_sum(x, y, part, rows, sanitizer, streams), parts)
        raw_sum = raw_sums[0]
        for other in raw_sums[1:]:
            for key, raw in other.items():
                raw_sum[key] += raw
        released = sanitizer.release(raw_sum, streams.noise_for(namespace_of(x)))  # [F2]
        for g in released.values():
            g *= 1 / self.plan.expected_lot_size  # [F3]
        self.optimizer.step(self.network.params(), released, step)  # [F4]

    def _count_parts(self, x, y, size):
        """Parts of a lot that may run side by side: one on a device, and where forward or the inputs draw numbers."""
        plain = isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and not self.network.draws
        return threads.parts_for(size) if plain else 1

    def _raw_sum(self, x, y, lot, rows, sanitizer, streams):
        """{key: clipped sum} over some of a lot, at most `rows` examples at a time."""
        raw_sum = None
        for batch in np.array_split(lot, max(-(-len(lot) // rows), 1)):
            inputs, targets = gather(x, y, np.repeat(batch, self.multiplicity) if self.multiplicity > 1 else batch)
            z, caches = self.network.forward(inputs, rng=streams.dropout)
            _, cache = self.loss.forward(z, targets)
            dz = self.loss.backward(cache)
            if self.multiplicity > 1:
                dz *= 1 / self.multiplicity  # [V1]
            grads = self.network.backward(dz, caches)
            if self.multiplicity > 1:
                grads = {key: g.over_views(self.multiplicity) for key, g in grads.items()}  # [V1]
            raw_sum = sanitizer.clipped_sum(grads, raw_sum)
        return raw_sum


def cache_rows(network):
    """Examples of a batch that stays in the host's cache, and yet is worth a sum over parameters; on a GPU any."""
    params = network.params().values()
    bytes_ = max(batch_budget(namespace_of(*params)), 4 * sum(array.nbytes for array in params))
    example_bytes = network.example_numbers * max(array.itemsize for array in params)
    return max(MIN_ROWS, int(min(bytes_ // example_bytes, 2**31)))


def gather(x, y, lot):
    """The examples and labels at host indices, on the device of x."""
    indices = namespace_of(x).asarray(lot)
    return x.take(indices, axis=0), y.take(indices, axis=0)  # faster than x[indices] where examples are small
