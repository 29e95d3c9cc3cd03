"""From arrays to a private model and its statement in one call."""

import math
import shutil
import tempfile
import weakref
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from .. import nn
from ..backend import Backend
from ..data.arrays import (
    Inputs,
    as_target_bounds,
    as_weights,
    bounded_targets,
    class_labels,
    columns_of,
)
from ..errors import DivergedError, ParameterError, ShapeError
from ..exact.arithmetic import ORDINARY
from ..mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from ..mechanism.sampling import make_sampler
from ..privacy import Filter
from ..ranks import current
from ..run import Model, Run
from ..run.shared import charge_shared
from ..streams import Streams
from ..train import SGD, Averaged, Momentum, trial
from ..util.files import StrPath, check_path
from ..util.text import upper_text
from ..util.validate import count, flag, one_of, open_probability, positive_finite, same_batch
from .fitted import Fitted
from .heads import Head, choices_of, scaled, trained_network
from .rule import choose

MEASUREMENTS = 20  # along a run, with a checkpoint each
SPARSE = 1 / 32  # lots below this share of the rows touch few pages of a memory map


def fit(
    x: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    delta: float | None = None,
    classes: ArrayLike | None = None,
    target_bounds: tuple[float, float] | None = None,
    scale: str = "auto",
    bounds: Any = None,
    hidden: tuple[int, ...] | int = (),
    network: nn.Sequential | None = None,
    dataset_size: int | None = None,
    group_size: int = 1,
    example_weight: ArrayLike | None = None,
    validation: tuple[Any, ArrayLike] | None = None,
    test: tuple[Any, ArrayLike] | None = None,
    sampler: str = "poisson",
    lot_size: int | None = None,
    steps: int | None = None,
    clip_norm: float | None = None,
    learning_rate: float | None = None,
    folder: StrPath | None = None,
    ledger: StrPath | None = None,
    check: bool = True,
    arithmetic: str = ORDINARY,
    seed: int | None = None,
    device: str = "cpu",
    quiet: bool = False,
) -> Fitted:
    """Train a classifier or a regression on your own arrays, (epsilon, delta)-differentially
    private for each row.

    x  (N, ...) numbers: an array, list, memory map, data frame, `data.Examples`, or an object with
       shape and indexing
    y  (N,) class labels (integers, booleans, whole floats, strings), or numbers to predict within
       `target_bounds`

    Public facts of the data, which nothing protects
        classes        the list of classes; by default those in y, and the statement says that they
                       were told
        target_bounds  (low, high) of a regression; targets are clipped to them
        bounds         (low, high) of the features, numbers or arrays: each is mapped to [-1, 1]
        dataset_size   N for the sampling; by default len(x), and the statement says that it was
                       told
        validation     (x, y): of the weights along the run, the best on these are released
        test           (x, y): accuracy or R2 on these is measured; no choice follows from it
    What is trained
        scale      "unit-norm": each row divided by its length; "bounds": each feature mapped to
                   [-1, 1] and held there; "private": by a noisy mean and spread of each feature,
                   which a third of the budget pays for; "none"; "auto": bounds where they are
                   given, else unit norm. A classification's rows are then moved by their noisy
                   mean, which a tenth of the budget pays for
        hidden     sizes of hidden layers; none is logistic (or linear) regression
        network    a `Sequential` of your own for inputs of this shape, giving one logit per class,
                   or one number; it is copied. Its inputs are scaled as `scale` says and nothing
                   else ("auto" without bounds: not at all)
        sampler    "poisson", or "balls-in-bins": every epoch each row is in exactly one lot; steps
                   are then whole epochs
        lot_size, steps, clip_norm, learning_rate   by default `rule.choose`: from N, epsilon,
                                                    delta and the number of
                   parameters alone, by a rule that was chosen on drawn data
        example_weight   (N,) in [0, 1], each depending on its own row only
    Privacy
        delta        by default the power of ten at or below 1 / (10 N)
        group_size   k: the statement also says what the fit costs k rows of one person
        check        stop before any charge, with a message for the data's owner, if rows are not
                     finite or labels are no classes; False trains all the same: such rows
                     contribute nothing
        ledger       path of a file that several fits share: charged under a lock before the noise;
                     their sum is printed
        arithmetic   "exact": slower, and the guarantee holds for the released bits; "ordinary"
        seed         reproducible, and not to be released
    folder  keeps the run's files; the same call goes on with a run that was interrupted. device:
            "cpu", "gpu", "auto"

    Raises
        BudgetExceededError   not one lot fits into epsilon
        DivergedError         weights overflowed while they were trained: there is no model, and
                              what was charged stays
        DataError             rows or labels that cannot be learned from (with `check`)
        ParameterError, ShapeError, DtypeError   arguments that do not fit
        KeyboardInterrupt     after Ctrl-C; with a folder the same call goes on

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(3000, 5)); y = np.where(x[:, 0] + x[:, 1] > 0, "yes", "no")
    >>> model = fit(x, y, epsilon=1.0, delta=1e-5, classes=["no", "yes"], dataset_size=3000,
    ...             seed=1, quiet=True)
    >>> model.predict(x[:3]).shape, model.score(x, y) > 0.8, float(model.epsilon) <= 1.0
    ((3,), True, True)
    """
    if validation is not None and test is not None:
        raise ParameterError(
            "expected validation= or test=, got both: evaluate the test set afterwards, by score"
        )
    flag(check=check, quiet=quiet)
    check_path(folder=folder, ledger=ledger)
    one_of(("poisson", "balls-in-bins"), sampler=sampler)
    if target_bounds is not None:
        target_bounds = as_target_bounds(target_bounds)
    backend, streams, ranks = Backend.pick(device), Streams(seed), current()
    quiet = quiet or ranks.rank > 0
    public = validation if test is None else test
    data = _prepare(x, y, classes, target_bounds, example_weight, public, dataset_size, backend)
    positive_finite(epsilon=epsilon)
    delta, how_delta = _delta(delta, data.size, quiet)
    outputs = 1 if data.labels is None else len(data.labels)
    body = trained_network(network, data.shape, outputs, hidden, streams.init)
    whole = _given(lot_size=lot_size, steps=steps)
    real = _given(clip_norm=clip_norm, learning_rate=learning_rate)
    count(1, **whole)
    positive_finite(**real)
    given = {name: int(value) for name, value in whole.items()}
    given |= {name: float(value) for name, value in real.items()}
    head = Head(scale, bounds, data.shape, network is None, data.labels is not None, arithmetic)
    budget = Filter("loss_distribution", float(epsilon), delta)
    choice, plan, before = _plan(data, body, head, budget, sampler, given)
    flags = {
        "scale": head.scale,
        "bounds": None if head.bounds is None else [each.tolist() for each in head.bounds],
        "seed": seed,
        "weighted": example_weight is not None,
        "group_size": group_size,
        "shared_ledger": ledger is not None,
        "check": check,
        "public": "validation" if validation is not None else None if test is None else "test",
        "classes": None if data.labels is None else data.labels.tolist(),
        "target_bounds": target_bounds,
        "shapes": {".".join(key): array.shape for key, array in body.params.items()},
    }
    if sampler != "poisson":
        flags["sampler"] = sampler
    told = {
        "classes": classes,
        "target bounds": target_bounds,
        "bounds of the features": bounds,
        "the number of rows": dataset_size,
        "rows of validation": validation,
        "rows of the test": test,
        "layers and initial weights of the network": network,
    }
    choices = choices_of(choice, given, head.scale, network, hidden, ledger)

    # what the model cannot be made of is refused before anything is charged
    Model(nn.Sequential(head.first + body.layers, data.shape), data.labels, target_bounds)
    at = ranks.of_first(lambda: tempfile.mkdtemp(prefix="minidp-")) if folder is None else folder
    try:
        run = Run(
            at,
            body.to(backend),
            nn.SquaredError() if data.labels is None else nn.SoftmaxCrossEntropy(),
            _optimizer(choice),
            plan,
            budget,
            streams,
            name="fit",
            dataset_size=data.size,
            flags=flags,
            choices=choices | {"delta": how_delta},
            disclosed=data.disclosed,
            public=[
                f"{what}, as the caller gave them: taken to be public" for what in _given(**told)
            ],
            group_size=group_size,
            measure_every=-(-choice.steps // MEASUREMENTS),
            keep_best=validation is not None,
            check=check,
            train_metrics=False,
            quiet=quiet,
        )
        result = _run(run, data, head, before, ledger, target_bounds)
        if result is None:
            raise KeyboardInterrupt(
                run.summary() if folder is not None else "interrupted; nothing was kept"
            )
        fitted = ranks.of_first(
            lambda: Fitted(at, result, {type(layer).__name__: type(layer) for layer in body.layers})
        )
    except BaseException:
        if folder is None and ranks.rank == 0:
            shutil.rmtree(at, ignore_errors=True)
        raise
    if folder is None and ranks.rank == 0:
        weakref.finalize(fitted, shutil.rmtree, at, ignore_errors=True)
    if not quiet:
        print(fitted)
    return fitted


@dataclass
class _Data:
    """What is trained on, and what is told of it."""

    inputs: Inputs
    targets: Any
    labels: Any  # the classes, None of a regression
    weight: Any
    measured: tuple  # public (x, y), or nothing
    size: int  # N, public
    disclosed: list[str]
    columns: Any
    shape: tuple[int, ...]  # of one row


def _prepare(x, y, classes, target_bounds, example_weight, public, dataset_size, backend):
    """The data as training takes them; refused where rows, targets and weights do not fit each
    other.
    """
    inputs = Inputs(x, backend)
    targets, labels, disclosed = _targets(y, classes, target_bounds)
    weight = None if example_weight is None else as_weights(example_weight)
    same_batch("fit", x=inputs, y=targets, **_given(example_weight=weight))
    measured = () if public is None else _public(public, x, inputs, labels, target_bounds, backend)
    size = inputs.shape[0] if dataset_size is None else dataset_size
    if dataset_size is None:
        disclosed.append(f"the number of rows, {size}")
    columns = columns_of(x)
    if columns:
        disclosed.append("the names of the columns")
    count(1, dataset_size=size)
    return _Data(
        inputs, targets, labels, weight, measured, size, disclosed, columns, inputs.shape[1:]
    )


def _delta(delta, size, quiet):
    """(delta, how it was chosen)."""
    if delta is None:
        return 10.0 ** math.floor(-math.log10(10 * size)), "the power of ten at or below 1/(10 N)"
    open_probability(delta=delta)
    if delta * size < 1:
        return float(delta), "given"
    why = f"not below 1/{size}, so that publishing somebody's whole row would pass the guarantee"
    if not quiet:
        print(f"NOTICE: delta={delta:g} is {why}")
    return float(delta), f"given; it is {why}"


def _plan(data, body, head, budget, sampler, given):
    """(choice, plan, events before the first step): what the caller gave, else the rule, with the
    least noise for the budget.
    """
    epsilon, delta = budget.epsilon, budget.delta
    task = "regression" if data.labels is None else "classification"
    parameters = sum(array.size for array in body.params.values())
    choice = choose(
        data.size,
        epsilon,
        delta,
        parameters,
        task=task,
        hidden=len(body.params) > 2,
        row_norm=head.row_norm,
    )
    choice = replace(choice, **given)
    if choice.lot_size > data.size:
        raise ParameterError(
            f"expected lot_size={choice.lot_size} to be at most the {data.size} rows (dataset_size)"
        )
    lots = make_sampler(sampler, data.size, choice.lot_size)
    choice = replace(choice, steps=-(-choice.steps // lots.period) * lots.period)
    before = head.events(
        budget.accountant, PoissonSampler(choice.lot_size / data.size), epsilon, delta
    )
    groups = flat_group(body.params, choice.clip_norm, 1.0)
    plan = Plan(lots, Sanitizer(groups, arithmetic=head.arithmetic), choice.steps, choice.lot_size)
    return choice, plan.calibrated(budget.accountant, epsilon, delta, before), before


def _run(run, data, head, before, ledger, target_bounds):
    """Check, charge the shared ledger, release the scaling, train; returns the result, None if
    interrupted.
    """
    backend, arithmetic = data.inputs.backend, head.arithmetic
    targets = backend.asarray(data.targets)
    weight = None if data.weight is None else backend.asarray(data.weight)
    run.check_rows(data.inputs, targets, weight)
    trial.check(run.network, run.loss, targets)  # before anything is charged, the scaling included
    if ledger is not None and not run.begun and not run.folder.finished:
        total = run.ranks.of_first(lambda: charge_shared(ledger, run.plan.ledger(before=before)))
        if not run.quiet:
            spent = run.budget.accountant.epsilon(total, run.budget.delta).upper
            print(
                f"{ledger}: epsilon {upper_text(spent)} at delta {run.budget.delta:g} for all fits "
                "that share this ledger; choosing among them by scores on private rows is not "
                "covered"
            )
    layers = head.layers(run, data.inputs, data.size)
    inputs = scaled(data.inputs, layers, arithmetic)
    if run.plan.expected_lot_size < SPARSE * data.size and isinstance(inputs, Inputs):
        inputs.read_at_random()
    measured = ()
    if data.measured:
        x, y = data.measured
        measured = scaled(x, layers, arithmetic), backend.asarray(y)
    model = Model(
        nn.Sequential(layers + run.network.layers, data.shape),
        data.labels,
        target_bounds,
        {"scale": head.scale, "columns": data.columns},
    )
    try:
        return run.train(inputs, targets, *measured, example_weight=weight, model=model)
    except DivergedError as error:
        if ledger is None:
            raise
        raise DivergedError(
            f"{error}; {ledger} holds the charge of all {run.plan.steps} lots"
        ) from None


def _given(**values):
    """The values that the caller gave."""
    return {name: value for name, value in values.items() if value is not None}


def _targets(y, classes, target_bounds):
    """(targets as training takes them, classes or None, what is told of the data)."""
    if target_bounds is not None:
        if classes is not None:
            raise ParameterError("expected classes= or target_bounds=, got both")
        return bounded_targets(y, target_bounds), None, []
    labels, found = class_labels(y, classes)
    if classes is not None:
        return labels, found, []
    more = ", ..." if len(found) > 20 else ""
    return labels, found, [f"which classes there are: {', '.join(map(str, found[:20]))}{more}"]


def _public(public, trained, inputs, classes, target_bounds, backend):
    """(x, y) that are public, as training takes them; refused before a charge where they are not
    like the training data.
    """
    if not isinstance(public, (tuple, list)) or len(public) != 2:
        raise ParameterError("expected validation or test to be a pair (x, y)")
    x, y = public
    if x is trained:
        raise ParameterError(
            "expected public rows for validation or test, got the training rows: what is measured "
            "or chosen on them would not be private"
        )
    x, y = Inputs(x, backend), _targets(y, classes, target_bounds)[0]
    if x.shape[1:] != inputs.shape[1:]:
        raise ShapeError(
            f"fit: expected public x of rows {inputs.shape[1:]} as the training data's, got "
            f"{x.shape[1:]}"
        )
    same_batch("public data", x=x, y=y)
    return x, y


def _optimizer(choice):
    optimizer = SGD(choice.learning_rate)
    if choice.momentum:
        optimizer = Momentum(choice.learning_rate, choice.momentum)
    return Averaged(optimizer, choice.average) if choice.average else optimizer
