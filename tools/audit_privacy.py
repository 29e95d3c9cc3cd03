#!/usr/bin/env python3
"""What a finished run cost, computed again from its ledger by every accountant, and whether its files agree.

    python tools/audit_privacy.py runs/mnist_pca-20260101-120000 [--html FILE]

The ledger is rebuilt from the settings the run says it used (sampler, q, C, sigma, DP-PCA, steps) and compared with
the ledger it left, which may hold more of the same, charged by attempts that were cut off; steps, lots, noise and
epsilon are compared across result.json, config.json, metrics.csv and privacy.md. Exit status 1 if anything does not
fit, 2 for what a user did wrong. It cannot see what the program did: only what it wrote down.
"""
import argparse
import csv
import json
import math
import os
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
for folder in (ROOT, ROOT / "experiments"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from common.finish import unamplified
from mnist_variants import Stages

from minidp.audit.html import page, table, verdict
from minidp.cli import user_errors
from minidp.errors import DataError, ParameterError
from minidp.files import atomic_write
from minidp.mechanism import ClipGroup, FixedSizeSampler, Plan, PoissonSampler, Sanitizer, ShuffleSampler
from minidp.mechanism.schedule import value_at
from minidp.privacy import Gaussian, Ledger
from minidp.privacy.catalogue import ACCOUNTANTS, all_bounds, make
from minidp.validate import in_range

FLAGS = {"poisson": "PoissonSampler", "fixed": "FixedSizeSampler", "shuffle": "ShuffleSampler"}
CLOSE = 1e-9


class Finding(NamedTuple):
    """One question put to the run, what its files say, and whether they agree."""

    question: str
    answer: str
    passed: bool


def read(folder):
    """(result, config, metrics rows, statement, ledger) of a finished run. Raises DataError, one line, if one is not whole."""
    folder = Path(folder)
    if not (folder / "result.json").is_file():
        raise DataError(f"{folder}: expected a finished run with a result.json; finish it with --resume --out {folder}")
    if not (folder / "model.npz").is_file():
        raise DataError(f"{folder}: not a whole run (model.npz is missing)")
    try:
        result, config = (json.loads((folder / name).read_text(encoding="utf-8")) for name in ("result.json", "config.json"))
        with open(folder / "metrics.csv", encoding="utf-8", newline="") as file:
            metrics = list(csv.DictReader(file))
        statement = (folder / "privacy.md").read_text(encoding="utf-8")
        if not metrics:
            raise DataError("metrics.csv has no rows")
        return result, config, metrics, statement, Ledger.load(folder / "ledger.json")
    except (ValueError, OSError) as error:
        raise DataError(f"{folder}: not a whole run ({error})") from error


def expected_ledger(result, steps):
    """The ledger of the settings a result states: what was released before training, and `steps` steps of its plan."""
    settings, sampler = result["settings"], _sampler(result)
    groups = tuple(ClipGroup(group["name"], ((group["name"], "all"),), _number(group["clip_norm"]),
                             _setting(group["noise_multiplier"])) for group in settings["clip_groups"])
    plan = Plan(sampler, Sanitizer(groups), max(steps, 1), settings["expected_lot_size"])
    ledger = Ledger(sampler.relation)
    if settings["pca_noise_multiplier"] is not None:
        ledger.append(Gaussian(settings["pca_noise_multiplier"]))  # stated under the run's relation already
    for event, count in plan.charges(0, steps):
        ledger.append(event, count)
    return ledger


def _sampler(result):
    size, lot = result["settings"]["dataset_size"], result["settings"]["expected_lot_size"]
    return {"PoissonSampler": lambda: PoissonSampler(lot / size),
            "FixedSizeSampler": lambda: FixedSizeSampler(size, lot),
            "ShuffleSampler": lambda: ShuffleSampler(size, lot)}[result["sampler"]]()


def _number(value):
    return math.inf if value == "inf" else value


def _setting(value):
    """A number, or the schedule over steps that a result spells out."""
    return Stages(**value) if isinstance(value, dict) else _number(value)


def _near(a, b):
    a, b = _number(a), _number(b)
    return a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-12))


def _text(value):
    return value if isinstance(value, str) else "unknown" if value is None else f"{value:.6g}"


