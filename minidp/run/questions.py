"""What the files of a finished run are asked: whether they say the same, and what the ledger gives."""
import csv
import hashlib
import io
import math
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from ..errors import DataError
from ..files import read_json
from ..mechanism import (BallsInBinsSampler, BandedNoise, ClipGroup, CyclicSampler, FixedSizeSampler, Plan, PoissonSampler,
                         Sanitizer, ShuffleSampler, schedule)
from ..numbers import lower_text, upper_text
from ..privacy import Composed, Ledger, TotalVariation
from ..privacy.catalogue import ACCOUNTANTS, all_bounds, make
from ..privacy.event_json import event_from_json
from ..privacy.ledger import SETUP
from ..privacy.meaning import in_words, meaning_of
from ..validate import in_range
from .checkpoint import differences
from .folder import CHARGED, CONFIG, LEDGER, METRICS, MODEL, RESULT, STATEMENT
from .record import ACCOUNTANTS as STATED
from .record import delta_added, settings_of, unamplified, versions
from .statement import FORMAT, render

CLOSE = 1e-6  # relative: other processors round a little differently
SAMPLERS = {  # name: flag of the experiments, sampler of lots that are so large on average
    "PoissonSampler": ("poisson", lambda size, lot: PoissonSampler(lot / size)),
    "FixedSizeSampler": ("fixed", FixedSizeSampler), "ShuffleSampler": ("shuffle", ShuffleSampler),
    "BallsInBinsSampler": ("balls-in-bins", BallsInBinsSampler), "CyclicSampler": ("poisson", CyclicSampler)}


class Finding(NamedTuple):
    """One question put to the run, what its files say, and whether they agree."""

    question: str
    answer: str
    passed: bool


