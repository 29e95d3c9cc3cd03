"""Algorithm 1: charge, sample a lot, clip, sum, add noise, divide by the public lot size,
descend.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import measure_memory, namespace_of, synchronise
from ..compiled import kernel, prepare
from ..errors import BudgetExceededError, DtypeError, ParameterError
from ..examples import Examples, LabelledExamples
from ..host import threads
from ..mechanism import Plan
from ..nn.loss import Loss
from ..nn.network import Sequential
from ..privacy.budget import Filter
from ..privacy.calibrate import max_steps
from ..privacy.ledger import STEP, Ledger, unit_text
from ..ranks import current
from ..streams import Streams, as_streams
from ..units import shared, units_of
from ..util.lazy import ring
from ..util.validate import count, inexact, instance, shape
from . import selfcheck
from .batching import Batching
from .optimizer import check_parts
from .progress import Progress, check_charged


@dataclass(frozen=True)
class TrainRecord:
    """Record of a run. `stopped` is "finished", "budget" (no further step fits into it) or
    "interrupted"; `gradients_ran` is as in `Trainer.gradient_forms`.
    """

    progress: Progress
    ledger: Ledger
    stopped: str
    gradients_ran: dict[str, list[str]] = field(default_factory=dict)


class Trainer:
    r"""Differentially private descent, one lot at a time, in the order of Algorithm 1.

    Shapes
        x (N, *input_shape)   y (N,) or (N, K)   on the network's device

    Forward
        [F1]  the ledger covers a step before the step draws its lot
        [F2]  released = clipped sum over the lot, in batches, plus noise once
        [F3]  g = released / L    L the public expected lot size
        [F4]  theta <- optimizer(theta, g)
        [V1]  unit_bo = sum_r share_br g_bro    the gradient of unit b, before clipping. With an
              augmentation multiplicity K, the share is 1/K for each of K views of an example. With
              persons it is 1/m_b for each of the m_b rows of a person that are used, at most
              rows_per_person, and 0 for an empty place

    Source
        [F1]  Abadi et al. 2016, Figure 1: "Accumulate privacy spending before computing and using
              the gradients"
        [F2]  Abadi et al. 2016, Algorithm 1
        [F3]  Abadi et al. 2016, Algorithm 1, "Add noise": L is the parameter, not the size of the
              drawn lot
        [F4]  Abadi et al. 2016, Algorithm 1, "Descent"
        [V1]  De et al. 2022, arXiv:2204.13650, "augmentation multiplicity"; own derivation: a unit
              with all of its rows moves the sum by at most C

    Guarantees
        An empty lot releases noise alone. The result depends on batch_size only by rounding. In
        float64 all batches of a run have the same number of rows (`train.batching`). With a budget,
        training stops before the step that would exceed it. Nothing is stored or returned before
        noise is added. For augmented views the guarantee holds only if each view is made from its
        own example alone. With persons, lots consist of persons, every count of examples is a count
        of persons, and all rows of a person go to the same rank.

    Raises
        TrialError       a layer or the loss mixes examples, divides by B or has wrong gradients;
                         found on random rows before anything is charged (`train.selfcheck`)
        CheckpointError  lots that were charged but not processed would now have another cost
        BudgetExceededError  not one lot fits into the budget
        ParameterError   the clip groups do not hold exactly the network's parameters; the ledger
                         has another relation, or covers fewer lots than `progress` says;
                         expected_lot_size does not fit dataset_size
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
        rows_per_person: int | None = None,
    ):
        """budget: a privacy.Filter, whose ledger is charged. ledger: a Ledger to charge without a
        limit. Without either, a new ledger is charged.

        dataset_size: the public number of examples, if there is one. A plan whose expected_lot_size
        is not q times this number is then refused. (len(x) is not used, because it is private under
        ADD_REMOVE.) batch_size: examples computed at once; None for up to MAX_BATCH, or on the host
        as many as the cache holds. augmentation_multiplicity: number of augmented views of each
        example of a lot. `x.take_views`, if x has it, gives that many different views of an
        example; otherwise the example is repeated. ranks: processes that share each lot; default:
        those that a launcher started (`minidp.ranks`). rows_per_person: protect persons; `train`
        then needs `person`, and uses at most this many rows of each person.
        """
        check_parts(loss, optimizer)
        instance(Plan, plan=plan)
        if budget is not None:
            instance(Filter, budget=budget)
        self.ranks = current() if ranks is None else ranks
        count(1, augmentation_multiplicity=augmentation_multiplicity)
        if rows_per_person is not None:
            count(1, rows_per_person=rows_per_person)
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
        if dataset_size is not None:
            plan.check_lot_size(dataset_size)
        if budget is not None and ledger is not None:
            raise ParameterError(
                "expected a budget or a ledger, got both; the budget has its own ledger"
            )
        self.network, self.loss, self.optimizer, self.plan = network, loss, optimizer, plan
        self.budget, self.batch_size = budget, batch_size
        self.augmentation_multiplicity = augmentation_multiplicity
        self.rows_per_person = rows_per_person
        expected = plan.expected_lot_size / self.ranks.size
        rows = rows_per_person or augmentation_multiplicity  # of an example in a batch
        self.batching = Batching(network, rows, batch_size, expected)
        self.flat: Any = None  # all parameters in one array, on a device
        self.seconds = 0.0  # time spent in steps, without charging and callbacks
        self.ledger = (
            budget.ledger if budget else Ledger(plan.relation) if ledger is None else ledger
        )
        if self.ledger.relation is not plan.relation:
            raise ParameterError(
                f"the sampler's analysis is for {plan.relation.value}, the ledger is in "
                f"{self.ledger.relation.value}: one relation per run"
            )
        self.ledger.protect(unit_text(rows_per_person))

    @property
    def _array(self):
        """One of the network's arrays; all have its device and dtype."""
        return next(iter(self.network.params.values()))

    def train(
        self,
        x: NDArray | Examples,
        y: NDArray,
        streams: Streams | int | None,
        *,
        example_weight: NDArray | None = None,
        person: Any = None,
        progress: Progress = Progress(),
        block_steps: int = 100,
        on_charge: Callable[..., Any] | None = None,
        on_block: Callable[..., Any] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> TrainRecord:
        """Train from `progress` to the end of the plan; returns a TrainRecord.

        x, y         training inputs (an array or data.Examples) and targets
        streams      Streams, or a seed of them
        example_weight  (N,) in [0, 1], factor of an example's clipped gradient; None for 1. With
                        persons one for each person, in the order of their names
        person       (N,) name of each row's person, or data.Persons; only with rows_per_person
        block_steps  steps that are charged together, rounded up to the sampler's period
        on_charge    called on rank 0 only, with the ledger that covers a block, before the block
                     runs: write it to disk
        on_block     called on rank 0 only, with the Progress after each block: save a checkpoint,
                     evaluate
        should_stop  called after every step (after on_block at the end of a block). If it returns
                     True, training ends at the next point from which it can be resumed. It is
                     called on every rank
        """
        streams, plan = as_streams(streams), self.plan
        count(1, block_steps=block_steps)
        prepare(namespace_of(self._array))
        examples = self._checked(x, y, example_weight, person)
        check_charged(plan, self.ledger, progress)
        selfcheck.check(self.network, self.loss, examples.y)
        selfcheck.check_rows(examples)
        several = self.ranks.size > 1
        mpi: Any = ring("ranks") if several else None
        if several:
            mpi.check_rows(examples, self.ranks)
        forms = self.gradient_forms()

        def stop_wanted():
            return self.ranks.any(bool(should_stop and should_stop()))

        stopped = "finished"
        lots = plan.sampler.lots(
            len(examples), plan.steps - progress.step, streams.sampling, progress.step
        )
        block_steps = -(-block_steps // plan.sampler.period) * plan.sampler.period
        flattened = kernel("flattened", *self.network.params.values()) or nullcontext
        with flattened(self):
            while progress.step < plan.steps:
                if progress.charged == progress.step:
                    stop = min(progress.step + block_steps, plan.steps)
                    stop = self._charge(progress.step, stop)  # [F1]
                    if several:
                        mpi.check_run(self, stop, streams)
                    if stop == progress.step:
                        self._check_budget()
                        stopped = "budget"
                        break
                    progress = replace(progress, charged=stop)
                    if on_charge:
                        self.ranks.of_first(lambda: on_charge(self.ledger))
                started = time.perf_counter()
                progress, interrupted = self._block(examples, lots, streams, progress, stop_wanted)
                self.seconds += time.perf_counter() - started
                if several:
                    mpi.check_run(self, progress.step, streams)
                if on_block:
                    self.ranks.of_first(lambda: on_block(progress))
                if interrupted or progress.step < plan.steps and stop_wanted():
                    stopped = "interrupted"
                    break
        return TrainRecord(progress, self.ledger, stopped, forms)

    def _checked(self, x, y, example_weight, person):
        """The arguments of `train` as LabelledExamples. Raises as `train` does."""
        if conversion := ring("arrays"):
            x, y = conversion.as_rows("Trainer.train", x, y, self._array)
        # only arrays; the network checks the rows that `Examples` give
        if not self.network.takes_ids and hasattr(getattr(x, "dtype", None), "kind"):
            inexact("Trainer.train", x=x)
        views = self.augmentation_multiplicity
        units = units_of(person, self.rows_per_person, x.shape[0], views)
        examples = LabelledExamples(x, y, units, example_weight)
        shape("Trainer.train", "x", x, ("N", *self.network.input_shape))
        self.plan.sampler.check(len(examples))
        measure_memory(namespace_of(self._array))
        return examples

    def _charge(self, start, stop):
        """Charge the steps start..stop-1, or as many as the budget allows; returns the end of the
        charged steps.
        """
        charges, budget = self.plan.charges, self.budget
        if budget is None:
            for event, times in charges(start, stop):
                self.ledger.append(event, times)
            return stop
        try:
            budget.charge_all(charges(start, stop))
        except BudgetExceededError:
            stop = start + max_steps(
                budget.accountant,
                self.ledger,
                lambda n: charges(start, start + n),
                budget.epsilon,
                budget.delta,
                limit=stop - start,
            )
            budget.charge_all(charges(start, stop))
        return stop

    def _check_budget(self):
        """Raise BudgetExceededError if not even the first step fits into the budget."""
        budget = self.budget
        if self.ledger.count_of(STEP) == 0:
            self.plan.check_budget(budget.accountant, self.ledger, budget.epsilon, budget.delta)

    def _block(self, examples, lots, streams, progress, should_stop):
        """Run the charged steps; returns (progress, whether should_stop returned True)."""
        step, end, asked = progress.step, progress.charged, False
        for lot in islice(lots, end - step):
            self.step(examples, lot, step, streams)
            step += 1
            asked = asked or (step < end and should_stop())
            if asked and (step - progress.step) % self.plan.sampler.period == 0:
                break
        synchronise(examples.xp)
        return replace(progress, step=step), asked and step < self.plan.steps

    # NumPy's warnings would reveal values; callers that need finite weights check for them
    @np.errstate(all="ignore")
    def step(self, examples: LabelledExamples, lot: NDArray, step: int, streams: Streams) -> None:
        """Descend once along the release of one lot (host indices), which is charged already."""
        sanitizer, products = self.plan.at(step, len(lot))
        clipped = partial(self._clipped_sum, sanitizer, products, streams.dropout(step))
        mine = np.array_split(lot, self.ranks.size)[self.ranks.rank]
        shards = self.batching.shards(examples, mine, streams.views(step))
        raw_sum, *others = threads.map_parallel(clipped, shards)
        scale = 1 / self.plan.expected_lot_size  # [F3]
        noise, dtype = streams.noise(step), self._array.dtype
        if self.flat:
            return self.flat.descend(sanitizer, raw_sum, noise, scale, step)  # [F2] to [F4]
        g = sanitizer.release(raw_sum, noise, others, scale, dtype, self.ranks)  # [F2] [F3]
        self.optimizer.update(self.network.params, g, step)  # [F4]

    @np.errstate(all="ignore")  # of the thread that this runs in
    def _clipped_sum(self, sanitizer, products, dropout, batches):
        """The raw sum of the clipped gradients of some batches."""
        raw_sum = self.flat.sums.begin() if self.flat else {}
        for batch in batches:
            grads = self._per_example_grads(batch, dropout.rows(batch.rows))
            sanitizer.add_clipped(grads, raw_sum, batch.weight, products)
        return raw_sum

    def _per_example_grads(self, batch, dropout):
        """{key: PerExampleGrad}: forward, loss, backward."""
        z, caches = self.network.forward(batch.x, rng=dropout)
        _, dz = self.loss(z, batch.y)
        return self._of_units(dz, caches, batch.share)

    def _of_units(self, dz, caches, share):
        """{key: PerExampleGrad} of units, whose rows have these shares."""
        if self.batching.rows == 1:
            return self.network.param_grads(dz, caches)
        grads = self.network.param_grads(shared(dz, share), caches)  # [V1]
        return {key: g.sum_over_views(self.batching.rows) for key, g in grads.items()}  # [V1]

    def gradient_forms(self) -> dict[str, list[str]]:
        """{"explicit": [...], "factored": [...]}: the parameters whose gradients have each form,
        without empty lists. It follows from public numbers.
        """
        rows = self.batching.rows, *self.network.input_shape
        with np.errstate(all="ignore"):
            x = namespace_of(self._array).zeros(rows, self._array.dtype)
            z, caches = self.network.forward(x, rng=None)
            grads = self._of_units(z, caches, np.ones(self.batching.rows))
        forms = self.plan.sanitizer.forms(grads, self.plan.products)
        found: dict[str, list[str]] = {}
        for key in sorted(self.network.params, key=lambda key: forms[key]):
            found.setdefault(forms[key], []).append(".".join(key))
        return found
