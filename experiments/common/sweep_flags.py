"""Flags of all sweeps: which runs to make, how many at a time, and in which folder."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from minidp.errors import MinidpError
from minidp.ranks import current
from minidp.util.files import write_json

from .config import FREE, POSITIVE, Checked, command_of, device_option, digits_option, option
from .results import compare, packed, row_of
from .sweeps import Run, perform

HERE = (*FREE, "jobs")  # not in a summary's command


@dataclass(frozen=True)
class SweepFlags(Checked):
    """Seeds, processes, device and files. A sweep's own dataclass sets its points and data."""

    # printed after Ctrl-C
    saved = "finished runs and checkpoints are kept; the same command resumes the sweep"

    seeds: int = option(1, "runs of every setting, with seeds 1, 2, ...", POSITIVE)
    jobs: int | None = option(
        None,
        "runs at a time (default: one per core; one with --device gpu)",
        POSITIVE,
    )
    device: str = device_option("cpu")
    data_dir: str | None = option(None, "folder that holds the data set's files")
    out: str | None = option(
        None,
        "folder for one JSON per run, and for the figure as PNG and JSON (default: "
        "runs/EXPERIMENT)",
    )
    quiet: bool = option(False, "show no progress bar")
    smoke: bool = option(False, "test a few points on a few hundred examples, in seconds")

    @property
    def processes(self):
        """Runs at a time."""
        if self.jobs or self.device.startswith("gpu"):
            return self.jobs or 1
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def runs(self, points, common, folder):
        """Every point with every seed; `common` are flags of all runs."""
        if hasattr(self, "dataset"):
            common += f" --dataset {self.dataset}"
        free = ("--device", self.device, "--quiet")
        if self.data_dir:
            free += ("--data-dir", self.data_dir)
        return [
            Run(point, seed, common, free, folder)
            for point in points
            for seed in range(1, self.seeds + 1)
        ]

    def perform(self, runs):
        """{run: result} of all runs; makes the missing ones."""
        if current().size > 1:
            raise MinidpError("a sweep is not one run over several ranks: start it without mpiexec")
        return perform(runs, self.processes, self.quiet)

    def make(self, experiment, made, stem, common="", subcommand="", **more):
        """Make a figure's missing runs, draw it, write and judge its summary.

        made        Figure of figures.py; stem: of its PNG and JSON in the folder
        common      flags of every run; subcommand of the experiment that makes the figure
        more        further entries of the summary
        """
        out = Path(self.out or f"runs/{experiment}")
        out.mkdir(parents=True, exist_ok=True)
        done = self.perform(self.runs(made.points(self.smoke), common, out))
        trained = [result for result in done.values() if "dataset" in result]
        _check_data(trained, out)
        results = {}
        for run, result in done.items():
            results.setdefault(run.point.name, []).append(result)
        script = f"{experiment}.py {subcommand}".strip()
        summary = {
            "experiment": experiment,
            "command": command_of(script, self, HERE),
            "dataset": trained[0]["dataset"] if trained else None,
            "notice": "; ".join(filter(None, _said(trained, "notice"))),
            "device": sorted(_said(trained, "device")),
            "seeds": sorted(_said(trained, "seed")),
            "smoke": self.smoke,
            "seconds_of_all_runs": sum(result["seconds_total"] for result in trained),
            "versions": _one_or_all(_said(trained, "versions")),
            "commit": _one_or_all(_said(trained, "commit")),
            **more,
            **made.summary(results, self.smoke),
            **packed([row_of(run.point.name, result) for run, result in done.items()]),
        }
        made.draw(out / f"{stem}.png", summary)
        write_json(out / f"{stem}.json", summary)
        verdicts = compare(summary)
        for claim, why in summary.get("not_measured", {}).items():
            print(f"{claim}: not measured, {why}")
        if summary["notice"]:
            print(f"NOTICE: {summary['notice']}")
        reproduced = sum(found.reproduced for found in verdicts)
        quote = "no figure of the paper is at these settings and on this data"
        if verdicts:
            quote = f"{reproduced} of {len(verdicts)} figures of the paper reproduced"
        next_one = command_of(script, replace(self, seeds=self.seeds + 1))
        print(
            f"quote: {quote}\nread:  {out / stem}.png (numbers: {out / stem}.json, from "
            f"{len(done)} runs in {out})\nnext:  {next_one}   # one more seed; runs that are done "
            "stay done"
        )


@dataclass(frozen=True)
class DigitSweepFlags(SweepFlags):
    """SweepFlags for a sweep over digits."""

    dataset: str = digits_option()


def _check_data(trained, folder):
    """Raise MinidpError unless all runs of a folder trained on the same data."""
    kinds = {f"{one['dataset']} ({one['dataset_sha256']})": one["command"] for one in trained}
    if len(kinds) > 1:
        told = "; ".join(f"{kind}: {command}" for kind, command in kinds.items())
        raise MinidpError(
            f"{folder} holds runs on different data: {told}; delete one kind, or choose another "
            "--out"
        )


def _said(trained, key):
    """The different values that runs have, in their order."""
    found = []
    for one in trained:
        if one[key] not in found:
            found.append(one[key])
    return found


def _one_or_all(found):
    """The value that all runs share, or the list of those that they have."""
    return found[0] if len(found) == 1 else found
