"""The facts and figures of a record: facts that are known before the first charge, and derived
figures.

`derived` reads neither files nor a run, so that `verify` computes the same figures from the facts.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..backend import explicit_budget, namespace_of, to_host
from ..errors import DataError
from ..mechanism import ClipGroup, Plan, Sanitizer
from ..mechanism.noise import noise_grid
from ..mechanism.samplers import sampler_from
from ..nn import SoftmaxCrossEntropy
from ..privacy import Composed, Ledger, PoissonSampled
from ..privacy.accountants import all_bounds, make, short_names
from ..privacy.event_json import event_from_json, event_to_json
from ..privacy.ledger import SETUP, STEP
from ..streams import GENERATOR
from ..train import Averaged
from ..util.files import jsonable
from .attacker import meaning_of
from .checkpoint import short
from .folder import EARLIER, KEY, MAY_BE_PRIVATE
from .phases import Asked, Ended, Opened, Rows
from .record import (
    ClippedGroup,
    Epsilon,
    GroupEpsilon,
    Memory,
    Record,
    Release,
    Setting,
    Tested,
)
from .schedules import from_json, to_json
from .statement import FORMAT

ARITHMETIC = "ordinary"  # floating point, rounded as NumPy and CuPy do
TRAINING_FIGURES = (
    "train_accuracy",
    "train_r2",
    "metrics.csv: columns named not_private",
    "curves.png: training accuracy",
    "checkpoint.npz: history",
)


def facts_of(asked: Asked) -> Record:
    """The Record of a run before its first charge."""
    about, training, plan = asked.about, asked.training, asked.plan
    privacy, streams, budget = asked.privacy, asked.streams, asked.privacy.budget
    optimizer, decay = training.optimizer, 0.0
    if isinstance(optimizer, Averaged):
        optimizer, decay = optimizer.optimizer, optimizer.decay
    setting = Setting(
        dataset_size=asked.dataset_size,
        planned_steps=plan.steps,
        accountant=budget.accountant.name,
        target_epsilon=budget.epsilon,
        delta=budget.delta,
        augmentation_multiplicity=training.augmentation_multiplicity,
        optimizer=type(optimizer).__name__,
        average=decay,
        learning_rate=to_json(optimizer.learning_rate, plan.steps),
        **_planned(plan, asked.dataset_size),
    )
    return Record(
        experiment=about.name,
        **_data(about),
        device=asked.device,
        ranks=asked.ranks.size,
        gradients=plan.sanitizer.strategy,
        unit=unit_name(privacy.rows_per_person),
        rows_per_person=privacy.rows_per_person,
        arithmetic=ARITHMETIC,
        command=about.command,
        config=dict(about.flags),
        settings=setting,
        trained=_trained(training.loss, training.network),
        facts={"public": list(about.public), "disclosed": list(about.disclosed)},
        public=list(about.public),
        disclosed=list(about.disclosed),
        choices=dict(about.choices),
        generator=GENERATOR,
        reproducible=streams.reproducible,
        seed=streams.seed,
        statement_format=FORMAT,
        commit=about.commit,
    )


def _trained(loss, network):
    """Names of the loss and the layers, by which a resumed run notices another loss or network."""
    return {
        "loss": getattr(loss, "__qualname__", type(loss).__qualname__),
        "network": type(network).__qualname__,
        "layers": {layer.name: type(layer).__qualname__ for layer in network.layers},
    }


def _data(about):
    """The record's entries on the training data; your own arrays have only a name."""
    data = about.data
    if data is None:
        return {"dataset": about.source, "dataset_sha256": None, "notice": ""}
    sha256 = data.sha256 if data.published else None
    return {"dataset": data.name, "dataset_sha256": sha256, "notice": data.notice}


def unit_name(rows_per_person):
    """The unit of the guarantee: "row" or "person"."""
    return "row" if rows_per_person is None else "person"


def _planned(plan, size):
    """The fields of a Setting that follow from a plan and the public number of examples."""
    lot, factor = plan.expected_lot_size, plan.products.factor
    sensitivity = plan.sanitizer.for_step(0).sensitivity(rounding=factor)
    return {
        "expected_lot_size": lot,
        "sampling_probability": getattr(plan.sampler, "sampling_probability", lot / size),
        **plan.sampler.settings(),
        "clip_groups": [
            _clipped(group, plan, sensitivity[group.name]) for group in plan.sanitizer.groups
        ],
    }


