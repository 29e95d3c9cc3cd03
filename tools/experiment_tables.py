"""The tables of experiments/README.md, from the committed JSON files and from expected.json."""
import json
import statistics
from pathlib import Path

from experiments.common.verdicts import Verdict, verdict

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
EXPECTED = ROOT / "experiments" / "expected.json"
MISSING = "no run yet"
SWEEPS = "sweeps"
# which files speak for an experiment's entries in expected.json; a sweep's single runs do not, its summaries do
FILES = {"accountant_curves": "accountant_curves.json", "mnist_pca": "mnist_pca-*.json",
         "mnist_sweeps": f"{SWEEPS}/figure_*.json", "paper_ledgers": "paper_ledgers.json",
         "cifar_transfer": "cifar_transfer-*.json"}


def load(path):
    """The JSON file, None if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def found_for(experiment, entry, folder):
    """(values, paths): what the results in the folder say to one entry of expected.json."""
    found = [(verdict(load(path), entry), path) for path in sorted(folder.glob(FILES[experiment]))]
    found = [(one.value, path.relative_to(folder.parent).as_posix()) for one, path in found if one is not None]
    return [value for value, _ in found], [path for _, path in found]


def verdict_table(experiments, folder=RESULTS, expected=EXPECTED, prefix=""):
    """One row for each number that expected.json holds for these experiments, whose quantity begins so."""
    yield "| what | the paper | ours | seeds | verdict | from |"
    yield "|---|---|---|---|---|---|"
    for experiment in experiments:
        for entry in load(expected).get(experiment, []):
            if not entry["quantity"].startswith(prefix):
                continue
            values, paths = found_for(experiment, entry, folder)
            what, paper = entry.get("sentence", entry["source"]), _number(entry["value"], entry)
            if not values:
                yield f"| {what} | {_side(entry)}{paper} | {MISSING} | | | |"
                continue
            mean = statistics.mean(values)
            spread = f" ({_number(min(values), entry)} to {_number(max(values), entry)})" if len(values) > 1 else ""
            yield (f"| {what} | {_side(entry)}{paper} | {_number(mean, entry)}{spread} | {_seeds(paths, folder)} | "
                   f"{_word(mean, entry)} | {', '.join(f'[{i}]({path})' for i, path in enumerate(paths, 1))} |")


def _word(mean, entry):
    one = Verdict(entry["quantity"], mean, entry["value"], entry["tolerance"], entry["source"], entry.get("side", ""))
    if one.agrees:
        if one.side and not one._replace(tolerance=0.0).agrees:
            room = f"{100 * one.tolerance:.2f} points" if entry.get("unit") == "%" else f"{one.tolerance:g}"
            return f"reproduced within {room}"
        return "reproduced"
    because = f" because {entry['because']}" if "because" in entry else ""
    return f"differs by {_number(mean - entry['value'], entry, '+')}{because}"


def _number(value, entry, sign=""):
    if entry.get("unit") != "%":
        return f"{value:{sign}.4g}"
    points = entry["quantity"].startswith("quantities.") or sign
    return f"{100 * value:{sign}.2f} points" if points and abs(value) < 0.5 else f"{value:{sign}.2%}"


def _side(entry):
    return f"{entry['side']} " if "side" in entry else ""


def _seeds(paths, folder):
    """Seeds behind the files: those a summary lists, or one for each file."""
    listed = [load(folder.parent / path).get("seeds") for path in paths]
    return sum(len(seeds) if isinstance(seeds, list) else 1 for seeds in listed)


def commands_table(folder=RESULTS / SWEEPS):
    """Each figure of the sweeps: its command, the runs' time, seeds, device and picture."""
    yield "| figure | command | runs' time, minutes | seeds | device | ours |"
    yield "|---|---|---|---|---|---|"
    for path in sorted(folder.glob("figure_*.json")):
        summary = load(path)
        yield (f"| {summary['figure']} | `{summary['command']}` | {summary['seconds_of_all_runs'] / 60:.0f} | "
               f"{len(summary['seeds'])} | {', '.join(summary['device'])} | "
               f"[picture](results/{SWEEPS}/{path.stem}.png), [numbers](results/{SWEEPS}/{path.name}) |")


def figure_3_table(path=RESULTS / SWEEPS / "figure_3.json"):
    """Accuracy and privacy at the three noise levels."""
    summary = load(path)
    yield "| noise (sigma, sigma_pca) | epsilon, delta 1e-5 | lots | test accuracy | training (not private) | seeds |"
    yield "|---|---|---|---|---|---|"
    for name, level in (summary or {"levels": {}})["levels"].items():
        yield (f"| {name} ({level['sigma']}, {level['sigma_pca']}) | {float(level['epsilon']):.3f} | {level['steps']:,} | "
               f"{_spread(level)} | {level['train_accuracy_not_private']:.2%} | {level['seeds']} |")


def figure_4_table(path=RESULTS / SWEEPS / "figure_4.json"):
    """The best accuracy for each (epsilon, delta)."""
    pairs = (load(path) or {"pairs": []})["pairs"]
    epsilons, deltas = (sorted({pair[key] for pair in pairs}) for key in ("epsilon", "delta"))
    yield "| delta | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in epsilons) + " |"
    yield "|---" * (1 + len(epsilons)) + "|"
    for delta in deltas:
        row = {pair["epsilon"]: pair["test_accuracy"] for pair in pairs if pair["delta"] == delta}
        yield f"| {delta:g} | " + " | ".join("nothing fits" if row[e] is None else f"{row[e]:.2%}" for e in epsilons) + " |"


