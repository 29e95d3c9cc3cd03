"""From arrays to a private model and its statement in one call."""

import math
import weakref
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from .. import nn
from ..backend import to_host
from ..data.arrays import Inputs
from ..errors import DivergedError, MinidpError, ParameterError
from ..examples import LabelledExamples
from ..mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from ..privacy import Filter, Ledger
from ..ranks import current
from ..run import About, Model, Privacy, Run, Training
from ..run.attacker import large_delta
from ..run.resumed import released_first
from ..run.shared_ledger import charge_shared, renew, spent_of, sum_line
from ..run.versions import git_commit
from ..streams import Streams
from ..train import SGD, Averaged, Momentum, selfcheck
from ..util.atomic import StrPath
from ..util.notices import quietly, say, tell
from ..util.validate import open_probability
from .copies import remark_copies
from .defaults import Choice, choose_for
from .model import Fitted
from .network import scaled, trained_network
from .outputs import FEWEST_ROWS_EACH, Head
from .records import choices_of, config_of, public_facts
from .rows import data_of
from .settings import Request, Settings, names_checked
from .temporary import kept, temporary

SPARSE = 1 / 32  # lots below this share of the rows touch few pages of a memory map
FEWEST_ROWS = 40.0  # mu N of a fit that can help
MEASUREMENTS = 10  # along a run, with a checkpoint each


@names_checked
def fit(
    x: Any,
    y: ArrayLike | None = None,
    *,
    epsilon: float,
    delta: float | None = None,
    folder: StrPath | None = None,
    ledger: StrPath | None = None,
    test: tuple[Any, ArrayLike] | None = None,
    seed: int | None = None,
    quiet: bool = False,
    settings: Settings | None = None,
    **named: Any,
) -> Fitted:
    """Train a classifier or a regression on your own arrays, (epsilon, delta)-differentially
    private for each row, or for each person with all of their rows (`person`).

    x         (N, ...) numbers: an array, list, memory map, `data.Examples`, or an object with shape
              and indexing; or a table (a data frame, a dict of columns, or the path of a file), of
              any columns with `schema`
    y         (N,) class labels (integers, booleans, strings, at most ten whole floats; others with
              `classes`), or numbers to predict within `target_bounds`; None: the column of x that
              `label` or `schema` names
    epsilon   the budget; no more is spent. math.inf trains without noise and clipping, with the
              steps of epsilon 8, for comparison; this is not private
    delta     default: the power of ten at or below 1 / (10 N), N rows or persons
    folder    keeps the run's files; the same call resumes a run that was interrupted
    ledger    path of a file that several fits share. It is charged under a lock before the noise is
              drawn, and the sum of all fits is printed
    test      (x, y), public rows for the printed accuracy or R2; they influence nothing else
    seed      an integer for a reproducible run, which must not be released
    quiet     print only lines with NOTICE, which are for you alone
    settings  a `minidp.Settings`; help(minidp.Settings) describes each field: public facts of the
              data (classes, target_bounds, bounds, dataset_size), the training (scale, hidden,
              network, lot_size, steps, clip_norm, learning_rate, example_weight), the statement and
              the checks, and the device. Each field may also be given by its own name, as in fit(x,
              y, epsilon=1, hidden=8)

    Raises
        BudgetExceededError   not one lot fits into epsilon
        DivergedError         weights overflowed in training: there is no model, and the charges
                              remain
        DataError             rows that are not finite, or labels of no class (with `check`)
        ParameterError, ShapeError, DtypeError   arguments that do not fit or are unknown
        KeyboardInterrupt     after Ctrl-C; with a folder the same call resumes the run

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(3000, 5)); y = np.where(x[:, 0] + x[:, 1] > 0, "yes", "no")
    >>> model = fit(x, y, epsilon=1.0, delta=1e-5, classes=["no", "yes"], dataset_size=3000,
    ...             seed=1, quiet=True)
    >>> model.predict(x[:3]).shape, model.score(x, y) > 0.8, float(model.epsilon) <= 1.0
    ((3,), True, True)
    """
    by_name = Settings(**named)
    settings = by_name if settings is None else replace(by_name, **settings.given)
    other = current().rank > 0
    quiet = quiet or other
    request = Request(
        epsilon=epsilon,
        delta=delta,
        folder=folder,
        ledger=ledger,
        test=test,
        seed=seed,
        quiet=quiet,
        settings=settings,
    )
    with quietly(quiet, silent=other):
        return _fitted(x, y, request)