def findings(result, config, metrics, statement, ledger):
    """Every Finding about one run."""
    settings, found = result["settings"], []

    def ask(question, answer, passed):
        found.append(Finding(question, answer, bool(passed)))

    ask("Is the ledger the one the result was computed from?", ledger.sha256()[:16] + "...",
        ledger.sha256() == result["ledger_sha256"])
    ask("Does the statement name this ledger?", ledger.sha256()[:16] + "...", ledger.sha256() in statement)
    relations = {"PoissonSampler": "add_remove", "FixedSizeSampler": "replace_one", "ShuffleSampler": "zero_out"}
    ask("Is the sampler used the one accounted for?", f"{result['sampler']} under {ledger.relation.value}",
        relations.get(result["sampler"]) == ledger.relation.value == result["relation"]
        and FLAGS.get(config["sampler"]) == result["sampler"] and f"| {result['sampler']} |" in statement)
    _ask_releases(ask, result, ledger)
    steps, last = result["steps"], metrics[-1]
    ask("Did any step run uncharged?", f"{steps} ran, {result['steps_charged']} charged", steps <= result["steps_charged"])
    ask("Is the test accuracy the last one measured?", last["test_accuracy"],
        _near(float(last["test_accuracy"]), result["test_accuracy"]))
    ask("Do the metrics end at the last step?", f"step {last['step']}, epoch {float(last['epoch']):.4g}",
        int(last["step"]) == steps and _near(float(last["epoch"]), steps * settings["expected_lot_size"]
                                             / settings["dataset_size"]) and _near(result["epochs"], float(last["epoch"])))
    ask("Is q the expected lot over the data set's public size, and the lot the one asked for?",
        f"{settings['expected_lot_size']} / {settings['dataset_size']} = {settings['sampling_probability']:.6g}",
        _near(settings["sampling_probability"], settings["expected_lot_size"] / settings["dataset_size"])
        and settings["expected_lot_size"] == config["lot_size"])
    for group in settings["clip_groups"]:
        c, sigma, std = (_setting(group[key]) for key in ("clip_norm", "noise_multiplier", "noise_std_on_sum"))
        if callable(sigma):
            ask(f"Is the noise of {group['name']} a schedule, stated as one?", f"{sigma}", std is None)
            continue
        ask(f"Is the noise of {group['name']} sigma C on the sum, and over L on the mean?",
            f"{sigma:g} x {c:g} = {std:g}", _near(std, 0.0 if sigma == 0 else sigma * c)
            and _near(group["noise_std_on_mean"], std / settings["expected_lot_size"]))
    asked = config.get("noise_multiplier")
    ask("Is the noise multiplier the one asked for?", "as the experiment's default" if asked is None else f"{asked:g}",
        asked is None or all(value_at(_setting(group["noise_multiplier"]), 0) == asked for group in settings["clip_groups"]))
    ask("Is delta the one asked for, and the configuration the recorded one?", f"{result['delta']:g}",
        result["delta"] == config["delta"] and _same_configuration(result, config))
    seed = config.get("seed")
    ask("Is the run called reproducible exactly if it has a seed?", "no seed" if seed is None else f"seed {seed}",
        result["reproducible"] is (seed is not None) and result["seed"] == seed
        and ("Seeded run (seed" in statement) is (seed is not None))
    _ask_epsilons(ask, result, config, metrics, ledger)
    return found


def _same_configuration(result, config):
    """Whether config.json, which names the data set that was found, is the one that the result was asked for."""
    asked = dict(result["config"])
    if asked.get("dataset") == "auto":
        asked["dataset"] = result["dataset"]
    return (config.get("dataset", result["dataset"]) == result["dataset"]
            and all(asked[key] == value for key, value in config.items() if key in asked and key != "device"))


def _ask_releases(ask, result, ledger):
    """Nothing charged is forgotten when a run begins again, so the ledger may hold more than the run called for."""
    question, held = "Is every release in the ledger, and nothing else?", _counts(ledger)
    if result["sampler"] not in FLAGS.values():
        ask(question, f"{held.total()} events", False)
        return
    sampler = _sampler(result)
    ran, called, known = (_counts(expected_ledger(result, steps)) for steps in (
        result["steps"], result["steps_charged"], held.total() * sampler.period))
    beyond = held - called
    named = ", ".join(f"{count} x {event}" for event, count in beyond.items())
    more = f", of which beyond this run's own, by attempts cut off: {named}" if named else ""
    ask(question, f"{held.total()} events{more}",
        ledger.relation is sampler.relation and ran <= held and called.total() <= held.total()
        and held.keys() <= known.keys())
    stated = result["setup_charged"] + (result.get("earlier_lots_charged", 0) + result["steps_charged"]) / sampler.period
    ask("Does the result count every charge?", f"{stated:g} of {held.total()}", stated == held.total())


def _counts(ledger):
    counts = Counter()
    for event, count in ledger.items():
        counts[repr(event)] += count
    return counts


