"""Flags of all sweeps: which runs to make, how many at a time, and in which folder."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from minidp.errors import MinidpError, ParameterError
from minidp.ranks import current
from minidp.util.files import write_json

from .config import FREE, POSITIVE, Checked, command_of, device_option, digits_option, option
from .results import committed, compare, packed, row_of
from .sweeps import Run, perform

HERE = (*FREE, "jobs", "draw", "partial")  # not in a summary's command


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
    draw: bool = option(
        False, "run nothing: make the picture from finished runs, all of which must be there"
    )
    partial: bool = option(False, "with --draw: accept that runs are missing; the JSON names them")
    quiet: bool = option(False, "show no progress bar")
    smoke: bool = option(False, "test a few points on a few hundred examples, in seconds")

    def __post_init__(self):
        super().__post_init__()
        if self.partial and not self.draw:
            raise ParameterError("--partial needs --draw: a sweep that runs makes all its points")

    @property
    def processes(self):
        """Runs at a time."""
        if self.jobs or self.device.startswith("gpu"):
            return self.jobs or 1
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def perform(self, runs):
        """{run: result} of all runs; makes the missing ones."""
        if current().size > 1:
            raise MinidpError("a sweep is not one run over several ranks: start it without mpiexec")
        return perform(runs, self.processes, self.quiet)

    def make(self, experiment, made, stem, common="", subcommand="", **more):
        """Make a figure's missing runs, draw it, write and judge its summary; returns the summary.

        made        Figure of figures.py; stem: of its PNG and JSON in the folder
        common      flags of every run; subcommand of the experiment that makes the figure
        more        further entries of the summary
        """
        out = Path(self.out or f"runs/{experiment}")
        out.mkdir(parents=True, exist_ok=True)
        points = made.points(self.smoke)
        results = self.results(points, common, out)
        every = [result for runs in results.values() for result in runs if "dataset" in result]
        script = f"{experiment}.py {subcommand}".strip()

        def said(key):
            found = [result[key] for result in every]
            return [value for i, value in enumerate(found) if value not in found[:i]]

        summary = {
            "experiment": experiment,
            "command": command_of(script, self, HERE),
            "dataset": every[0]["dataset"] if every else None,
            "notice": "; ".join(filter(None, said("notice"))),
            "device": sorted(said("device")),
            "seeds": sorted(said("seed")),
            "fewest_seeds": min(map(len, results.values())),
            "smoke": self.smoke,
            "seconds_of_all_runs": sum(result["seconds_total"] for result in every),
            "versions": _one_or_all(said("versions")),
            "commit": _one_or_all(said("commit")),
            **more,
            **made.summary(results, self.smoke),
            "missing": [point.name for point in points if point.name not in results],
            **packed([row_of(name, result) for name, runs in results.items() for result in runs]),
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
        more = replace(self, seeds=self.seeds + 1, draw=False, partial=False)
        print(
            f"quote: {quote}\nread:  {out / stem}.png (numbers: {out / stem}.json, from "
            f"{sum(map(len, results.values()))} runs in {out})\nnext:  {command_of(script, more)}"
            "   # one more seed; runs that are done stay done"
        )
        return summary

    def tell_hours(self, runs):
        """Print how long the missing runs took when the committed results were made."""
        todo = [run for run in runs if run.result() is None]
        if self.smoke or not todo:
            return
        known = {
            row["name"]: row["seconds_total"]
            for row in committed()
            if row["seed"] == 1 and "seconds_total" in row
        }
        times = [known.get(run.point.name) for run in todo]
        hours, unknown = sum(filter(None, times)) / 3600, times.count(None)
        left = f"; of {unknown} the time is not known" if unknown else ""
        print(
            f"{len(todo)} runs to make; the committed ones took {hours:.1f} hours, one at a "
            f"time{left}",
            flush=True,
        )

    def results(self, points, common, folder):
        """{name of a point: its results, one per seed}; makes the missing runs. `common` are flags
        of every run.

        With --draw nothing runs, and missing runs raise MinidpError; with --partial only if none is
        there.
        """
        if hasattr(self, "dataset"):
            common += f" --dataset {self.dataset}"
        free = ("--device", self.device, "--quiet")
        if self.data_dir:
            free += ("--data-dir", self.data_dir)
        runs = [
            Run(point, seed, common, free, folder)
            for point in points
            for seed in range(1, self.seeds + 1)
        ]
        if self.draw:
            done = {run: result for run in runs if (result := run.result()) is not None}
            missing = [run.name for run in runs if run not in done]
            if not done or missing and not self.partial:
                raise MinidpError(
                    f"{folder} lacks runs: {', '.join(missing)}; leave out --draw to make them"
                    + (", or draw what is there with --partial" if done else "")
                )
        else:
            self.tell_hours(runs)
            done = self.perform(runs)
        found, kinds = {}, {}
        for run, result in done.items():
            found.setdefault(run.point.name, []).append(result)
            if "dataset" in result:
                kind = f"{result['dataset']} ({result['dataset_sha256']})"
                kinds.setdefault(kind, result["command"])
        if len(kinds) > 1:
            told = "; ".join(f"{kind}: {command}" for kind, command in kinds.items())
            raise MinidpError(
                f"{folder} holds runs on different data: {told}; delete one kind, or choose "
                "another --out"
            )
        return found


@dataclass(frozen=True)
class DigitSweepFlags(SweepFlags):
    """SweepFlags for a sweep over digits."""

    dataset: str = digits_option()


def _one_or_all(found):
    """The value that all runs share, or the list of those that they have."""
    return found[0] if len(found) == 1 else found
