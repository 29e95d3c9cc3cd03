"""What result.json says of a run: facts, which the run alone knows, and figures derived from them.

`derived` reads neither files nor a run, so that `verify` computes the same figures from the facts.
"""

import math
import os
import platform
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np

from .. import host
from ..backend import explicit_budget, namespace_of
from ..errors import DataError
from ..mechanism import ClipGroup, Plan, Sanitizer
from ..mechanism.noise import noise_grid
from ..mechanism.samplers import sampler_from
from ..mechanism.schedule import from_json, to_json
from ..privacy import (
    Composed,
    Ledger,
    PoissonSampled,
)
from ..privacy.accountants import all_bounds
from ..privacy.attacker import meaning_of
from ..privacy.event_json import event_to_json
from ..privacy.ledger import SETUP, STEP
from ..streams import GENERATOR
from ..train import Averaged
from ..util.files import jsonable
from .checkpoint import short
from .folder import EARLIER, KEY, MAY_BE_PRIVATE
from .statement import FORMAT

ROOT = Path(__file__).resolve().parents[2]
ACCOUNTANTS = ("moments", "renyi", "loss_distribution", "gaussian_clt", "advanced", "basic")
ARITHMETIC = "ordinary"  # floating point, rounded as NumPy and CuPy do
# what model.npz says of its run, too
MODEL_FACTS = ("experiment", "dataset", "steps", "arithmetic", "statement_sha256")
UNIT = ("unit", "rows_per_person")  # whom one unit of the guarantee is
TRAINING_FIGURES = (
    "train_accuracy",
    "train_r2",
    "metrics.csv: columns named not_private",
    "curves.png: training accuracy",
    "checkpoint.npz: history",
)


def derived(plan, budget, setup, *, size, steps, group_size):
    """What follows from a run's plan, its charges and public numbers, as values of JSON.

    budget      privacy.Filter with the target, delta and the run's ledger
    setup       [(name, event, line in the statement)] of the releases before the first step
    size        public number of training examples
    steps       that ran
    group_size  k: what the run costs k examples together is derived too
    """
    ledger, period = budget.ledger, plan.sampler.period
    steps_per_epoch = size / plan.expected_lot_size
    # {name: (Bound, kind, note)} of the usual accountants and the one that held the target; null
    # where one has no theorem
    names = dict.fromkeys((*ACCOUNTANTS, budget.accountant.name))
    bounds = all_bounds(ledger, names, delta=budget.delta)
    releases = [
        {
            "name": name,
            "what": what,
            "event": event_to_json(event),
            "noise_multiplier": noise_of(event),
        }
        for name, event, what in setup
    ]
    noises = {f"{each['name']}_noise_multiplier": each["noise_multiplier"] for each in releases}
    return jsonable(
        {
            "sampler": type(plan.sampler).__name__,
            "relation": plan.relation.value,
            "settings": {**settings_of(plan, size), "setup": releases, **noises},
            "steps_charged": ledger.count_of(STEP) * period,
            "setup_charged": ledger.count_of(SETUP),
            "earlier_lots_charged": ledger.count_of(EARLIER) * period,
            "epochs": steps / steps_per_epoch,
            "epsilon": {
                name: {**bound.to_json(), "kind": kind, "note": note}
                for name, (bound, kind, note) in bounds.items()
            },
            "epsilon_without_amplification": unamplified(
                budget.accountant, ledger, budget.delta, steps_per_epoch / period
            ).to_json(),
            "group": group_of(ledger, bounds, budget.delta, group_size),
            "meaning": meaning_of(ledger, budget.delta),
            "accountant": budget.accountant.name,
            "delta": budget.delta,
            "target_epsilon": None if math.isinf(budget.epsilon) else budget.epsilon,
            "ledger_sha256": ledger.sha256(),
        }
    )


def plan_of(result):
    """The plan, of no steps, that the dictionary of result.json describes.

    Raises DataError for an arithmetic, a sampler or a schedule that is none of the library's.
    """
    if (arithmetic := result["arithmetic"]) != ARITHMETIC:
        raise DataError(
            f"its result has arithmetic {short(arithmetic)}, and this version computes in "
            f"{ARITHMETIC} arithmetic alone: verify it with the version that wrote it"
        )
    settings = result["settings"]
    groups = [
        ClipGroup(
            group["name"],
            [key.rsplit(".", 1) for key in group["parameters"]],
            from_json(group["clip_norm"]),
            from_json(group["noise_multiplier"]),
        )
        for group in settings["clip_groups"]
    ]
    sanitizer = Sanitizer(groups, result["gradients"])
    return Plan(sampler_from(settings), sanitizer, 0, settings["expected_lot_size"])


def began(facts):
    """What config.json holds of facts that are known before the first charge."""
    return {
        **{key: facts[key] for key in ("seed", "generator", "arithmetic", *UNIT)},
        **facts["config"],
        **{key: facts[key] for key in ("device", "dataset_sha256", "settings")},
    }


