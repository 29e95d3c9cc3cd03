"""What a run says of itself in result.json."""

import dataclasses
import math
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from .. import host
from ..backend import explicit_budget, namespace_of
from ..privacy import (
    BallsInBins,
    Composed,
    FixedSizeSampled,
    Ledger,
    PoissonSampled,
    total_variation,
)
from ..privacy.bound import Within
from ..privacy.catalogue import all_bounds, row_to_quote
from ..privacy.event_json import event_to_json
from ..privacy.ledger import SETUP, STEP
from ..privacy.meaning import meaning_of
from ..streams import GENERATOR
from ..train import Averaged
from ..util.files import jsonable
from ..util.text import lower_text, upper_text
from .folder import CURVES, EARLIER, KEY, MANIFEST, MAY_BE_PRIVATE, STATEMENT
from .statement import FORMAT

ROOT = Path(__file__).resolve().parents[2]
ACCOUNTANTS = ("moments", "renyi", "loss_distribution", "gaussian_clt", "advanced", "basic")
# what model.npz says of its run, too
MODEL_FACTS = ("experiment", "dataset", "steps", "arithmetic", "statement_sha256")
TRAINING_FIGURES = (
    "train_accuracy",
    "train_r2",
    "metrics.csv: columns named not_private",
    "curves.png: training accuracy",
    "checkpoint.npz: history",
)


def unamplified(accountant, charged, delta, steps_per_epoch):
    """Epsilon of what was charged if each example were in one lot of every epoch, and nothing
    gained from sampling; steps in periods.
    """
    ledger = Ledger(charged.relation)
    for event, times in charged.items():
        for part in event.events if isinstance(event, Composed) else (event,):
            sampled = isinstance(part, (PoissonSampled, FixedSizeSampled))
            ledger.append(
                part.event if sampled or isinstance(part, BallsInBins) else part,
                math.ceil(times / steps_per_epoch) if sampled else times,
            )
    return accountant.epsilon(ledger, delta)


def delta_added(ledger, epsilon):
    """What the laws of the noise in exact arithmetic add to delta at this epsilon, rounded up; 0
    where there are none.
    """
    variation = total_variation(ledger)
    return Within(None, variation).added(epsilon) if variation else 0.0


def settings(run):
    """The numbers that the accounting rests on, and what the descent is; known before the first
    charge.
    """
    optimizer, averaged = run.optimizer, isinstance(run.optimizer, Averaged)
    return jsonable(
        {
            "dataset_size": run.dataset_size,
            "planned_steps": run.plan.steps,
            "accountant": run.budget.accountant.name,
            "target_epsilon": run.budget.epsilon,
            "delta": run.budget.delta,
            "augmentation_multiplicity": run.augmentation_multiplicity,
            "optimizer": type(optimizer.optimizer if averaged else optimizer).__name__,
            "average": optimizer.decay if averaged else 0.0,
            "learning_rate": _setting(optimizer.learning_rate),
            **settings_of(run.plan, run.dataset_size),
        }
    )


def settings_of(plan, size):
    """The settings that follow from a plan and the public number of examples."""
    lot, factor = plan.expected_lot_size, plan.products.factor
    sensitivity = plan.sanitizer.for_step(0).sensitivity(plan.relation, factor)
    return jsonable(
        {
            "expected_lot_size": lot,
            "sampling_probability": lot / size,
            "sampler": type(plan.sampler).__name__,
            "period": plan.sampler.period,
            "clip_groups": [
                {
                    "name": group.name,
                    "clip_norm": _setting(group.clip_norm),
                    "noise_multiplier": _setting(group.noise_multiplier),
                    "noise_std_on_sum": group.noise_std if group.constant else None,
                    "noise_std_on_mean": group.noise_std / lot if group.constant else None,
                    "sensitivity": sensitivity[group.name] if group.constant else None,
                    "sensitivity_factor": factor,
                    "grid": plan.sanitizer.noise(group).grid if group.constant else None,
                    "coordinates": group.coordinates,
                    "parameters": [".".join(key) for key in group.keys],
                }
                for group in plan.sanitizer.groups
            ],
        }
    )