def _fitted(x, y, request):
    """Train, and return the model. Raises KeyboardInterrupt if the training was interrupted."""
    folder, ledger = request.folder, request.ledger
    with ExitStack() as undo:
        data, settings = data_of(x, y, request.test, request.settings)
        request = replace(request, settings=settings)
        streams = Streams(request.seed)
        budget, how_delta = _budget(request, data.size)
        planned = _Planned(request, data, budget, streams)
        remark_copies(data, planned.plan.ledger(before=planned.before), budget.delta)
        at = temporary(undo) if folder is None else folder
        run = Run(at, planned.training(streams), planned.privacy(budget), planned.about(how_delta))
        _rehearse(run, data, planned.head)
        planned.remark()
        with kept(undo, run, ledger):
            _charge(run, planned.before, ledger, settings.ledger_limit)
            result = _train(run, data, planned.head, ledger, planned.choice)
            if result is None:
                raise KeyboardInterrupt(run.summary())
            kinds = {type(layer).__name__: type(layer) for layer in planned.network.layers}
            fitted = current().of_first(lambda: Fitted(at, result, kinds))
            if folder is not None:
                current().of_first(lambda: _draw(fitted, request, data))
            if not request.quiet:
                tell(fitted)
            weakref.finalize(fitted, undo.pop_all().close)  # a temporary folder is deleted with it
            return fitted


def _draw(fitted, request, data):
    """Draw pictures of the model, and of its probabilities on public rows."""
    if data.measured is None or data.labels is None:
        fitted.draw(fitted.folder)
    else:
        fitted.draw(fitted.folder, request.test[0], to_host(data.measured[1]))