def facts_of(run):
    """What a run knows before its first charge, as values of JSON."""
    about, training, budget, plan = run.about, run.training, run.budget, run.plan
    optimizer, averaged = training.optimizer, isinstance(training.optimizer, Averaged)
    data = about.data
    return jsonable(
        {
            "experiment": about.name,
            "dataset": about.source if data is None else data.name,
            "dataset_sha256": data.sha256 if data is not None and data.published else None,
            "notice": "" if data is None else data.notice,
            "device": run.device,
            "ranks": run.ranks.size,
            "gradients": plan.sanitizer.strategy,
            "unit": "row" if run.privacy.rows_per_person is None else "person",
            "rows_per_person": run.privacy.rows_per_person,
            "arithmetic": ARITHMETIC,
            "command": about.command,
            "config": about.flags,
            "settings": {
                "dataset_size": run.dataset_size,
                "planned_steps": plan.steps,
                "accountant": budget.accountant.name,
                "target_epsilon": budget.epsilon,
                "delta": budget.delta,
                "augmentation_multiplicity": training.augmentation_multiplicity,
                "optimizer": type(optimizer.optimizer if averaged else optimizer).__name__,
                "average": optimizer.decay if averaged else 0.0,
                "learning_rate": to_json(optimizer.learning_rate),
                **settings_of(plan, run.dataset_size),
            },
            "public": about.public,
            "disclosed": about.disclosed,
            "choices": about.choices,
            "generator": GENERATOR,
            "reproducible": run.streams.reproducible,
            "seed": run.streams.seed,
            "statement_format": FORMAT,
            "commit": about.commit,
        }
    )


def make_result(run, record, last, about, seconds):
    """The dictionary for result.json, but for the hash of the statement, which is rendered from
    it.
    """
    steps = record.progress.step
    figures = [name for name in about if name.endswith("_not_private")]
    not_private = [*(TRAINING_FIGURES if run.privacy.train_metrics else ()), *figures]
    found = derived(
        run.plan,
        run.budget,
        run.setup,
        size=run.dataset_size,
        steps=steps,
        group_size=run.privacy.group_size,
    )
    return {
        **run.facts,
        **found,
        "settings": {**run.facts["settings"], **found["settings"]},
        **jsonable(
            {
                **gradients_of(run, record),
                "row_bits": run.row_bits,
                "rows_checked": run.rows_checked,
                "weighted": run.example_weight is not None,
                "day": time.strftime("%Y-%m-%d", time.gmtime()),
                "steps": steps,
                "stopped": record.stopped,
                "test_accuracy": last["test_accuracy"],
                "train_accuracy": last["train_accuracy_not_private"],
                "test_r2": last["test_r2"],
                "train_r2": last["train_r2_not_private"],
                "not_private": not_private,
                "not_for_release": not_for_release(not_private),
                "seconds_total": seconds[0],
                "seconds_per_step": seconds[1] / steps if steps else None,
                "versions": versions(),
                **about,
            }
        ),
    }


def not_for_release(not_private):
    """Names of the files that must stay with the data's owner, given the figures that are not
    private.
    """
    return [*(MAY_BE_PRIVATE if not_private else ()), KEY]


def settings_of(plan, size):
    """The settings that follow from a plan and the public number of examples."""
    lot, factor = plan.expected_lot_size, plan.products.factor
    sensitivity = plan.sanitizer.for_step(0).sensitivity(rounding=factor)
    return jsonable(
        {
            "expected_lot_size": lot,
            "sampling_probability": lot / size,
            **plan.sampler.settings(),
            "clip_groups": [
                {
                    "name": group.name,
                    "clip_norm": to_json(group.clip_norm),
                    "noise_multiplier": to_json(group.noise_multiplier),
                    "noise_std_on_sum": group.noise_std if group.constant else None,
                    "noise_std_on_mean": group.noise_std / lot if group.constant else None,
                    "sensitivity": sensitivity[group.name] if group.constant else None,
                    "sensitivity_factor": factor,
                    "grid": noise_grid(group.noise_std) if group.constant else None,
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


def unamplified(accountant, charged, delta, steps_per_epoch):
    """Epsilon of what was charged if each example were in one lot of every epoch, and nothing
    gained from sampling; steps in periods.
    """
    ledger = Ledger(charged.relation)
    for event, times in charged.items():
        for part in event.events if isinstance(event, Composed) else (event,):
            if isinstance(part, PoissonSampled):
                ledger.append(part.event, math.ceil(times / steps_per_epoch))
            else:
                ledger.append(part, times)
    return accountant.epsilon(ledger, delta)


def versions():
    """Python, the libraries, BLAS, its kernels and the threads that a result's rounding or random
    numbers depend on.
    """
    found = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "numba"):
        found[name] = metadata.version(name)
    found["minidp"] = sys.modules["minidp"].__version__
    if "cupy" in sys.modules:
        found["cupy"] = sys.modules["cupy"].__version__
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    found["blas"] = f"{blas['name']} {blas.get('version', 'of unknown version')}"
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