def noise_of(event):
    """The noise multiplier of an event, or of the first part of one that has any; else None."""
    parts = getattr(event, "events", (event,))
    found = (part.noise_multiplier for part in parts if hasattr(part, "noise_multiplier"))
    return next(found, None)


def _setting(value):
    """A number, or a schedule: its fields and the name of its class; its text where it is no
    dataclass.
    """
    if not callable(value):
        return value
    if dataclasses.is_dataclass(value):
        return {"schedule": type(value).__name__, **jsonable(value)}
    return {"schedule": getattr(value, "__qualname__", type(value).__name__)}


def make_result(run, record, last, about, seconds):
    """The dictionary for result.json, but for the hash of the statement, which is rendered from
    it.
    """
    ledger, budget, plan = record.ledger, run.budget, run.plan
    steps, period = record.progress.step, plan.sampler.period
    figures = [name for name in about if name.endswith("_not_private")]
    not_private = [*(TRAINING_FIGURES if run.train_metrics else ()), *figures]
    setup = [
        {
            "name": name,
            "what": what,
            "event": event_to_json(event),
            "noise_multiplier": noise_of(event),
        }
        for name, event, what in run.setup
    ]
    # {name: (Bound, kind, note)} of the usual accountants and the one that held the target; null
    # where one has no theorem
    bounds = all_bounds(
        ledger, dict.fromkeys((*ACCOUNTANTS, budget.accountant.name)), delta=budget.delta
    )
    return jsonable(
        {
            "experiment": run.name,
            "dataset": run.data_name,
            "dataset_sha256": run.data_sha256,
            "notice": run.notice,
            "device": run.device,
            "ranks": run.ranks.size,
            "gradients": plan.sanitizer.strategy,
            **gradients_of(run, record),
            "sampler": type(plan.sampler).__name__,
            "relation": plan.relation.value,
            "command": run.command,
            "config": run.flags,
            "settings": {
                **run.settings,
                "setup": setup,
                **{f"{each['name']}_noise_multiplier": each["noise_multiplier"] for each in setup},
            },
            "public": list(run.public),
            "disclosed": list(run.disclosed),
            "choices": run.choices,
            "rows_checked": run.rows_checked,
            "weighted": run.example_weight is not None,
            "best_of_measured": run.descent is not run.optimizer,
            "group": group_of(ledger, bounds, budget.delta, run.group_size),
            "steps": steps,
            "steps_charged": ledger.count_of(STEP) * period,
            "setup_charged": ledger.count_of(SETUP),
            "earlier_lots_charged": ledger.count_of(EARLIER) * period,
            "epochs": steps / run.steps_per_epoch,
            "stopped": record.stopped,
            "test_accuracy": last["test_accuracy"],
            "train_accuracy": last["train_accuracy_not_private"],
            "test_r2": last["test_r2"],
            "train_r2": last["train_r2_not_private"],
            "not_private": not_private,
            "not_for_release": [*(MAY_BE_PRIVATE if not_private else ()), KEY],
            "epsilon": {
                name: {**bound.to_json(), "kind": kind, "note": note}
                for name, (bound, kind, note) in bounds.items()
            },
            "epsilon_without_amplification": unamplified(
                budget.accountant, ledger, budget.delta, run.steps_per_epoch / period
            ).to_json(),
            "accountant": budget.accountant.name,
            "delta": budget.delta,
            "meaning": meaning_of(ledger, budget.delta),
            "delta_added": delta_added(ledger, bounds[budget.accountant.name][0].upper),
            "target_epsilon": None if math.isinf(budget.epsilon) else budget.epsilon,
            "seconds_total": seconds[0],
            "seconds_per_step": seconds[1] / steps if steps else None,
            "arithmetic": plan.sanitizer.arithmetic,
            "generator": GENERATOR,
            "reproducible": run.streams.reproducible,
            "seed": run.streams.seed,
            "ledger_sha256": ledger.sha256(),
            "statement_format": FORMAT,
            "versions": versions(),
            "commit": run.commit,
            **about,
        }
    )