class _Planned:
    """The training of a fit, with the least noise for the budget.

    choice, given  all settings of the run, and the settings that the caller gave
    plan, before   the steps, and the events before the first one
    """

    def __init__(self, request, data, budget, streams):
        settings = request.settings
        head = Head(settings, data, budget)
        network = trained_network(settings, head.shape, data.outputs, streams.init)
        self.request, self.settings = request, settings
        self.data, self.head = data, head
        self.network = network.to(data.inputs.backend)
        self.loss = nn.SquaredError() if data.labels is None else nn.SoftmaxCrossEntropy()
        self.given = {
            field.name: field.type(getattr(settings, field.name))  # as plain numbers
            for field in fields(Choice)
            if getattr(settings, field.name, None) is not None
        }
        self._plan(budget)
        # refuse parts of which no model can be made before anything is charged
        bounds = (-1.0, 1.0) if head.target else None
        _model(data, [*head.unreleased, *network.layers], bounds)

    def _plan(self, budget):
        data, head, params = self.data, self.head, self.network.params
        epsilon, delta = budget.epsilon, budget.delta
        # inputs of pieces belong to their columns
        self.parameters = sum(array.size for array in params.values())
        self.parameters -= head.width_of_pieces * data.outputs
        choice = choose_for(
            self.given,
            data.size,
            epsilon,
            delta,
            self.parameters,
            table=head.of_classes,
            row_norm=head.row_norm,
            ours=head.ours,
            hidden=len(params) > 2,
            regression=data.labels is None,
        )
        if choice.lot_size > data.size:
            raise ParameterError(
                f"expected lot_size={choice.lot_size} to be at most the {data.size} "
                f"{data.units.name}s (dataset_size)"
            )
        sampler = PoissonSampler(choice.lot_size / data.size)
        self.before = head.events(budget.accountant, sampler, delta)
        private = epsilon < math.inf
        groups = flat_group(params, choice.clip_norm, float(private))
        plan = Plan(sampler, Sanitizer(groups), choice.steps, choice.lot_size)
        if private:
            plan = plan.calibrated(budget.accountant, epsilon, delta, self.before)
        self.choice, self.plan = choice, plan

    def remark(self):
        """Print a NOTICE if there are too few rows, which follows from public numbers."""
        size, mu, outputs = self.data.size, self.head.mu, self.data.outputs
        weights = self.parameters // outputs
        if self.head.ours and mu * size < max(FEWEST_ROWS, FEWEST_ROWS_EACH * weights):
            say(
                f"NOTICE: {size} {self.data.units.name}s are few for {weights} weights of each of "
                f"{outputs} outputs at this epsilon: the model may do no better than the same "
                "answer for every row. More of them, a larger epsilon, or fewer columns and "
                "categories help"
            )

    def training(self, streams):
        """The part of a run's description on the training of the network."""
        choice = self.choice
        optimizer = SGD(choice.learning_rate)
        if choice.momentum:
            optimizer = Momentum(choice.learning_rate, choice.momentum)
        return Training(
            self.network,
            self.loss,
            Averaged(optimizer, choice.average),
            streams,
            measure_every=-(-choice.steps // MEASUREMENTS),
        )

    def privacy(self, budget):
        """The part of a run's description on the plan and the budget."""
        return Privacy(
            self.plan,
            budget,
            self.data.size,
            self.settings.group_size,
            self.settings.check,
            train_metrics=False,
            rows_per_person=self.settings.rows_per_person,
        )

    def about(self, how_delta):
        """The part of a run's description for its files and the screen."""
        request, settings, data, head = self.request, self.settings, self.data, self.head
        choices = choices_of(self.choice, self.given, head.how, request)
        return About(
            "fit",
            source=settings.source or ("arrays" if data.columns is None else "a table"),
            flags=config_of(request, data, head, self.network),
            choices=choices | {"delta": how_delta},
            disclosed=data.disclosed,
            public=public_facts(request),
            commit=git_commit(),
            quiet=request.quiet,
        )


def _budget(request, size):
    """(the budget, a text on how delta was chosen)."""
    delta, how = request.delta, "given"
    if delta is None:
        delta = 10.0 ** math.floor(-math.log10(10 * size))
        how = "the power of ten at or below 1/(10 N)"
    open_probability(delta=delta)
    delta = float(delta)
    if why := large_delta(delta, size):
        how = f"given; it is {why}"
        say(f"NOTICE: delta={delta:g} is {why}")
    return Filter("loss_distribution", float(request.epsilon), delta), how


def _rehearse(run, data, head):
    """Try everything that could make the training fail, as far as possible before any charge."""
    targets = head.targets(data.targets)
    run.check_rows(data.inputs, targets, data.weight, data.labels)
    selfcheck.check(run.network, run.training.loss, targets)
    if data.measured is not None:
        _ = data.measured[0][:1]
    run.rehearse(scaled(data.inputs, head.unreleased), targets)
    selfcheck.check_rows(LabelledExamples(data.inputs, targets, data.units))


def _charge(run, before, ledger, limit):
    """Charge the whole plan to the shared ledger before anything is released, including the
    scaling.
    """
    if ledger is None:
        return
    before = released_first(run.open()) if run.begun else before
    charges = Ledger(run.plan.relation, run.plan.ledger(before=before).entries(), run.privacy.unit)
    again = run.begun or run.folder.finished
    if not again:  # charges of an attempt without a checkpoint remain
        for entry in run.ledger.entries():
            charges.append(*entry)

    def charge():
        total = charge_shared(ledger, charges, run.budget, limit, run.folder, again)
        if run.folder.fit is not None:  # not begun by an older version
            run.folder.on_charge = partial(renew, ledger, run.folder)
        return total

    try:
        total = current().of_first(charge)
    except MinidpError:
        if not again:
            run.folder.give_up()
        raise
    if not run.quiet:
        tell(sum_line(ledger, total, run.budget))


def _model(data, layers, bounds, **about):
    """The model of these layers."""
    return Model(nn.Sequential(layers, data.shape), data.labels, bounds, about)


def _train(run, data, head, ledger, choice):
    """Release the scaling, then train; returns the result, None if interrupted."""
    layers = head.layers(run)
    inputs = scaled(data.inputs, layers)
    if run.plan.expected_lot_size < SPARSE * data.size and isinstance(inputs, Inputs):
        inputs.read_at_random()
    measured = ()
    if data.measured is not None:
        x, y = data.measured
        measured = scaled(x, layers), head.targets(y)
    bounds = head.target.bounds if head.target else None
    about = {"scale": head.scale, "columns": data.columns}
    if head.schema is not None:
        about["schema"] = head.schema

    model = _model(data, [*layers, *run.network.layers], bounds, **about)

    def about_fit():
        (group,) = run.plan.sanitizer.groups
        noise_std = group.noise_std / run.plan.expected_lot_size
        model.about["noise"] = head.shrink(run.network, choice, noise_std)
        return _sum_of(ledger, run)

    try:
        return run.train(
            inputs,
            head.targets(data.targets),
            *measured,
            example_weight=data.weight,
            person=data.units,
            model=model,
            about=about_fit,
        )
    except DivergedError as error:
        if ledger is None:
            raise
        raise DivergedError(
            f"{error}; {ledger} holds the charge of all {run.plan.steps} lots"
        ) from None


def _sum_of(ledger, run):
    """{"shared_ledger": epsilon of all fits in it so far}; {} without a shared ledger. If its file
    cannot be read any more, prints a NOTICE and returns {}, because the model is paid for.
    """
    if ledger is None:
        return {}
    try:
        return {"shared_ledger": spent_of(Ledger.load(ledger), run.budget)}
    except (MinidpError, OSError) as error:
        say(f"NOTICE: {ledger}: the sum of all fits is in no file of this run ({error})")
        return {}
