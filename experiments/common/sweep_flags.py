"""Flags that every sweep has, and what they mean: which runs, how many at a time, where they lie."""
import os
from dataclasses import dataclass
from pathlib import Path

from minidp.errors import MinidpError
from minidp.run.record import git_commit, versions
from minidp.validate import count

from .config import command_of, option
from .sweeps import Run, perform


@dataclass(frozen=True)
class SweepFlags:
    """Seeds, processes, device and files. A sweep's own dataclass says which points it runs, on which data."""

    seeds: int = option(1, "runs of every setting, with seeds 1, 2, ...")
    jobs: int | None = option(None, "processes at a time (default: one a core; one with --device gpu)")
    device: str = option("cpu", "where to compute", choices=("auto", "cpu", "gpu"))
    data_dir: str | None = option(None, "folder that holds the data set's files")
    out: str | None = option(None, "folder for one JSON a run and the figure as PNG and JSON (default: runs/EXPERIMENT)")
    draw: bool = option(False, "run nothing: draw from the runs that are there")
    quiet: bool = option(False, "no progress bar")
    smoke: bool = option(False, "a few hundred examples and few points, seconds")

    def __post_init__(self):
        count(1, seeds=self.seeds)
        if self.jobs is not None:
            count(1, jobs=self.jobs)

    @property
    def processes(self):
        """Runs at a time."""
        if self.jobs is not None:
            return self.jobs
        if self.device == "gpu":
            return 1
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @property
    def data_flags(self):
        """Flags of every run that choose its data set."""
        return ()

    def folder(self, name):
        """The folder of the experiment's files, made if it is not there."""
        path = Path(self.out or f"runs/{name}")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def results(self, points, common, folder):
        """{point: its results, one a seed}; runs what is missing. `common` are flags of every run.

        With --draw nothing runs, and points without any result are left out.
        """
        common = (*common, *self.data_flags)
        free = ("--device", self.device, "--quiet", *(["--data-dir", self.data_dir] if self.data_dir else []))
        runs = {point: [Run(point, seed, common, free, folder) for seed in range(1, self.seeds + 1)]
                for point in points}
        if self.draw:
            there = {point: [result for run in of_point if (result := run.result()) is not None]
                     for point, of_point in runs.items()}
            return _of_one_data_set({point: found for point, found in there.items() if found}, folder)
        done = perform([run for of_point in runs.values() for run in of_point], self.processes, self.quiet)
        return _of_one_data_set({point: [done[run] for run in of_point] for point, of_point in runs.items()}, folder)

    def about(self, name, results, subcommand=""):
        """How a summary begins: experiment, command, data, device, seeds and versions."""
        every = [result for of_point in results.values() for result in of_point if "dataset" in result]
        command = command_of(f"{name}.py {subcommand}".strip(), self, ("out", "quiet", "data_dir", "device", "jobs", "draw"))
        return {"experiment": name, "command": command,
                "dataset": every[0]["dataset"] if every else None,
                "notice": "; ".join(dict.fromkeys(result["notice"] for result in every if result.get("notice"))),
                "device": sorted({result["device"] for result in every}),
                "seeds": sorted({result["seed"] for result in every}),
                "smoke": self.smoke, "seconds_of_all_runs": sum(result["seconds_total"] for result in every),
                "versions": versions(), "commit": git_commit()}


def _of_one_data_set(results, folder):
    """The same results. Raises MinidpError where they are of several data sets, or of several copies of one."""
    found = {}
    for of_point in results.values():
        for result in of_point:
            if "dataset" in result:
                found.setdefault((result["dataset"], result.get("dataset_sha256")), result["command"])
    copies = {sha256 for _, sha256 in found if sha256}
    if len({name for name, _ in found}) > 1 or len(copies) > 1:
        told = "; ".join(f"{name} ({(sha256 or 'unknown')[:8]}): {command}" for (name, sha256), command in found.items())
        raise MinidpError(f"{folder} holds runs on different data: {told}; delete one kind, or choose another --out")
    return results


@dataclass(frozen=True)
class DigitSweepFlags(SweepFlags):
    """The same for a sweep over digits."""

    dataset: str = option("auto", "digits", choices=("auto", "mnist", "strokes"))

    @property
    def data_flags(self):
        """--dataset."""
        return "--dataset", self.dataset
