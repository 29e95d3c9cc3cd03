#!/usr/bin/env python3
"""Figures 3, 4 and 5 of Abadi et al. 2016 on MNIST, each from many runs of the main job in parallel processes.

    python experiments/mnist_sweeps.py --figure 5a      # one panel; --figure 5 for all six
    python experiments/mnist_sweeps.py --figure 3 --seeds 5

What is finished is not run again: the same command goes on after an interrupt, and more seeds add to those there.
"""
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from common.config import command_of, option, parse
from common.report import compare, git_commit, user_errors, versions, write_json
from common.sweep_figures import FIGURES
from common.sweeps import Run, perform

from minidp.validate import count

NAME = "mnist_sweeps"
SMOKE = ("--smoke", "--epochs", 2, "--lot-size", 60)


@dataclass(frozen=True)
class Config:
    """The flags."""

    figure: str = option("5", "figure of the paper, a panel of Figure 5 (5a to 5f), or its sentences",
                         choices=tuple(FIGURES))
    seeds: int = option(1, "runs of every setting, with seeds 1, 2, ...")
    jobs: int | None = option(None, "processes at a time (default: one a core; one with --device gpu)")
    device: str = option("cpu", "where to compute", choices=("auto", "cpu", "gpu"))
    dataset: str = option("auto", "digits", choices=("auto", "mnist", "strokes"))
    data_dir: str | None = option(None, "folder that holds the data set's files")
    out: str = option(f"runs/{NAME}", "folder for one JSON a run, and the figure as PNG and JSON")
    quiet: bool = option(False, "no progress bar")
    smoke: bool = option(False, "a few hundred examples and two points a panel, seconds")

    def __post_init__(self):
        count(1, seeds=self.seeds)
        if self.jobs is not None:
            count(1, jobs=self.jobs)

    @property
    def processes(self):
        """Runs at a time."""
        if self.jobs is not None:
            return self.jobs
        return 1 if self.device == "gpu" else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else \
            os.cpu_count()


def runs_of(config, points):
    """{point: its runs, one for each seed}."""
    common = ("--accountant", "loss_distribution", "--dataset", config.dataset, *(SMOKE if config.smoke else ()))
    free = ("--device", config.device, "--quiet", *(["--data-dir", config.data_dir] if config.data_dir else []))
    return {point: [Run(point, seed, common, free, Path(config.out)) for seed in range(1, config.seeds + 1)]
            for point in points}


def main(argv=None):
    """Run the sweep, write the figure, return its summary."""
    config = parse(Config, argv, prog=f"{NAME}.py", description=__doc__.splitlines()[0])
    with user_errors() as note:
        note.saved = "finished runs and checkpoints are kept; the same command goes on"
        out, figure = Path(config.out), FIGURES[config.figure]
        out.mkdir(parents=True, exist_ok=True)
        runs = runs_of(config, figure.points(config.smoke))
        done = perform([run for of_point in runs.values() for run in of_point], config.processes, config.quiet)
        results = {point: [done[run] for run in of_point] for point, of_point in runs.items()}
        summary = {"experiment": NAME, "figure": config.figure,
                   "command": command_of(f"{NAME}.py", config, ("out", "quiet", "data_dir", "device", "jobs")),
                   "dataset": next((result["dataset"] for of_point in results.values() for result in of_point
                                    if "dataset" in result), None),
                   "seeds": config.seeds, "smoke": config.smoke,
                   "seconds_of_all_runs": math.fsum(result.get("seconds_total", 0) for result in done.values()),
                   **figure.summary(results), "versions": versions(), "commit": git_commit()}
        path = out / f"figure_{config.figure}"
        figure.draw(f"{path}.png", summary)
        write_json(f"{path}.json", summary)
        compare(summary)
        print(f"wrote {path}.png and {path}.json, from {len(done)} runs in {out}")
    return summary


if __name__ == "__main__":
    main()