def gradients_of(run, record):
    """{"gradients_ran": {form: parameters}}; on a device "gradients_bytes" too: what explicit ones
    of a lot take, and may take.
    """
    plan, params = run.plan, run.network.params
    found = {"gradients_ran": record.gradients_ran}
    if (xp := namespace_of(*params.values())).__name__ != "numpy":
        lot = math.ceil(plan.expected_lot_size * sum(array.nbytes for array in params.values()))
        found["gradients_bytes"] = {"lot": lot, "budget": explicit_budget(xp)}
    return found


def group_of(ledger, bounds, delta, size):
    """{"size": k, "epsilon": what the run costs k examples together}, the tightest bound; None for
    k = 1.
    """
    if size == 1:
        return None
    kinds = [
        name
        for name, (bound, kind, _) in bounds.items()
        if kind == "bound" and bound.upper is not None
    ]
    found = all_bounds(ledger, kinds, delta=delta, group_size=size)
    uppers = [bound.upper for bound, _, _ in found.values()]
    return {"size": size, "epsilon": min(uppers, default=math.inf)}


def quote_line(result):
    """The figure to quote, in one line."""
    name = row_to_quote(result["epsilon"])
    if name is None:
        return (
            "quote: no epsilon: something was released without noise, or no certified bound is "
            "known"
        )
    return (
        f"quote: epsilon {upper_text(result['epsilon'][name]['upper'])} at delta "
        f"{result['delta']:g} ({name}, the tightest certified bound)"
    )


def summary(result, path):
    """The lines that tell a person what came out, then the figure to quote, the file to open, the
    next command.
    """
    if result["notice"]:
        yield f"NOTICE: {result['notice']}"
    accuracy = (
        "" if result["test_accuracy"] is None else f"test accuracy {result['test_accuracy']:.2%} "
    )
    yield (
        f"{accuracy}after {result['steps']} lots ({result['epochs']:.4g} epochs) on "
        f"{result['dataset']}, {result['device']}"
    )
    for what, of in (
        ("test_r2", "of the test set"),
        ("train_r2", "of the training data (not private)"),
    ):
        if result.get(what) is not None:
            yield f"R2 {of}: {result[what]:.4f}"
    if result["train_accuracy"] is not None:
        yield f"training accuracy {result['train_accuracy']:.2%} (not private)"
    for name, bound in result["epsilon"].items():
        low, high = lower_text(bound["lower"]), upper_text(bound["upper"])
        within = high if bound["lower"] in (None, bound["upper"]) else f"{low} to {high}"
        kind = "" if bound["kind"] == "bound" else f" ({bound['kind']}, no guarantee)"
        yield f"epsilon at delta {result['delta']:g} by {name}: {within}{kind}"
    if result["reproducible"]:
        yield f"seed {result['seed']}: reproducible, and not to be released"
    threads_, kernels = (result["versions"][name] for name in ("threads", "openblas_kernels"))
    yield (
        f"{result['seconds_total']:.1f} s, {1000 * (result['seconds_per_step'] or 0):.2f} ms a "
        f"step ({result['arithmetic']} arithmetic; threads: {threads_}; OpenBLAS kernels: "
        f"{kernels})"
    )

    yield quote_line(result)
    yield f"read:  {path / STATEMENT} (picture: {path / CURVES}; {MANIFEST} seals all files)"
    yield f"check: python -m minidp verify {path}"


def versions():
    """Python, the libraries, the kernels and the threads whose rounding or random numbers a result
    depends on.
    """
    found = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "minidp"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # a checkout that was not installed
            found[name] = getattr(sys.modules.get(name), "__version__", None)
    if "cupy" in sys.modules:
        found["cupy"] = sys.modules["cupy"].__version__
    return {**found, **host.describe()}


def git_commit(root=ROOT):
    """The commit of the checkout, with "-dirty" where tracked files differ from it; None if there
    is none.
    """
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    # not a repository around the checkout
    ceiling = {"GIT_CEILING_DIRECTORIES": str(Path(root).resolve().parent)}
    try:
        done = subprocess.run(
            command, cwd=root, env={**os.environ, **ceiling}, capture_output=True, text=True
        )
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
