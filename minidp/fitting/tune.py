"""`minidp.tune`: the best of several fits, and the search for it paid in one charge."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.arrays import refuse_bad_rows
from ..errors import BudgetExceededError, MinidpError, ParameterError
from ..mechanism.before.centring import mean_sanitizer, noisy_mean
from ..privacy import Filter, Gaussian, Ledger
from ..privacy.calibrate import noise_multiplier_for
from ..privacy.event_json import event_to_json
from ..privacy.gaussian import gaussian_epsilon
from ..privacy.search_cost import (
    LAWS,
    POISSON_PART,
    geometric_gamma,
    run_event,
    tuning_event,
)
from ..ranks import current
from ..run import Run
from ..run.result import began
from ..run.tuning import TUNING, InMemory, Prepaid, SearchFolder
from ..streams import Draws, Streams
from ..train import Progress, selfcheck
from ..train.metrics import right_answers
from ..train.trainer import TrainRecord
from ..util.atomic import StrPath
from ..util.text import upper_text
from ..util.validate import one_of, positive_finite
from ..util.waiting import quietly, waiting
from .fit import _budget, _charge_shared, _fitted_at, _Planned, _temporary
from .fitted import Fitted
from .heads import trained_network
from .prepared import data_of, refuse_bounds, sum_of, train
from .rule import mu_of
from .settings import Settings, settings_of

TUNED = ("hidden", "scale", "lot_size", "steps", "clip_norm", "learning_rate")
HELD_OUT = 0.2  # of the rows, or persons
ATTEMPTS = 20  # at the epsilon of one run


def tune(
    x: Any,
    y: ArrayLike | None,
    candidates: Sequence[Mapping[str, Any]],
    *,
    epsilon: float,
    delta: float | None = None,
    runs: float | None = None,
    law: str = "geometric",
    folder: StrPath | None = None,
    ledger: StrPath | None = None,
    test: tuple[Any, ArrayLike] | None = None,
    seed: int | None = None,
    quiet: bool = False,
    settings: Settings | None = None,
    **more: Any,
) -> Fitted:
    """Train with several public settings and return the best model; epsilon and delta cover the
    whole search.

    candidates  dicts of settings, such as {"learning_rate": 0.5, "hidden": [8]}, with the names in
                TUNED. Write them down before you look at the data
    runs        None: every candidate is trained once. A number: so many runs on average, each with
                a candidate that is drawn; their number K is drawn before anything else and told to
                nobody
    law         of K: "geometric" or "poisson". A Poisson K may be 0: the result is then the
                untrained network of the first candidate
    validation  (x, y), public: what runs are scored on. None: a fifth of the rows (or persons) is
                held out, by a coin for each, and a run's score is a noisy count of right answers on
                it (for a regression, of 1 - (error / range)^2)
    x, y and all other parameters are those of `minidp.fit`

    The search is charged before its first run. Its runs are in memory alone, and only the best
    one's files are written, at the end. A search does not resume: what it was charged stays
    charged, and the same call again is a new charge.

    Raises
        BudgetExceededError   no run with any noise fits into epsilon
        ParameterError        candidates that are no list of such dicts; a folder that holds a run;
                              several ranks
        and what `minidp.fit` raises

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(3000, 5)); y = np.where(x[:, 0] + x[:, 1] > 0, "yes", "no")
    >>> model = tune(x, y, [{"learning_rate": 1.0}, {"learning_rate": 5.0}], epsilon=1.0,
    ...              delta=1e-5, classes=["no", "yes"], dataset_size=3000, seed=1, quiet=True)
    >>> model.score(x, y) > 0.8, float(model.epsilon) <= 1.0
    (True, True)
    """
    streams = Streams(seed)
    if not isinstance(candidates, Sequence) or not candidates:
        raise ParameterError(f"expected a list with at least one candidate, got {candidates!r:.80}")
    picked = _picked(len(candidates), runs, law, streams.sampling("runs"))
    positive_finite(epsilon=epsilon)
    settings = settings_of(tune, settings, more, epsilon, folder, ledger, quiet)
    if current().size > 1:
        raise ParameterError("expected one process: a search runs on one rank, got several")
    with quietly(quiet), ExitStack() as undo:
        data, settings = data_of(x, y, test, settings)
        each = []
        for place, candidate in enumerate(candidates):
            with _of_candidate(place):
                if not isinstance(candidate, Mapping) or not candidate.keys() <= set(TUNED):
                    names = ", ".join(TUNED)
                    raise ParameterError(f"expected a dict of {names}, got {candidate!r:.80}")
                each.append(replace(settings, **candidate))
                refuse_bounds(each[-1])
        budget, how_delta = _budget(epsilon, delta, data.size, quiet)
        if runs is not None:
            budget = Filter("renyi", budget.epsilon, budget.delta)
        search = _Search(each, list(map(dict, candidates)), data, budget, runs, law, streams)
        if settings.check:
            refuse_bad_rows(data.inputs, data.targets, data.outputs, data.weight, data.labels)
        for planned in search.planned:
            selfcheck.check(planned.network, planned.loss, data.targets)
        at = SearchFolder(_temporary(undo) if folder is None else folder)
        at.begin(search.config, streams)
        unit, limit = "row" if data.persons is None else "person", settings.ledger_limit

        def tell():
            if not quiet:
                print(
                    f"the whole search is charged first: epsilon {budget.epsilon:g} at delta "
                    f"{budget.delta:g}; it does not resume, and the same call again is a new charge"
                )

        try:
            _charge_shared(at, ledger, search.charges, budget, limit, unit, quiet, tell)
            at.charge(search.charges)
            best = search.best(
                picked, lambda each: each.about(TUNING, how_delta, seed, test, ledger, True), seed
            )
            result = best.write(at, sum_of(ledger, best))
        except KeyboardInterrupt:
            kept = " and ".join(str(each) for each in (ledger, folder) if each is not None)
            raise KeyboardInterrupt(
                f"interrupted: epsilon {upper_text(search.spent)} stays charged"
                f"{f' in {kept}' if kept else ', and no file says so'}; a search does not resume"
            ) from None
        fitted = _fitted_at(at.path, result, best.network, undo)
    if not quiet:
        print(fitted)
    return fitted


def _picked(candidates, runs, law, draws):
    """The number of each run's candidate."""
    one_of(LAWS, law=law)
    if runs is None:
        return range(candidates)
    if runs == 1:
        raise ParameterError(
            "expected runs above 1, got runs=1, which draws one candidate and compares none; "
            "without runs each candidate is trained once"
        )
    return draws.below(candidates, number_of_runs(runs, law, draws)).tolist()


