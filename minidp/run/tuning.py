"""A search on disk: its folder, and what statement and `verify` say of it."""

import time
from pathlib import Path

from ..errors import ParameterError
from ..privacy import Filter, NeighbouringRelation
from ..privacy.ledger import STEP
from ..util.files import jsonable
from .folder import LEDGER, RESULT, RunFolder

TUNING = "tune"  # the experiment's name, and the purpose of its charge


class SearchFolder(RunFolder):
    """The folder of a search: its charge before the first run, the best run's files at the end."""

    def begin(self, config, streams):
        """Open the folder, with what config.json holds until the end. Raises ParameterError if it
        holds a run.
        """
        if any((self.path / name).exists() for name in (LEDGER, RESULT)):
            raise ParameterError(
                f"{self.path}: expected a folder without a run, got one with a charge: a search "
                "does not resume; name another folder (that charge stays; nothing was charged now)"
            )
        self.open(config, NeighbouringRelation.ADD_REMOVE, streams.reproducible)
        return self

    def describe(self, config):
        """Put another configuration in place of the first."""
        self.config = jsonable(config)
        self._write_config()


class InMemory(RunFolder):
    """The folder of a run that writes nothing."""

    path, holds_run, finished = Path("search"), False, False

    def __init__(self):
        self.began = time.perf_counter()

    def charge(self, ledger):
        """Nothing: the search has paid."""

    def checkpoint(self, *state):
        """Keep the last state, in memory."""
        self.kept = state

    def digest(self, *parts):
        """None: nobody will resume the run."""

    def close(self):
        """Nothing: there is no lock."""


class Prepaid(Filter):
    """A budget whose ledger covers everything before it happens."""

    def charge_all(self, charges, purpose=STEP):
        """Nothing."""


def procedure(tuning, unit):
    """How the best run was found, in sentences; unit: "row" or "person"."""
    many = len(tuning["candidates"])
    each = one = "the one setting"
    if many > 1:
        each, one = f"each of {many} settings", f"one of {many} settings"
    how = f"{each} was trained once"
    if tuning["runs"] is not None:
        how = (
            f"a number of runs K was drawn from a {tuning['law']} law of mean {tuning['runs']:g}, "
            f"and each run drew {one}; K stays secret, and so must the time that the search took"
        )
    score = "on the public validation data"
    if tuning["held_out"] is not None:
        score = (
            f"by a count of right answers on a share of {tuning['held_out']:g} of the {unit}s, "
            "which a coin for each had held out, with noise of standard deviation "
            f"{tuning['score_noise_multiplier']:.4g} on the count"
        )
    end = "the best run's weights are released, and nothing of any other run"
    if tuning["released"] is None:
        end = "no run was drawn, and the network is untrained"
    return (
        f"In it, {how}. Runs were scored {score}; {end}. Everything was charged before the first "
        "run."
    )


def described(result):
    """A paragraph of the statement on the search; None for a run by itself."""
    tuning = result.get("search")
    if tuning is None:
        return None
    return (
        f"**The search for this model is covered.** {procedure(tuning, result['unit'])} The "
        "settings must have been written down without a look at the data."
        + (
            " For a random number of runs epsilon follows from Renyi divergences alone, so that "
            "lower ends and other accountants' figures are unknown."
            if tuning["runs"] is not None
            else ""
        )
    )