def _clipped(group, plan, sensitivity):
    """The record's entry on a ClipGroup of a plan."""

    def stated(name):
        return to_json(
            getattr(group, name), plan.steps, lambda step: getattr(group.for_step(step), name)
        )

    found = ClippedGroup(
        name=group.name,
        clip_norm=stated("clip_norm"),
        noise_multiplier=stated("noise_multiplier"),
        sensitivity_factor=plan.products.factor,
        parameters=[".".join(key) for key in group.keys],
    )
    if not group.constant:
        return found
    return replace(
        found,
        noise_std_on_sum=group.noise_std,
        noise_std_on_mean=group.noise_std / plan.expected_lot_size,
        sensitivity=sensitivity,
        grid=noise_grid(group.noise_std),
    )


def finished(
    known: Record,
    asked: Asked,
    opened: Opened,
    rows: Rows,
    ended: Ended,
    last: dict[str, Any],
    about: Mapping[str, Any],
) -> Record:
    """The Record of a run that ended, without the hash of the statement, which is rendered from the
    Record.

    known  the result of `facts_of`, with the setup, row_bits, rows_checked and versions of the run
    last   the last row of the metrics
    about  {name: value}: further keys
    """
    trained, seconds = ended.trained, ended.seconds
    figures = [name for name in about if name.endswith("_not_private")]
    record = replace(
        known,
        gradients_ran=trained.gradients_ran,
        gradients_bytes=_gradients_bytes(asked.plan, asked.training.network.params),
        weighted=rows.weight is not None,
        day=time.strftime("%Y-%m-%d", time.gmtime()),
        stopped=trained.stopped,
        **measured(last),
        test=_tested(rows.tested, asked.training.loss, last["test_loss"]),
        not_private=[*(TRAINING_FIGURES if asked.privacy.train_metrics else ()), *figures],
        seconds_total=seconds[0],
        seconds_per_step=seconds[1] / trained.progress.step if trained.progress.step else None,
    )
    record = derived(record, asked.plan, opened.budget, asked.privacy.group_size)
    return Record.from_json({**record.to_json(), **jsonable(about)})


def measured(row):
    """The fields of a Record that its last row of metrics holds."""
    return {
        "steps": row["step"],
        "epochs": row["epoch"],
        "test_accuracy": row["test_accuracy"],
        "train_accuracy": row["train_accuracy_not_private"],
        "test_r2": row["test_r2"],
        "train_r2": row["train_r2_not_private"],
    }


def _tested(tested, loss, mean_loss):
    """The Tested of a classifier that was measured on public rows, else None."""
    if tested is None or mean_loss is None or not isinstance(loss, SoftmaxCrossEntropy):
        return None
    labels = to_host(tested[1])
    counts = np.bincount(labels[labels >= 0])
    return Tested.of_shares(mean_loss, (counts / len(labels)).tolist()) if counts.size else None


def _gradients_bytes(plan, params):
    """The Memory that the explicit gradients of a lot take on a device; None on the host."""
    xp = namespace_of(*params.values())
    if xp.__name__ == "numpy":
        return None
    lot = math.ceil(plan.expected_lot_size * sum(array.nbytes for array in params.values()))
    return Memory(lot=lot, budget=explicit_budget(xp))


def release_of(name, event, what):
    """The record's entry on a release before the first step; what: its line in the statement."""
    return Release(
        name=name, what=what, event=event_to_json(event), noise_multiplier=_noise_of(event)
    )


def _noise_of(event):
    """The noise multiplier of an event, or of the first of its parts that has one; otherwise
    None.
    """
    parts = getattr(event, "events", (event,))
    found = (part.noise_multiplier for part in parts if hasattr(part, "noise_multiplier"))
    return next(found, None)


def first_events(setup):
    """The events of a record's releases before the first step."""
    return [event_from_json(each.event) for each in setup]


