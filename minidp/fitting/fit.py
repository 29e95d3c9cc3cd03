"""From arrays to a private model and its statement in one call."""

import math
import shutil
import tempfile
import weakref
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any

from numpy.typing import ArrayLike, NDArray

from .. import nn
from ..backend import Backend
from ..data.arrays import Inputs, as_weights, columns_of
from ..data.examples import LabelledExamples
from ..data.labels import as_target_bounds, targets_of
from ..data.persons import Persons, persons_of
from ..errors import DivergedError, ParameterError, ShapeError
from ..mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from ..mechanism.samplers import make_sampler
from ..privacy import Filter
from ..privacy.meaning import large_delta
from ..ranks import current
from ..run import About, Model, Privacy, Run, Training
from ..run.shared import charge_shared, sum_line
from ..streams import Streams
from ..train import SGD, Averaged, Momentum, selfcheck
from ..util.atomic import StrPath
from ..util.files import check_path
from ..util.text import listed
from ..util.validate import count, flag, open_probability, positive, same_batch
from ..util.waiting import quietly
from .encoding import encoded, without_person
from .fitted import Fitted
from .heads import Head, scaled, trained_network
from .records import choices_of, config_of, public_facts
from .rule import WITHOUT_PRIVACY, Choice, choose, unclipped
from .settings import Settings, check_ledger, settings_of
from .subgroups import figures_of, subgroups_of

MEASUREMENTS = 20  # along a run, with a checkpoint each
SPARSE = 1 / 32  # lots below this share of the rows touch few pages of a memory map


def fit(
    x: Any,
    y: ArrayLike | None,
    *,
    epsilon: float,
    delta: float | None = None,
    folder: StrPath | None = None,
    ledger: StrPath | None = None,
    test: tuple[Any, ArrayLike] | None = None,
    seed: int | None = None,
    quiet: bool = False,
    settings: Settings | None = None,
    **more: Any,
) -> Fitted:
    """Train a classifier or a regression on your own arrays, (epsilon, delta)-differentially
    private for each row, or for each person with all of her rows (`person`).

    x         (N, ...) numbers: an array, list, memory map, data frame, `data.Examples`, or an
              object with shape and indexing; with `schema` a table of any columns
    y         (N,) class labels (integers, booleans, whole floats, strings), or numbers to predict
              within `target_bounds`; None: the column of x that `schema` marks as the label
    epsilon   the budget; no more is spent. math.inf: the same without noise and clipping, in the
              steps of epsilon 8, which is not private, for comparison
    delta     default: the power of ten at or below 1 / (10 N), N rows or persons
    folder    keeps the run's files; the same call resumes a run that was interrupted
    ledger    path of a file that several fits share: charged under a lock before the noise; their
              sum is printed
    test      (x, y), public: accuracy or R2 is measured on these and decides nothing
    seed      reproducible, and not to be released
    quiet     print nothing
    settings  a `minidp.Settings`; help(minidp.Settings) describes each field: public facts of the
              data (classes, target_bounds, bounds, dataset_size, validation), what is trained
              (scale, hidden, network, sampler, lot_size, steps, clip_norm, learning_rate,
              example_weight), what the statement and the checks cover, and where it is computed.
              Each field may also be given by its own name, as in fit(x, y, epsilon=1, hidden=8)

    Raises
        BudgetExceededError   not one lot fits into epsilon
        DivergedError         weights overflowed while they were trained: there is no model, and
                              what was charged stays
        DataError             rows that are not finite, or labels of no class (with `check`)
        ParameterError, ShapeError, DtypeError   arguments that do not fit, or that are unknown
        KeyboardInterrupt     after Ctrl-C; with a folder the same call resumes the run

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(3000, 5)); y = np.where(x[:, 0] + x[:, 1] > 0, "yes", "no")
    >>> model = fit(x, y, epsilon=1.0, delta=1e-5, classes=["no", "yes"], dataset_size=3000,
    ...             seed=1, quiet=True)
    >>> model.predict(x[:3]).shape, model.score(x, y) > 0.8, float(model.epsilon) <= 1.0
    ((3,), True, True)
    """
    settings = settings_of(settings, more, list(signature(fit).parameters))
    flag(quiet=quiet)
    check_path(folder=folder, ledger=ledger)
    quiet = quiet or current().rank > 0
    with quietly(quiet):
        return _fit(x, y, epsilon, delta, folder, ledger, test, seed, quiet, settings)