def number_of_runs(runs: float, law: str, draws: Draws) -> int:
    """K, drawn from the law of mean `runs`: "geometric" exactly from that of `geometric_gamma`,
    "poisson" as a sum of parts of mean 32 and a rest, each within the total variation 2^-40 of its
    law, which `tuning_event` charges.
    """
    gamma, number = geometric_gamma(runs), 0
    if law == "geometric":
        while number == 0 or draws.random() >= gamma:
            number += 1
        return number
    while runs > 0:
        part = min(runs, POISSON_PART)
        arrived = -math.log1p(-draws.random())
        while arrived <= part:
            number += 1
            arrived -= math.log1p(-draws.random())
        runs -= part
    return number


@contextmanager
def _of_candidate(place: int) -> Iterator[None]:
    """Within it, messages of errors begin with the number of the candidate."""
    try:
        yield
    except MinidpError as error:
        raise type(error)(f"candidate {place}: {error}") from error


def held_out(streams: Streams, units: int) -> NDArray:
    """Which of the rows, or persons, are held out, (units,) bool: a coin for each, of its own
    number alone, so that one more moves no other.
    """
    coins = streams.sampling("held out").rows(np.arange(units))
    return coins.random((units, 1))[:, 0] < HELD_OUT


class _Search:
    """All runs of one search.

    each        the settings of each candidate
    candidates  the same as the caller gave them, for the record
    mean, law   of the number of runs; mean None: every candidate once
    charges     the ledger of the whole search: one event
    spent       its epsilon
    """

    def __init__(self, each, candidates, data, budget, mean, law, streams):
        self.data, self.held, self.streams = data, None, streams
        self.budget, self.mean, self.law = budget, mean, law
        if each[0].validation is None:
            coins, share = held_out(streams, data.units), max(1, round(HELD_OUT * data.size))
            self.held = data.part(coins, share)
            self.data = data.part(~coins, max(1, data.size - share))
        self.relation = budget.accountant.relation
        self._plan(each)
        self.facts = {
            "candidates": candidates,
            "runs": mean,
            "law": None if mean is None else law,
            "examples": data.size,
            "held_out": None if self.held is None else HELD_OUT,
            "score_noise_multiplier": self.score and self.score.groups[0].noise_multiplier,
            "events": list(map(event_to_json, self.events)),
            "score_event": self.score_event and event_to_json(self.score_event),
        }
        self.config = {
            "experiment": TUNING,
            "tuning": self.facts,
            "settings": {"delta": budget.delta, "target_epsilon": budget.epsilon},
        }

    def _plan(self, each):
        """The runs with the least noise for the budget: each costs what a Gaussian release costs
        that fits, or a little less where its curve is another one.
        """
        epsilon, delta = self.budget.epsilon, self.budget.delta
        alike = partial(tuning_event, self.relation, mean=self.mean, law=self.law)

        def of_gaussians(noise):
            return Ledger(self.relation, [(alike([Gaussian(noise)] * len(each)),)])

        noise = noise_multiplier_for(self.budget.accountant, of_gaussians, epsilon, delta)
        share = gaussian_epsilon(1 / noise, delta)
        for _ in range(ATTEMPTS):
            once = Filter("loss_distribution", share, delta)
            self.planned = []
            for place, one in enumerate(each):
                with _of_candidate(place):
                    self.planned.append(_Planned(one, self.data, once, Streams(0)))
            ledgers = [planned.plan.ledger(before=planned.before) for planned in self.planned]
            self.events, self.score, self.score_event = list(map(run_event, ledgers)), None, None
            if self.held is not None:
                arithmetic = each[0].arithmetic
                self.score = mean_sanitizer(1 / mu_of(share, delta), 1.0, arithmetic, 1)
                self.score_event = self.score.charge(self.score.event(self.relation))
            event = alike(self.events, self.score_event)
            self.charges = Ledger(self.relation, [(event, 1, TUNING)])
            self.spent = self.budget.accountant.epsilon(self.charges, delta).upper
            if self.spent <= epsilon:
                return
            share *= 0.998 * epsilon / self.spent
        raise BudgetExceededError(
            f"expected a search that fits into epsilon {epsilon:g} at delta={delta:g}, got "
            f"{upper_text(self.spent)}; raise epsilon or delta, or take fewer runs"
        )

    def best(self, picked, about, seed):
        """The run of the best score, of one for each number of a candidate in `picked`; without any
        the untrained network of the first candidate. Raises KeyboardInterrupt after Ctrl-C.
        """
        best, started = None, time.monotonic()
        own = self.streams.sampling("seeds")
        with waiting(lambda: f"tuning: {time.monotonic() - started:.0f} s so far"):
            for number in picked or [None]:
                of_run = seed if None in (seed, number) else int(own.integers(0, 2**52))
                run = _OneRun(self, number, Streams(of_run), about)
                if run.train_in_memory() is None:
                    raise KeyboardInterrupt
                if best is None or run.score > best.score:
                    best = run
        return best