def _ask_epsilons(ask, result, config, metrics, ledger):
    again = all_bounds(ledger, [name for name in result["epsilon"] if name in ACCOUNTANTS], delta=result["delta"])
    for name, stated in result["epsilon"].items():
        upper = again[name][0].upper if name in again else None
        ask(f"Does epsilon by {name} come out again?", f"stated {_text(stated['upper'])}, now {_text(upper)}",
            name in again and _near(stated["upper"], upper) and stated["kind"] == again[name][1])
    if all(kind != "bound" for _, kind, _ in again.values()):
        raise ValueError("result.json: expected epsilon to hold a bound")
    certified = [bound.lower for bound, kind, _ in again.values() if kind == "bound" and bound.lower is not None]
    uppers = [bound.upper for bound, kind, _ in again.values() if kind == "bound" and bound.upper is not None]
    least = min(uppers, default=math.inf)
    ask("Is no bound below the certified lower end?", f"{_text(max(certified, default=0.0))} <= {_text(least)}",
        max(certified, default=0.0) <= least)
    accountant = make(result["accountant"], ledger.relation)
    path = [(int(row["step"]), _number(row["epsilon"]) if row["epsilon"] == "inf" else float(row["epsilon"]))
            for row in metrics]
    rising = all(a <= b for (_, a), (_, b) in zip(path, path[1:])) and all(a < b for (a, _), (b, _) in zip(path, path[1:]))
    enough = all(epsilon >= _cost(accountant, result, step) * (1 - CLOSE) for step, epsilon in path)
    ask("Is epsilon in the metrics never below what its step had cost?", f"{len(path)} rows", rising and enough)
    total = accountant.epsilon(ledger, result["delta"]).upper
    ask("Do the metrics end at the run's epsilon?", f"{path[-1][1]:.6g}", _near(path[-1][1], total))
    settings = result["settings"]
    steps_per_epoch = settings["dataset_size"] / settings["expected_lot_size"]
    plain = unamplified(accountant, ledger, result["delta"], steps_per_epoch).upper
    stated = result["epsilon_without_amplification"]["upper"]
    ask("Does epsilon without amplification come out again?", f"stated {_text(stated)}, now {_text(plain)}",
        _near(stated, plain))
    targets = [_number(target) for target in (config.get("target_epsilon"), result.get("target_epsilon"))
               if target is not None]
    ask("Was the target kept?", f"{total:.6g} of {min(targets):g}" if targets else "none was set",
        all(total <= target for target in targets))


def _cost(accountant, result, step):
    """Epsilon of the first steps of the stated settings; infinite where they are not of the ledger's relation."""
    ledger = expected_ledger(result, step)
    return accountant.epsilon(ledger, result["delta"]).upper if ledger.relation is accountant.relation else math.inf


def accountants(ledger, delta):
    """(name, lower, upper, kind, note) by every accountant of the catalogue."""
    return [(name, _text(bound.lower), _text(bound.upper), kind, note)
            for name, (bound, kind, note) in all_bounds(ledger, ACCOUNTANTS, delta=delta).items()]


def report(folder):
    """(findings, accountant rows, result) of a run's folder. Raises DataError, one line, if it is damaged."""
    result, config, metrics, statement, ledger = read(folder)
    try:
        in_range(0, 1, open_low=True, open_high=True, delta=result["delta"])
        return findings(result, config, metrics, statement, ledger), accountants(ledger, result["delta"]), result
    except (KeyError, TypeError, AttributeError, ValueError, ZeroDivisionError) as error:
        raise DataError(f"{folder}: not the files of a run of this program ({type(error).__name__}: {error})") from error


def _check_page(path):
    folder = Path(path).parent
    if Path(path).is_dir() or not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise ParameterError(f"--html {path} cannot be written: expected a file's name in a folder that is there "
                             "and may be written to")


def main(argv=None):
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="the run's folder")
    parser.add_argument("--html", metavar="FILE", help="write the verdict as one page")
    options = parser.parse_args(argv)
    with user_errors():
        if options.html:
            _check_page(options.html)
        asked, rows, result = report(options.run)
        for name, lower, upper, kind, note in rows:
            print(f"epsilon at delta {result['delta']:g} by {name}: {lower} to {upper} ({kind}; {note})")
        for finding in asked:
            print(f"{'ok  ' if finding.passed else 'FAIL'} {finding.question} {finding.answer}")
        failed = sum(not finding.passed for finding in asked)
        seeded = "This run is seeded: it can be repeated, and must not be released." if result["reproducible"] else ""
        text = (f"{len(asked)} questions, {failed} mismatches: "
                + ("the run's files agree with each other and with the accountants." if not failed
                   else "do not rely on this run's epsilon.") + (f" {seeded}" if seeded else ""))
        print(text)
        if options.html:
            body = (f"<p>{text}</p>" + table(("", "question", "answer"), [(verdict(f.passed), f.question, f.answer)
                                                                         for f in asked])
                    + f"<h2>epsilon at delta {result['delta']:g}</h2>"
                    + table(("accountant", "lower", "upper", "kind", "what it is"), rows))
            with atomic_write(options.html) as file:
                file.write(page(f"Privacy of one run: {result['experiment']} on {result['dataset']}", body))
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
