"""What a finished run leaves: result.json, metrics.csv, curves.png, model.npz, privacy.md, and a summary."""
import hashlib
import math

from minidp.files import write_json
from minidp.privacy import FixedSizeSampled, Ledger, PoissonSampled
from minidp.run.record import git_commit, versions
from minidp.train import Averaged, save_model

from .accounting import every_epsilon
from .config import FREE, to_json
from .plots import save_curves
from .folder import lots_charged
from .verdicts import compare
from .statement import write_statement
from .training import write_metrics

FILES = ("result.json", "metrics.csv", "curves.png", "ledger.json", "model.npz", "privacy.md")


def finish(job, task, record, history, seconds):
    """Write all files of a job's run into its folder, print a summary, and return the result."""
    progress, plan, filter, dataset = record.progress, task.plan, task.filter, job.dataset
    setup_charged, earlier_lots = before_training(record.ledger, task.setup_count, job.setup_event, plan.sampler.period)
    last = task.measure(progress.step, whole=True)
    with task.released():
        measured = job.measured() if job.measured else {}
    history = [row for row in history if row["step"] < progress.step] + [last]
    result = {
        "experiment": job.name,
        "dataset": dataset.name,
        "dataset_sha256": dataset.sha256,
        "notice": dataset.notice,
        "device": job.backend.name,
        "gradients": plan.sanitizer.strategy,
        "sampler": type(plan.sampler).__name__,
        "relation": plan.relation.value,
        "command": job.command,
        "config": {key: value for key, value in to_json(job.config).items() if key not in FREE},
        "settings": settings(task, dataset, job.setup_event),
        "steps": progress.step,
        "steps_charged": lots_charged(record.ledger, task.setup_count, plan),
        "setup_charged": setup_charged,
        "earlier_lots_charged": earlier_lots,
        "epochs": progress.step / task.steps_per_epoch,
        "stopped": record.stopped,
        "test_accuracy": last["test_accuracy"],
        "train_accuracy": last.get("train_accuracy_not_private"),
        "not_private": ["train_accuracy", "metrics.csv: columns named not_private", "curves.png: training accuracy",
                        "checkpoint.npz: history"]
        if task.train_metrics else [],
        "epsilon": every_epsilon(record.ledger, filter.delta),
        "epsilon_without_amplification": unamplified(filter.accountant, record.ledger, filter.delta,
                                                     task.steps_per_epoch).to_json(),
        "accountant": filter.accountant.name,
        "target_epsilon": None if math.isinf(filter.epsilon) else filter.epsilon,
        "delta": filter.delta,
        "seconds_total": seconds[0],
        "seconds_per_step": seconds[1] / progress.step if progress.step else None,
        "reproducible": task.streams.reproducible,
        "seed": task.streams.seed,
        "ledger_sha256": record.ledger.sha256(),
        "versions": versions(),
        "commit": git_commit(),
        **measured,
        **job.about,
    }
    path = job.folder.path
    job.folder.charge(record.ledger)
    with task.released():
        save_model(path / "model.npz", task.model, {key: result[key] for key in ("experiment", "dataset", "steps")})
    write_metrics(path / "metrics.csv", history)
    save_curves(path / "curves.png", [row["epoch"] for row in history], [row["test_accuracy"] for row in history],
                train_accuracy=[row["train_accuracy_not_private"] for row in history] if task.train_metrics else None,
                delta=[row["delta_at_epsilon"] for row in history], epsilon=task.curve_epsilon,
                title=f"{job.name} on {dataset.name}", notice=dataset.notice or "")
    write_statement(path / "privacy.md", result=result, plan=plan, setup=job.setup_lines, ledger=record.ledger,
                    released=("the network's parameters after every step (model.npz, checkpoint.npz)", *job.released),
                    notice=dataset.notice)
    result["statement_sha256"] = hashlib.sha256((path / "privacy.md").read_bytes()).hexdigest()
    write_json(path / "result.json", result)
    summarise(result, path)
    return result


def settings(task, dataset, setup_event):
    """The numbers that the accounting rests on, and what the descent was."""
    plan = task.plan
    averaged = isinstance(task.optimizer, Averaged)
    return {
        "dataset_size": dataset.nominal_size,
        "expected_lot_size": plan.expected_lot_size,
        "sampling_probability": plan.expected_lot_size / dataset.nominal_size,
        "optimizer": type(task.optimizer.optimizer if averaged else task.optimizer).__name__,
        "average": task.optimizer.decay if averaged else 0.0,
        "learning_rate": task.optimizer.learning_rate,
        "pca_noise_multiplier": setup_event.noise_multiplier if setup_event else None,
        "clip_groups": [
            {"name": group.name, "clip_norm": group.clip_norm, "noise_multiplier": group.noise_multiplier,
             "noise_std_on_sum": group.noise_std if group.constant else None,
             "noise_std_on_mean": group.noise_std / plan.expected_lot_size if group.constant else None}
            for group in plan.sanitizer.groups
        ],
    }


def before_training(ledger, setup_count, setup_event, period):
    """(charges of `setup_event`, lots of earlier attempts) among the ledger's first `setup_count` events.

    Lots are there where an unseeded run began again without its checkpoint: what they released stays charged.
    """
    releases, left = 0, setup_count
    for event, times in ledger.items():
        first = min(times, left)
        left -= first
        releases += first if event == setup_event else 0
    return releases, (setup_count - releases) * period


def unamplified(accountant, charged, delta, steps_per_epoch):
    """Epsilon of what was charged if each example were in one lot of every epoch, and nothing gained from sampling."""
    ledger = Ledger(charged.relation)
    for event, times in charged.items():
        if isinstance(event, (PoissonSampled, FixedSizeSampled)):
            ledger.append(event.event, math.ceil(times / steps_per_epoch))
        else:
            ledger.append(event, times)
    return accountant.epsilon(ledger, delta)


def summarise(result, path):
    """Print what came out and where it lies."""
    if result["notice"]:
        print(f"NOTICE: {result['notice']}")
    print(f"test accuracy {result['test_accuracy']:.2%} after {result['steps']} lots "
          f"({result['epochs']:.4g} epochs) on {result['dataset']}, {result['device']}")
    if result["train_accuracy"] is not None:
        print(f"training accuracy {result['train_accuracy']:.2%} (not private)")
    for name, bound in result["epsilon"].items():
        low, high = (bound[key] if bound[key] is None else _shown(bound[key]) for key in ("lower", "upper"))
        within = high if low is None or low == high else f"{low} to {high}"
        kind = "" if bound["kind"] == "bound" else f" ({bound['kind']}, no guarantee)"
        print(f"epsilon at delta {result['delta']:g} by {name}: {within}{kind}")
    if result["reproducible"]:
        print(f"seed {result['seed']}: reproducible, and not to be released")
    compare(result)
    threads, kernels = (result["versions"][name] for name in ("threads", "openblas_kernels"))
    print(f"{result['seconds_total']:.1f} s, {1000 * (result['seconds_per_step'] or 0):.2f} ms a step "
          f"(parts of a lot side by side: {threads}; OpenBLAS kernels: {kernels}); "
          f"wrote {', '.join(FILES)} into {path}")


def _shown(value):
    return "infinite" if value == "inf" else f"{value:.4f}" if value < 1e6 else f"{value:.4g}"