def computed_then(name, record):
    """False for an accountant that came after the version that wrote the record."""
    if record.versions is None:  # a run that ends now
        return True
    first, wrote = make(name).since, record.versions["minidp"]
    return [int(part) for part in first.split(".")] <= [int(part) for part in wrote.split(".")]


def derived(record, plan, budget, group_size):
    """The record with all fields that follow from a run's plan, its charges and other fields.

    budget      privacy.Filter with the target, delta and the run's ledger
    group_size  k: what the run costs k rows of one person together is derived too
    """
    ledger, accountant, delta = budget.ledger, budget.accountant, budget.delta
    size, period = record.settings.dataset_size, plan.sampler.period
    steps_per_epoch = size / plan.expected_lot_size
    # by the usual accountants and the one that kept the target
    names = [name for name in short_names().values() if computed_then(name, record)]
    bounds = all_bounds(ledger, dict.fromkeys((*names, accountant.name)), delta=delta)
    without = unamplified(accountant, ledger, delta, steps_per_epoch / period)
    setup = [
        release_of(each.name, event_from_json(each.event), each.what)
        for each in record.settings.setup
    ]
    noises = {f"{each.name}_noise_multiplier": each.noise_multiplier for each in setup}
    return replace(
        record,
        sampler=type(plan.sampler).__name__,
        relation=plan.relation.value,
        settings=replace(
            record.settings,
            **_planned(plan, size),
            setup=setup,
            more={**record.settings.more, **noises},
        ),
        steps_charged=ledger.count_of(STEP) * period,
        setup_charged=ledger.count_of(SETUP),
        earlier_lots_charged=ledger.count_of(EARLIER) * period,
        epochs=record.steps / steps_per_epoch,
        epsilon={
            name: Epsilon.from_json({**bound.to_json(), "kind": kind, "note": note})
            for name, (bound, kind, note) in bounds.items()
        },
        epsilon_without_amplification=Epsilon.from_json(without.to_json()),
        group=group_of(ledger, bounds, delta, group_size),
        meaning=meaning_of(ledger, delta),
        accountant=accountant.name,
        delta=delta,
        target_epsilon=None if math.isinf(budget.epsilon) else budget.epsilon,
        ledger_sha256=ledger.sha256(),
        unit=unit_name(record.rows_per_person),
        reproducible=record.seed is not None,
        not_for_release=[*(MAY_BE_PRIVATE if record.not_private else ()), KEY],
    )


def plan_of(record):
    """The plan, of no steps, that a record describes.

    Raises DataError for an arithmetic, a sampler or a schedule that this version does not know.
    """
    if record.arithmetic != ARITHMETIC:
        raise DataError(
            f"its result has arithmetic {short(record.arithmetic)}, and this version computes in "
            f"{ARITHMETIC} arithmetic alone: verify it with the version that wrote it"
        )
    settings = record.settings
    groups = [
        ClipGroup(
            group.name,
            [key.rsplit(".", 1) for key in group.parameters],
            from_json(group.clip_norm),
            from_json(group.noise_multiplier),
        )
        for group in settings.clip_groups
    ]
    sanitizer = Sanitizer(groups, record.gradients)
    return Plan(sampler_from(vars(settings)), sanitizer, 0, settings.expected_lot_size)


def group_of(ledger, bounds, delta, size):
    """Epsilon of k examples together, by the tightest bound; None for k = 1."""
    if size == 1:
        return None
    kinds = [
        name
        for name, (bound, kind, _) in bounds.items()
        if kind == "bound" and bound.upper is not None
    ]
    found = all_bounds(ledger, kinds, delta=delta, group_size=size)
    uppers = [bound.upper for bound, _, _ in found.values()]
    return GroupEpsilon(size=size, epsilon=min(uppers, default=math.inf))


def unamplified(accountant, charged, delta, steps_per_epoch):
    """Epsilon of the charges without amplification, as if each example were in one lot of every
    epoch. Steps are counted in periods.
    """
    ledger = Ledger(charged.relation)
    for event, times in charged.items():
        for part in event.events if isinstance(event, Composed) else (event,):
            if isinstance(part, PoissonSampled):
                ledger.append(part.event, math.ceil(times / steps_per_epoch))
            else:
                ledger.append(part, times)
    return accountant.epsilon(ledger, delta)
