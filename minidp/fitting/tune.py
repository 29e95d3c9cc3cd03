"""`minidp.tune`: the best of several fits, and the search for it paid in one charge."""

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from inspect import signature
from typing import Any

from numpy.typing import ArrayLike

from ..data.arrays import refuse_bad_rows
from ..errors import MinidpError, ParameterError
from ..privacy import Filter
from ..privacy.search_cost import LAWS, POISSON_PART, geometric_gamma
from ..ranks import current
from ..run.registry import as_about
from ..run.shared import charge_shared, sum_line
from ..run.tuning import TUNING, SearchFolder
from ..streams import Draws, Streams
from ..train import selfcheck
from ..util.atomic import StrPath
from ..util.files import check_path
from ..util.text import upper_text
from ..util.validate import flag, one_of, positive_finite
from ..util.waiting import quietly
from .fit import _budget, _fitted_at, _temporary
from .fitted import Fitted
from .prepared import data_of, sum_of
from .search import Search, of_candidate
from .settings import Settings, check_ledger, settings_of

TUNED = ("hidden", "scale", "lot_size", "steps", "clip_norm", "learning_rate")
MOST_CANDIDATES = 1000


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
    if not isinstance(candidates, Sequence) or not 0 < len(candidates) <= MOST_CANDIDATES:
        raise ParameterError(
            f"expected a list with at least one candidate, and at most {MOST_CANDIDATES}, got "
            f"{candidates!r:.80}"
        )
    picked = _picked(len(candidates), runs, law, streams.sampling("runs"))
    settings = settings_of(settings, more, list(signature(tune).parameters))
    flag(quiet=quiet)
    check_path(folder=folder, ledger=ledger)
    positive_finite(epsilon=epsilon)
    check_ledger(epsilon, ledger, settings)
    if current().size > 1:
        raise ParameterError("expected one process: a search runs on one rank, got several")
    with quietly(quiet), ExitStack() as undo:
        settings = replace(settings, about=as_about(settings.about))
        data, settings = data_of(x, y, test, settings)
        each = [_with(settings, candidate, place) for place, candidate in enumerate(candidates)]
        budget, how_delta = _budget(epsilon, delta, data.size, quiet)
        if runs is not None:
            budget = Filter("renyi", budget.epsilon, budget.delta)
        search = Search(each, list(map(dict, candidates)), data, budget, runs, law, streams)
        if settings.check:
            refuse_bad_rows(data.inputs, data.targets, data.outputs, data.weight, data.labels)
        for place, planned in enumerate(search.planned):
            with of_candidate(place):
                selfcheck.check(planned.network, planned.loss, data.targets)
        at = None if folder is None else SearchFolder(folder).begin(search.config, streams)
        try:
            _charge(search, at, ledger, settings.ledger_limit, quiet)
            best = search.best(
                picked, lambda each: each.about(TUNING, how_delta, seed, test, ledger, True), seed
            )
            if at is None:
                at = SearchFolder(_temporary(undo)).begin(search.config, streams)
                at.charge(search.charges)
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


def _charge(search, at, ledger, limit, quiet):
    """Charge the search to the shared ledger and to its folder, if there are any, and say so
    before.
    """
    budget = search.budget

    def tell():
        if not quiet:
            print(
                f"the whole search is charged first: epsilon {budget.epsilon:g} at delta "
                f"{budget.delta:g}; it does not resume, and the same call again is a new charge"
            )

    if ledger is None:
        tell()
    else:
        unit = "row" if search.data.persons is None else "person"
        try:
            total = charge_shared(ledger, search.charges, budget, limit, unit, tell)
        except MinidpError:
            if at is not None:
                at.give_up()
            raise
        if not quiet:
            print(sum_line(ledger, total, budget))
    if at is not None:
        at.charge(search.charges)


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


def _with(settings, candidate, place):
    """The settings of a candidate."""
    with of_candidate(place):
        known = isinstance(candidate, Mapping)
        unknown = [key for key in candidate if key not in TUNED] if known else [candidate]
        if unknown:
            raise ParameterError(f"expected a dict of {', '.join(TUNED)}, got {unknown[0]!r:.80}")
        found = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in candidate.items()
        }
        return replace(settings, **found)