class _OneRun(Run):
    """One run of a search, which writes nothing and charges nothing: the search has paid for it.

    number  of its candidate; None: no run was drawn, and the first candidate's network stays
            untrained
    """

    def __init__(self, search, number, streams, about):
        self.search, self.number, data = search, number, search.data
        self.planned = copy(search.planned[number or 0])
        network = trained_network(self.planned.settings, data.shape, data.outputs, streams.init)
        self.planned.network = network.to(data.inputs.backend)
        privacy = self.planned.privacy(search.budget)
        super().__init__(InMemory(), self.planned.training(streams), privacy, about(self.planned))
        self.facts["seed"] = search.streams.seed  # the one that all others follow from

    def open(self):
        """The charge of the whole search, in place of a folder's ledger."""
        if self.ledger is None:
            self.ledger, whole = self.search.charges, self.search.budget
            self.budget = Prepaid(whole.accountant, whole.epsilon, whole.delta, self.ledger)

    def train_in_memory(self):
        """Train and score; {} at the end, None if interrupted."""
        head = self.planned.head
        layers = list(head.first) if self.number is None else None
        return train(self, self.search.data, head, None, layers)

    def _train(self, model):
        if self.number is not None:
            return super()._train(model)
        self.open()
        self.curve_epsilon = self._epsilon_of_curve()
        extra = {"seconds": [0.0, 0.0], "examples": None}
        self.folder.checkpoint(model, self.descent, self.ledger, Progress(), [], extra, {})
        return TrainRecord(Progress(), self.ledger, "finished"), [], (0.0, 0.0)

    def _finish(self, model, *trained):
        self.trained, self.score = (model, *trained), None
        if self.number is not None:
            with self._released(final=True):
                self.score = self._scored(model)
        return {}

    def _scored(self, model):
        """The share of right answers of the weights that would be released, with noise on held-out
        rows.
        """
        held = self.search.held
        if held is None:
            inputs, targets = self.search.data.measured
            return float(right_answers(model, inputs, targets).mean())
        values = right_answers(model, held.inputs, held.targets)
        if held.persons is not None:
            rows, share = held.persons.slots(np.arange(held.units))
            values = (values[rows] * share).sum(axis=1)
        noise = self.streams.noise("score")
        return float(noisy_mean(values[:, None], self.search.score, held.size, noise)[0])

    def write(self, folder, more):
        """Write the run's files; returns the dictionary of result.json, with what is in `more`."""
        model, about, *rest = self.trained
        kept, self.folder = self.folder.kept, folder
        folder.describe(began(self.facts))
        folder.checkpoint(*kept)
        facts = {**self.search.facts, "released": self.number, "score": self.score}
        return super()._finish(model, lambda: {**about(), **more, "search": facts}, *rest)