class Files:
    """What a finished run's files hold, and the questions put to them."""

    def __init__(self, folder):
        self.ledger, self.result, self.config = Ledger.load(folder / LEDGER), *(read_json(folder / name)
                                                                              for name in (RESULT, CONFIG))
        self.statement = (folder / STATEMENT).read_text(encoding="utf-8")
        self.metrics = list(csv.DictReader(io.StringIO((folder / METRICS).read_text(encoding="utf-8"))))
        if self.result["statement_format"] != FORMAT:
            raise DataError(f"its result has format {self.result['statement_format']}, and this version reads {FORMAT}: verify "
                            "it with the version that wrote it")
        if not self.metrics or not (folder / MODEL).is_file():
            raise DataError(f"{METRICS} has no rows, or {MODEL} is missing")
        self.settings = settings = self.result["settings"]
        in_range(0, 1, open_low=True, open_high=True, delta=self.result["delta"])
        self.setup = [event_from_json(each["event"]) for each in settings["setup"]]
        self.arithmetic = self.result["arithmetic"]
        size, lot = settings["dataset_size"], settings["expected_lot_size"]
        self.flag, make_sampler = SAMPLERS.get(self.result["sampler"], (None, None))
        groups = [ClipGroup(group["name"], [key.rsplit(".", 1) for key in group["parameters"]],
                            _setting(group["clip_norm"]), _setting(group["noise_multiplier"]), group["coordinates"])
                  for group in settings["clip_groups"]]
        self.taus = {part.tau for event, _ in self.ledger.items() for part in _parts(event) if isinstance(part, TotalVariation)}
        sanitizer = Sanitizer(groups, self.result["gradients"], self.arithmetic)
        if make_sampler is BallsInBinsSampler:  # the lot that was asked for follows from the number of lots
            make_sampler = lambda size, lot: BallsInBinsSampler(size, size // settings["period"])
        if settings.get("max_lot_size") is not None:
            make_sampler = lambda size, lot: PoissonSampler(lot / size, settings["max_lot_size"], size)
        if make_sampler is CyclicSampler:
            make_sampler = lambda size, lot: CyclicSampler(lot / size, bands=settings["period"])
        noise = BandedNoise(settings["bands"]) if "bands" in settings else None
        self.plan = make_sampler and Plan(make_sampler(size, lot), sanitizer, 0, lot, noise)  # None: no sampler of ours

    def findings(self):
        """Every Finding about the run."""
        asked = (self._statement, self._ledger, self._releases, self._metrics, self._settings, self._configuration,
                 self._epsilons, self._course)
        return [Finding(question, str(answer), bool(passed)) for ask in asked for question, answer, passed in ask()]

    def _statement(self):
        wrote, digest = self.result["versions"]["minidp"], hashlib.sha256(self.statement.encode()).hexdigest()
        ours = wrote == versions()["minidp"]
        yield ("Does the statement follow from the result?",
               "rendered again, byte for byte" if ours else f"not rendered again: minidp {wrote} wrote it",
               self.result["statement_sha256"] == digest and (not ours or render(self.result) == self.statement))

    def _ledger(self):
        digest, result = self.ledger.sha256(), self.result
        yield ("Is the ledger the one the result was computed from, and the statement names?", f"{digest[:16]}...",
               digest == result["ledger_sha256"] and digest in self.statement)
        yield ("Is the sampler used the one accounted for?", f"{result['sampler']} under {self.ledger.relation.value}",
               self.plan and self.plan.relation.value == self.ledger.relation.value == result["relation"]
               and self.config.get("sampler") in (None, self.flag) and f"| {result['sampler']} |" in self.statement)

    def _releases(self):
        """Nothing charged is forgotten when a run begins again, so the ledger may hold more than the run called for."""
        question, held, result = "Is every release in the ledger, and nothing else?", self._counts(self.ledger), self.result
        if self.plan is None:
            yield question, f"{held.total()} events", False
            return
        period = self.plan.sampler.period
        ran, called, known = (self._counts(self.plan.ledger(steps, self.setup)) for steps in (
            result["steps"], result["steps_charged"], held.total() * period))
        named = ", ".join(f"{count} x {event}" for event, count in (held - called).items())
        more = f", of which beyond this run's own, by attempts cut off: {named}" if named else ""
        setup = {event for event, _, purpose in self.ledger.entries() if purpose == SETUP}
        yield (question, f"{held.total()} events{more}",
               self.ledger.relation is self.plan.relation and ran <= held and called.total() <= held.total()
               and held.keys() <= known.keys() and setup == set(self.setup))
        stated = result["setup_charged"] + (result["earlier_lots_charged"] + result["steps_charged"]) / period
        yield ("Does the result count every charge?", f"{stated:g} of {held.total()}",
               stated == held.total() and result["setup_charged"] == self.ledger.count_of(SETUP))
        yield ("Did any step run uncharged?", f"{result['steps']} ran, {result['steps_charged']} charged",
               result["steps"] <= result["steps_charged"])

    def _counts(self, ledger):
        """{event: how often}. A tau within 1e-12 of the ledger's counts as that: other processors round logarithms otherwise."""
        counts = Counter()
        for event, count in ledger.items():
            counts[repr(_with_taus(event, self.taus))] += count
        return counts

    def _metrics(self):
        last, settings, result = self.metrics[-1], self.settings, self.result
        for what, column in (("test accuracy", "test_accuracy"), ("training accuracy", "train_accuracy_not_private"),
                             ("test R2", "test_r2"), ("training R2", "train_r2_not_private")):
            if column in last and (what.endswith("accuracy") or last[column]):
                yield (f"Is the {what} the last one measured?", last[column],
                       _near(_cell(last[column]), result[column.removesuffix("_not_private")]))
        epoch = _cell(last["epoch"])
        yield ("Do the metrics end at the last step?", f"step {last['step']}, epoch {epoch:.4g}",
               int(last["step"]) == result["steps"] and _near(result["epochs"], epoch)
               and _near(epoch, result["steps"] * settings["expected_lot_size"] / settings["dataset_size"]))

    def _settings(self):
        settings = self.settings
        lot, size, flag = settings["expected_lot_size"], settings["dataset_size"], self.config.get("noise_multiplier")
        again = settings_of(self.plan, size) if self.plan else {"clip_groups": []}
        off = [f"{key} is {stated[key]} and should be {value}" for stated, found in (
            (settings, again), *zip(settings["clip_groups"], again["clip_groups"])) for key, value in found.items()
            if key != "clip_groups" and not _near(stated[key], value)]
        yield ("Do q, the groups' noise and their sensitivity follow from size, lot, sigma and C?",
               "; ".join(off) or f"q = {lot} / {size}, {len(settings['clip_groups'])} groups", self.plan and not off)
        yield ("Are lot and noise the ones asked for?", f"lot {lot}, sigma {'as the defaults say' if flag is None else flag}",
               self.config.get("lot_size") in (None, lot) and (flag is None or all(
                   schedule.value_at(_setting(group["noise_multiplier"]), 0) == flag for group, made in
                   zip(settings["clip_groups"], self.plan.sanitizer.groups if self.plan else ()) if not made.counts)))

    def _configuration(self):
        result, config = self.result, self.config
        asked = dict(result["config"])
        if asked.get("dataset") == "auto":
            asked["dataset"] = result["dataset"]
        same = (config.get("dataset", result["dataset"]) == result["dataset"] and config.get(CHARGED) is True
                and all(asked[key] == value for key, value in config.items() if key in asked and key != "device"))
        began = config.get("settings", {})
        same = same and not list(differences(began, {key: self.settings[key] for key in began}))
        same = same and config.get("arithmetic") == self.arithmetic
        yield ("Is delta the one asked for, and the configuration the recorded one?", f"{result['delta']:g}",
               same and result["delta"] == config.get("delta", began.get("delta")))
        seed = result["config"].get("seed", result["seed"])
        yield ("Is the run called reproducible exactly if it has a seed?", "no seed" if seed is None else f"seed {seed}",
               result["reproducible"] is (seed is not None) and result["seed"] == seed
               and ("Seeded run (seed" in self.statement) is (seed is not None))

    def _epsilons(self):
        result, stated = self.result, self.result["epsilon"]
        again = all_bounds(self.ledger, [name for name in stated if name in ACCOUNTANTS], delta=result["delta"])
        yield ("Is every accountant's figure there?", ", ".join(stated),
               set(STATED) <= set(stated) <= {*ACCOUNTANTS, result["accountant"]})
        for name, (bound, kind, _) in again.items():
            now, said = bound.to_json(), {side: stated[name][side] for side in ("lower", "estimate", "upper")}
            yield (f"Does epsilon by {name} come out again?", f"stated {_text(said['upper'])}, now {_text(now['upper'])}",
                   all(_near(said[side], now[side]) for side in said) and stated[name]["kind"] == kind
                   and stated[name].get("fallback") == now.get("fallback"))
        added = delta_added(self.ledger, again[result["accountant"]][0].upper)
        yield ("Does what the arithmetic adds to delta come out again?", f"{self.arithmetic}: {upper_text(added)}",
               math.isclose(result["delta_added"], added, rel_tol=CLOSE))
        bounds = [bound for bound, kind, _ in again.values() if kind == "bound"]
        if not bounds:
            raise ValueError("result.json: expected epsilon to hold a bound")
        most = max((bound.lower for bound in bounds if bound.lower is not None), default=0.0)
        least = min((bound.upper for bound in bounds if bound.upper is not None), default=math.inf)
        yield "Is no bound below the certified lower end?", f"{lower_text(most, 6)} <= {_text(least)}", most <= least

    def _course(self):
        result, settings, ledger = self.result, self.settings, self.ledger
        accountant = make(result["accountant"], ledger.relation)
        path = [(int(row["step"]), _cell(row["epsilon"])) for row in self.metrics]
        rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(path, path[1:]))
        cost = lambda step: accountant.epsilon(self.plan.ledger(step, self.setup), result["delta"]).upper
        enough = self.plan and self.plan.relation is accountant.relation and all(
            epsilon >= cost(step) * (1 - CLOSE) for step, epsilon in path)
        total = accountant.epsilon(ledger, result["delta"]).upper
        yield ("Is epsilon in the metrics never below what its step had cost, and in the end the run's?",
               f"{len(path)} rows, {_text(path[-1][1])}", rising and enough and _near(path[-1][1], total))
        plain = unamplified(accountant, ledger, result["delta"],
                            settings["dataset_size"] / settings["expected_lot_size"] / settings["period"])
        stated = result["epsilon_without_amplification"]["upper"]
        yield ("Does epsilon without amplification come out again?", f"stated {_text(stated)}, now {_text(plain.upper)}",
               _near(stated, plain.upper))
        again = meaning_of(ledger, result["delta"])
        yield ("Does what epsilon means come out again?", in_words(again) if again else "nothing is guaranteed",
               bool(again) == bool(result["meaning"]) and (not again or all(
                   _near(float(result["meaning"]["true_positive_rates"][rate]), power)
                   for rate, power in again["true_positive_rates"].items())
                   and _near(float(result["meaning"]["mu"]), float(again["mu"]))))
        targets = [_setting(each["target_epsilon"]) for each in (self.config, result)
                   if each.get("target_epsilon") is not None]
        yield ("Was the target kept?", f"{_text(total)} of {min(targets):g}" if targets else "none was set",
               all(total <= target for target in targets))


def _setting(value):
    """A number, or the schedule over steps that a result spells out."""
    if not isinstance(value, dict):
        return math.inf if value == "inf" else value
    fields = dict(value)
    name = fields.pop("schedule")
    if name not in schedule.SCHEDULES:
        raise DataError(f"the schedule {name} is not one of {', '.join(schedule.SCHEDULES)}")
    return schedule.SCHEDULES[name](**fields)


def _cell(text):
    """The number in a cell of metrics.csv, None for one that was not measured."""
    return float(text) if text else None


def _near(a, b):
    a, b = _setting(a), _setting(b)
    return a == b or (isinstance(a, (int, float)) and isinstance(b, (int, float))
                      and math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-12))


def _text(upper):
    return upper_text(upper, 6)


def _parts(event):
    """The events released together."""
    return event.events if isinstance(event, Composed) else (event,)


def _with_taus(event, taus):
    """The event with the first of `taus` that is within 1e-12 of its total variation distance in that one's place."""
    parts = [replace(part, tau=next((tau for tau in taus if math.isclose(tau, part.tau, rel_tol=1e-12)), part.tau))
             if isinstance(part, TotalVariation) else part for part in _parts(event)]
    return Composed(parts) if isinstance(event, Composed) else parts[0]
