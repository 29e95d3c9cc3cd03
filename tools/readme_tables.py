"""Write the tables of README.md and experiments/README.md from the JSON files they come from.

    python -m tools.readme_tables            # rewrite the tables between their markers
    python -m tools.readme_tables --check    # exit 1 if a page says something else
"""
import argparse
import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from tools.bench import tables as benchmark
from tools.experiment_tables import TABLES as EXPERIMENT_TABLES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"


def results_table(folder=RESULTS):
    """Accuracy and epsilon of the main job, mean and range over seeds, one row for each setting."""
    rows = defaultdict(list)
    for path in sorted(folder.glob("mnist_pca-*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        rows["baseline" if result["config"]["baseline"] else result["config"]["noise"]].append(result)
    yield "| noise (sigma, sigma_pca) | epsilon, delta 1e-5 | lots | test accuracy, mean (range) | seeds | the paper |"
    yield "|---|---|---|---|---|---|"
    paper = {"large": "90%", "medium": "95%", "small": "97%", "baseline": "98.3%"}
    for name in ("large", "medium", "small", "baseline"):
        runs = rows.get(name)
        if not runs:
            continue
        upper = runs[0]["epsilon"][runs[0]["accountant"]]["upper"]
        epsilon = "infinite" if upper == "inf" else f"{max(run['epsilon'][run['accountant']]['upper'] for run in runs):.3f}"
        groups = runs[0]["settings"]["clip_groups"]
        label = "none (baseline)" if name == "baseline" else f"{name} ({groups[0]['noise_multiplier']:g}, {runs[0]['settings']['pca_noise_multiplier']:g})"
        yield f"| {label} | {epsilon} | {runs[0]['steps']:,} | {_accuracy(runs)} | {len(runs)} | {paper[name]} |"


def network_table(folder=RESULTS):
    """The MNIST CNN: accuracy of each setting, and epsilon by every accountant."""
    names = ("loss_distribution", "renyi", "moments", "gaussian_clt")
    yield f"| setting | test accuracy, mean (range) | seeds | published | {' | '.join(names)} |"
    yield "|---|---|---|---|" + "---|" * len(names)
    published = {1: "95.0% at 1.19", 2: "96.6% at 3.01", 3: "97.0% at 7.10"}
    for setting in published:
        runs = _load(folder, f"mnist_cnn-setting{setting}-seed*.json")
        if runs:
            group = runs[0]["settings"]["clip_groups"][0]
            label = (f"{setting}: sigma {group['noise_multiplier']:g}, {runs[0]['epochs']:.0f} epochs, rate "
                     f"{runs[0]['settings']['learning_rate']:g}, C {group['clip_norm']:g}")
            spent = " | ".join(f"{max(run['epsilon'][name]['upper'] for run in runs):.3f}" for name in names)
            yield f"| {label} | {_accuracy(runs)} | {len(runs)} | {published[setting]} | {spent} |"


def transfer_table(folder=RESULTS):
    """CIFAR-10 with pre-trained convolutions: accuracy at each epsilon, and without privacy."""
    yield ("| epsilon, delta 1e-5 | sigma | lots of | views averaged | lots | test accuracy, mean (range) | over ten views | "
           "seeds | the paper |")
    yield "|---|---|---|---|---|---|---|---|---|"
    paper = {"eps2": "67%", "eps4": "70%", "eps8": "73%", "baseline": "80%"}
    for name in paper:
        runs = _load(folder, f"cifar_transfer-{name}-seed*.json")
        if runs:
            first = runs[0]
            upper = [run["epsilon"][run["accountant"]]["upper"] for run in runs]
            spent = "infinite" if "inf" in upper else f"{max(upper):.3f} ({first['accountant']})"
            yield (f"| {spent} | {first['settings']['clip_groups'][0]['noise_multiplier']:g} | "
                   f"{first['settings']['expected_lot_size']:,} | {first['config'].get('multiplicity', 1)} | "
                   f"{first['steps']:,} | {_accuracy(runs)} | {_accuracy(runs, 'test_accuracy_over_views')} | {len(runs)} | {paper[name]} |")


def best_table(folder=RESULTS):
    """What a budget buys on MNIST: mean and range over seeds at each epsilon."""
    yield "| epsilon, delta 1e-5 | sigma, of the mean | lots of | lots | rate, C | test accuracy, mean (range) | seeds | published |"
    yield "|---|---|---|---|---|---|---|---|"
    published = {"0.5": "", "1": "", "2": "", "2.93": "98.1% at 2.93, 98.7% at 3", "8": ""}
    for name in published:
        runs = _load(folder, f"mnist_best-eps{name}-seed*.json")
        if runs:
            settings, group = runs[0]["settings"], runs[0]["settings"]["clip_groups"][0]
            spent = max(run["epsilon"]["loss_distribution"]["upper"] for run in runs)
            yield (f"| {spent:.3f} | {group['noise_multiplier']:g}, {settings['pca_noise_multiplier']:g} | "
                   f"{settings['expected_lot_size']:,} | {runs[0]['steps']:,} | {settings['learning_rate']:g}, "
                   f"{group['clip_norm']:g} | {_accuracy(runs)} | {len(runs)} | {published[name]} |")


def _load(folder, pattern):
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(pattern))]


def _accuracy(runs, key="test_accuracy"):
    found = [run[key] for run in runs if key in run]
    if not found:
        return "-"
    spread = "" if len(found) == 1 else f" ({min(found):.2%} to {max(found):.2%})"
    return f"{statistics.mean(found):.2%}{spread}"


TABLES = {"results": results_table, "benchmark": benchmark.ours, "peers": benchmark.peers,
          "conditions": benchmark.conditions, "lots": benchmark.growth,
          "cnn": network_table, "cifar": transfer_table, "best": best_table}
PAGES = {"README.md": TABLES, "experiments/README.md": EXPERIMENT_TABLES}


def filled(text, tables=TABLES, page="README.md"):
    """The page's text with every table made anew. Raises ValueError where a marker is missing."""
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- end {name} -->)", re.S)
        if not pattern.search(text):
            raise ValueError(f"{page}: no markers <!-- {name}: ... --> and <!-- end {name} -->")
        body = "\n".join(table()) + "\n"
        text = pattern.sub(lambda match: match[1] + body + match[2], text)
    return text


def main(argv=None):
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    args = parser.parse_args(argv)
    stale = 0
    for page, tables in PAGES.items():
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        made = filled(text, tables, page)
        if made == text:
            continue
        if args.check:
            print(f"{page}: its tables are not those of experiments/results; run python -m tools.readme_tables", file=sys.stderr)
            stale = 1
            continue
        from minidp.files import atomic_write

        with atomic_write(path) as file:
            file.write(made)
    return stale


if __name__ == "__main__":
    sys.exit(main())