def _fit(x, y, epsilon, delta, folder, ledger, test, seed, quiet, settings):
    """`fit`, its arguments checked."""
    check_ledger(epsilon, ledger, settings)
    subgroups = subgroups_of(test, settings.subgroups)
    x, test, settings = without_person(x, test, settings)
    x, y, test, settings = encoded(x, y, test, settings)
    streams = Streams(seed)
    data = _checked(x, y, test, settings, subgroups)
    budget, how_delta = _budget(epsilon, delta, data.size, quiet)
    network = trained_network(settings, data.shape, data.outputs, streams.init)
    head = Head(settings, data.shape, data.labels is not None, data.columns is not None)
    choice, given, plan, before = _chosen(settings, data, network, head, budget)
    # what the model cannot be made of is refused before anything is charged
    data.model([*head.first, *network.layers])
    with ExitStack() as undo:
        at = _temporary(undo) if folder is None else folder
        training = Training(
            network.to(data.inputs.backend),
            nn.SquaredError() if data.labels is None else nn.SoftmaxCrossEntropy(),
            _optimizer(choice),
            streams,
            measure_every=-(-choice.steps // MEASUREMENTS),
            keep_best=settings.validation is not None,
        )
        privacy = Privacy(
            plan,
            budget,
            data.size,
            settings.group_size,
            settings.check,
            train_metrics=False,
            rows_per_person=settings.rows_per_person,
        )
        about = About(
            "fit",
            flags=config_of(settings, data, head, network, seed, test, ledger),
            choices=choices_of(choice, given, head.scale, settings, ledger) | {"delta": how_delta},
            disclosed=data.disclosed,
            public=public_facts(settings, test),
            quiet=quiet,
        )
        run = Run(at, training, privacy, about)
        _charge(run, data, before, ledger, settings.ledger_limit)
        result = _train(run, data, head, ledger)
        if result is None:
            raise KeyboardInterrupt(
                run.summary() if folder is not None else "interrupted; nothing was kept"
            )
        kinds = {type(layer).__name__: type(layer) for layer in network.layers}
        fitted = current().of_first(lambda: Fitted(at, result, kinds))
        weakref.finalize(fitted, undo.pop_all().close)
    if not quiet:
        print(fitted)
    return fitted


# `help(fit)` shows the fields of Settings in place of **more
_own = signature(fit).parameters
_more = signature(Settings).parameters
fit.__annotations__.update(Settings.__annotations__)
vars(fit)["__signature__"] = signature(fit).replace(
    parameters=[*list(_own.values())[:-1], *_more.values()]
)


@dataclass
class _Data:
    """The training data, and what the run discloses about them."""

    inputs: Inputs
    targets: NDArray
    labels: Any  # the classes, None of a regression
    target_bounds: tuple[float, float] | None
    weight: NDArray | None
    persons: Persons | None
    measured: tuple[Inputs, NDArray] | None  # public (x, y)
    size: int  # N, public
    disclosed: list[str]
    columns: list[str] | None
    subgroups: dict[str, NDArray]

    @property
    def shape(self):
        """The shape of one row."""
        return self.inputs.shape[1:]

    @property
    def outputs(self):
        """The network's number of outputs."""
        return 1 if self.labels is None else len(self.labels)

    def model(self, layers, **about):
        """The model of these layers."""
        network = nn.Sequential(layers, self.shape)
        return Model(network, self.labels, self.target_bounds, about)


def _checked(x, y, test, settings, subgroups):
    """The data in the form that training needs. Raises unless rows, targets and weights fit each
    other.
    """
    if settings.validation is not None and test is not None:
        raise ParameterError(
            "expected validation= or test=, got both: evaluate the test set afterwards, by score"
        )
    bounds = settings.target_bounds
    if bounds is not None:
        bounds = as_target_bounds(bounds)
    backend = Backend.pick(settings.device)
    inputs = Inputs(x, backend)
    if not inputs.shape[0] and settings.dataset_size is None:
        raise ShapeError(f"fit: expected rows to train on, got x of shape {inputs.shape}: no rows")
    targets, labels = targets_of(y, settings.classes, bounds)
    disclosed = [] if settings.schema is None else settings.schema.disclosed
    if labels is not None and settings.classes is None:
        disclosed.append(f"which classes there are: {listed(labels)}")
    persons = persons_of(settings.person, settings.rows_per_person, inputs.shape[0])
    weight = settings.example_weight
    weight = None if weight is None else as_weights(weight)
    LabelledExamples(inputs, targets, 1, weight, persons)  # which fit each other
    public = settings.validation if test is None else test
    measured = None if public is None else _measured(public, x, inputs, labels, settings)
    size = settings.dataset_size
    if size is None:
        size = inputs.shape[0] if persons is None else len(persons)
        disclosed.append(f"the number of {'rows' if persons is None else 'persons'}, {size}")
    columns = columns_of(x)
    if columns:
        disclosed.append("the names of the columns")
    count(1, dataset_size=size)
    return _Data(
        inputs,
        backend.asarray(targets),
        labels,
        bounds,
        None if weight is None else backend.asarray(weight),
        persons,
        measured,
        size,
        disclosed,
        columns,
        subgroups,
    )


def _measured(public, trained, inputs, classes, settings):
    """Public (x, y) in the form that training needs. Raises, before a charge, if they do not fit
    the training data.
    """
    if not isinstance(public, (tuple, list)) or len(public) != 2:
        raise ParameterError("expected validation or test to be a pair (x, y)")
    x, y = public
    if x is trained:
        raise ParameterError(
            "expected public rows for validation or test, got the training rows: what is measured "
            "or chosen on them would not be private"
        )
    x = Inputs(x, inputs.backend)
    y, _ = targets_of(y, classes, settings.target_bounds)
    if x.shape[1:] != inputs.shape[1:]:
        raise ShapeError(
            f"fit: expected public x of rows {inputs.shape[1:]} as the training data's, got "
            f"{x.shape[1:]}"
        )
    same_batch("public data", x=x, y=y)
    return x, x.backend.asarray(y)


def _budget(epsilon, delta, size, quiet):
    """(the budget, how delta was chosen)."""
    positive(epsilon=epsilon)
    how = "given"
    if delta is None:
        delta = 10.0 ** math.floor(-math.log10(10 * size))
        how = "the power of ten at or below 1/(10 N)"
    open_probability(delta=delta)
    delta = float(delta)
    if why := large_delta(delta, size):
        how = f"given; it is {why}"
        if not quiet:
            print(f"NOTICE: delta={delta:g} is {why}")
    return Filter("loss_distribution", float(epsilon), delta), how


def _chosen(settings, data, network, head, budget):
    """(choice, settings that the caller gave, plan, events before the first step). The rule sets
    all other settings, with the least noise for the budget.
    """
    given = {
        field.name: field.type(getattr(settings, field.name))  # as plain numbers
        for field in fields(Choice)
        if getattr(settings, field.name, None) is not None
    }
    epsilon, delta = budget.epsilon, budget.delta
    private = epsilon < math.inf
    choice = choose(
        data.size,
        epsilon if private else WITHOUT_PRIVACY,
        delta,
        sum(array.size for array in network.params.values()),
        task="regression" if data.labels is None else "classification",
        hidden=len(network.params) > 2,
        row_norm=head.row_norm,
    )
    choice = replace(choice, **given)
    if choice.lot_size > data.size:
        raise ParameterError(
            f"expected lot_size={choice.lot_size} to be at most the {data.size} "
            f"{'rows' if data.persons is None else 'persons'} (dataset_size)"
        )
    lots = make_sampler(settings.sampler, data.size, choice.lot_size)
    choice = replace(choice, steps=-(-choice.steps // lots.period) * lots.period)
    before = head.events(
        budget.accountant, PoissonSampler(choice.lot_size / data.size), epsilon, delta
    )
    if not private:
        choice = unclipped(
            choice,
            given,
            ours=head.ours,
            hidden=len(network.params) > 2,
            regression=data.labels is None,
        )
    groups = flat_group(network.params, choice.clip_norm, float(private))
    plan = Plan(lots, Sanitizer(groups, arithmetic=head.arithmetic), choice.steps, choice.lot_size)
    if private:
        plan = plan.calibrated(budget.accountant, epsilon, delta, before)
    return choice, given, plan, before


def _optimizer(choice):
    optimizer = SGD(choice.learning_rate)
    if choice.momentum:
        optimizer = Momentum(choice.learning_rate, choice.momentum)
    return Averaged(optimizer, choice.average)


def _temporary(undo):
    """A folder that ends with `undo`."""
    at = current().of_first(lambda: tempfile.mkdtemp(prefix="minidp-"))
    if current().rank == 0:
        undo.callback(shutil.rmtree, at, ignore_errors=True)
    return at


def _charge(run, data, before, ledger, limit):
    """Check all that could make training fail, then charge the whole plan to the shared ledger."""
    run.check_rows(data.inputs, data.targets, data.weight, data.labels)
    # before anything is charged, the scaling included
    selfcheck.check(run.network, run.loss, data.targets)
    if ledger is None or run.begun or run.folder.finished:
        return
    charges = run.plan.ledger(before=before)
    unit = run.facts["unit"]
    total = run.ranks.of_first(lambda: charge_shared(ledger, charges, run.budget, limit, unit))
    if not run.quiet:
        print(sum_line(ledger, total, run.budget))


def _train(run, data, head, ledger):
    """Release the scaling, then train; returns the result, None if interrupted."""
    layers = head.layers(run, data.inputs, data.size, data.persons)
    inputs = scaled(data.inputs, layers, head.arithmetic)
    if run.plan.expected_lot_size < SPARSE * data.size and isinstance(inputs, Inputs):
        inputs.read_at_random()
    measured = ()
    if data.measured is not None:
        x, y = data.measured
        measured = scaled(x, layers, head.arithmetic), y
    about = {"scale": head.scale, "columns": data.columns}
    if head.schema is not None:
        about["schema"] = head.schema
    model = data.model(layers + run.network.layers, **about)
    try:
        return run.train(
            inputs,
            data.targets,
            *measured,
            example_weight=data.weight,
            person=data.persons,
            model=model,
            about=lambda: figures_of(run, data.subgroups, *measured),
        )
    except DivergedError as error:
        if ledger is None:
            raise
        raise DivergedError(
            f"{error}; {ledger} holds the charge of all {run.plan.steps} lots"
        ) from None
