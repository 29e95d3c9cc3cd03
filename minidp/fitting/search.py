"""The runs of `minidp.tune`: planned and charged together, kept in memory, scored."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BudgetExceededError, MinidpError
from ..mechanism.before.centring import mean_sanitizer, noisy_mean
from ..privacy import Filter, Gaussian, Ledger
from ..privacy.calibrate import noise_multiplier_for
from ..privacy.event_json import event_to_json
from ..privacy.gaussian import gaussian_epsilon
from ..privacy.search_cost import run_event, tuning_event
from ..run import Run
from ..run.result import began
from ..run.tuning import TUNING, InMemory, Prepaid
from ..streams import Streams
from ..train import Progress
from ..train.metrics import right_answers
from ..train.trainer import TrainRecord
from ..util.text import upper_text
from ..util.waiting import waiting
from .fit import _Planned
from .heads import trained_network
from .prepared import train
from .rule import mu_of

HELD_OUT = 0.2  # of the rows, or persons
ATTEMPTS = 20  # at the epsilon of one run


def held_out(streams: Streams, units: int) -> NDArray:
    """Which of the rows, or persons, are held out, (units,) bool: a coin for each, of its own
    number alone, so that one more moves no other.
    """
    coins = streams.sampling("held out").rows(np.arange(units))
    return coins.random((units, 1))[:, 0] < HELD_OUT


@contextmanager
def of_candidate(place: int) -> Iterator[None]:
    """Within it, messages of errors begin with the number of the candidate."""
    try:
        yield
    except MinidpError as error:
        raise type(error)(f"candidate {place}: {error}") from error


class Search:
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
        self._plan(each)
        self.charges = Ledger(self.relation, [(self.event, 1, TUNING)])
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

    @property
    def relation(self):
        """The neighbouring relation of the search."""
        return self.budget.accountant.relation

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
                with of_candidate(place):
                    self.planned.append(_Planned.of(one, self.data, once, Streams(0)))
            ledgers = [planned.plan.ledger(before=planned.before) for planned in self.planned]
            self.events, self.score, self.score_event = list(map(run_event, ledgers)), None, None
            if self.held is not None:
                arithmetic = each[0].arithmetic
                self.score = mean_sanitizer(1 / mu_of(share, delta), 1.0, arithmetic, 1)
                self.score_event = self.score.charge(self.score.event(self.relation))
            self.event = alike(self.events, self.score_event)
            ledger = Ledger(self.relation, [(self.event,)])
            self.spent = self.budget.accountant.epsilon(ledger, delta).upper
            if self.spent <= epsilon:
                return
            share *= 0.998 * epsilon / self.spent
        raise BudgetExceededError(
            f"expected a search that fits into epsilon {epsilon:g} at delta={delta:g}, got "
            f"{upper_text(self.spent)}; raise epsilon or delta, or take fewer runs"
        )

    def best(self, picked, about: Callable[[_Planned], Any], seed):
        """The run of the best score, of one for each number of a candidate in `picked`; without any
        the untrained network of the first candidate. Raises KeyboardInterrupt after Ctrl-C.
        """
        best, started = None, time.monotonic()
        own = self.streams.sampling("seeds")
        with waiting(lambda: f"tuning: {time.monotonic() - started:.0f} s so far"):
            for number in picked:
                streams = Streams(None if seed is None else int(own.integers(0, 2**52)))
                run = OneRun(self, number, streams, about)
                if run.train_in_memory() is None:
                    raise KeyboardInterrupt
                if best is None or run.score > best.score:
                    best = run
            if best is None:
                best = OneRun(self, None, Streams(seed), about)
                best.train_in_memory()
        return best


class OneRun(Run):
    """One run of a search, which writes nothing and charges nothing: the search has paid for it.

    number  of its candidate; None: no run was drawn, and the first candidate's network stays
            untrained
    """

    def __init__(self, search, number, streams, about):
        planned, self.search, self.number = search.planned[number or 0], search, number
        settings, data = planned.settings, search.data
        network = trained_network(settings, data.shape, data.outputs, streams.init)
        self.planned = replace(planned, network=network.to(data.inputs.backend))
        empty = Filter(search.budget.accountant, search.budget.epsilon, search.budget.delta)
        parts = self.planned.training(streams), self.planned.privacy(empty), about(self.planned)
        super().__init__(InMemory(), *parts)
        self.facts["seed"] = search.streams.seed  # the one that all others follow from
        self.score = None

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
        self.trained = model, *trained
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