def figure_5_table(folder=RESULTS / SWEEPS):
    """The points of every panel that has been run."""
    yield "| panel | value | lots | epochs | test accuracy | seeds |"
    yield "|---|---|---|---|---|---|"
    whole = load(folder / "figure_5.json")
    for letter in "abcdef":
        summary = whole or load(folder / f"figure_5{letter}.json")
        if summary is None:
            continue
        panel = summary["panels"][letter]
        for point in panel["points"] + panel["lines"]:
            accuracy = f"no lot left: {point['reason']}" if not point["steps"] else _spread(point)
            yield (f"| {panel['label']} | {str(point['x']).replace('projection-', '')}"
                   f"{' (reference)' if point['x'] == panel['reference'] else ''} | {point['steps']:,} | "
                   f"{point.get('epochs', 0):.4g} | {accuracy} | {point['seeds']} |")


def ledgers_table(path=RESULTS / "paper_ledgers.json"):
    """Epsilon of the paper's settings by each way of charging."""
    yield ("| (sigma, sigma_pca) | lots | reported | 2016 ledger, a comparison | joint rule, moments | joint rule, loss "
           "distribution | flat clipping, moments |")
    yield "|---|---|---|---|---|---|---|"
    for row in (load(path) or {"settings": {}})["settings"].values():
        reported = "" if row["reported_epsilon"] is None else f"{row['reported_epsilon']:g}"
        yield (f"| ({row['sigma']}, {row['sigma_pca']}) | {row['lots']:,} | {reported} | {row['ledger_2016']:.3f} | "
               f"{row['joint_moments']:.3f} | {row['joint_loss_distribution']['upper']:.3f} | {row['flat_moments']:.3f} |")


def claims_table(path=RESULTS / "gdp" / "gdp.json"):
    """Noise that each accountant asks for the same claim, and what it is worth."""
    yield ("| published (sigma, epochs) | claimed epsilon | sigma by moments (certified epsilon) | by CLT (certified "
           "epsilon) | by loss distribution (certified epsilon) |")
    yield "|---|---|---|---|---|"
    for claim in (load(path) or {"claims": []})["claims"]:
        cells = " | ".join(f"{one['noise_multiplier']:.4f} ({one['worth']['upper']:.3f})"
                           for one in claim["accountants"].values())
        yield f"| ({claim['sigma']}, {claim['epochs']}) | {claim['claim']:.3f} | {cells} |"


def trained_table(path=RESULTS / "gdp" / "gdp.json"):
    """Accuracy of NoisySGD and NoisyAdam at each accountant's noise."""
    summary = load(path) or {"trained": []}
    yield "| optimizer | noise by | lots | test accuracy | seeds |"
    yield "|---|---|---|---|---|"
    for one in summary["trained"]:
        yield (f"| {'NoisySGD' if one['optimizer'] == 'sgd' else 'NoisyAdam'} | {one['by']} | {one['steps']:,} | "
               f"{_spread(one)} | {one['seeds']} |")


def cifar_table(folder=RESULTS):
    """Every committed run on CIFAR-10."""
    yield "| file | epsilon, delta 1e-5 | lot | sigma | C | views averaged | lots | test accuracy | over ten views |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for path in sorted(folder.glob("cifar_transfer-*.json")):
        run = load(path)
        if "epsilon" not in run:
            continue
        upper, config = run["epsilon"][run["accountant"]]["upper"], run["config"]
        group = run["settings"]["clip_groups"][0]
        epsilon = "infinite" if upper == "inf" else f"{upper:.3f}"
        yield (f"| [{path.stem.removeprefix('cifar_transfer-')}](results/{path.name}) | {epsilon} | {config['lot_size']:,} | "
               f"{group['noise_multiplier']:g} | {group['clip_norm']} | {config.get('multiplicity', 1)} | {run['steps']:,} | "
               f"{run['test_accuracy']:.2%} | {_over_views(run)} |")


def _over_views(run):
    return f"{run['test_accuracy_over_views']:.2%}" if "test_accuracy_over_views" in run else "-"


def _spread(row):
    between = f" ({row['lowest']:.2%} to {row['highest']:.2%})" if row["seeds"] > 1 else ""
    return f"{row['test_accuracy']:.2%}{between}"


TABLES = {
    "figure 2": lambda: verdict_table(("accountant_curves",)),
    "commands": commands_table,
    "figure 3": figure_3_table,
    "figure 3 verdicts": lambda: verdict_table(("mnist_pca",)),
    "figure 3 tight": lambda: figure_3_table(RESULTS / SWEEPS / "figure_3-tight.json"),
    "figure 3 tight verdicts": lambda: verdict_table(("mnist_sweeps",), prefix="levels."),
    "figure 3 averaged": lambda: figure_3_table(RESULTS / SWEEPS / "figure_3-averaged.json"),
    "figure 4": figure_4_table,
    "figure 5": figure_5_table,
    "sentences": lambda: verdict_table(("mnist_sweeps",), prefix="quantities."),
    "figure 6": cifar_table,
    "figure 6 verdicts": lambda: verdict_table(("cifar_transfer",)),
    "ledgers": ledgers_table,
    "ledgers verdicts": lambda: verdict_table(("paper_ledgers",)),
    "claims": claims_table,
    "trained": trained_table,
}
