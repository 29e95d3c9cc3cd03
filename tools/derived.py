"""Figures that pages print and that follow from several numbers of experiments/results: verdicts on
the paper's claims, ranges of ratios, means. They stand in results/derived.json.
"""

from functools import partial
from statistics import mean

from experiments.common.results import EXPECTED, RESULTS, rows_of, verdict
from minidp.errors import MinidpError
from minidp.util.files import read_json, write_json

FILE = RESULTS / "derived.json"
FILES = {  # of the results that an experiment's claims are judged by
    "mnist_pca": ("figure_3", "figure_sentences"),
    "mnist_sweeps": (
        "figure_3-tight",
        "figure_3-averaged",
        "figure_sentences",
        "figure_5c-tuned",
    ),
    "cifar_transfer": ("figure_6", "figure_6-finetuned", "cifar_transfer-sentences"),
    "paper_ledgers": ("paper_ledgers",),
    "accountant_curves": ("accountant_curves",),
}


class TableError(MinidpError):
    """A table does not fit the results, or has no place."""


def load(name):
    """The content of a JSON file of experiments/results."""
    return read_json(RESULTS / name, TableError)


def derived():
    """The content of derived.json."""
    return {
        "command": "python -m tools.derived",
        "verdicts": [one for experiment in read_json(EXPECTED) for one in verdicts(experiment)],
        "accountants": list(accountants()),
        "beside": [beside()],
        "tables": list(tables()),
        "times": list(times()),
        "devices": list(devices()),
        "commands": list(commands()),
        "figure 4": figure_4(),
        "names": names(),
    }


def verdicts(experiment):
    """What the committed runs say together of each claim of an experiment in expected.json."""
    found = {}  # a run that several files hold counts once
    for name in FILES[experiment]:
        data = load(f"{name}.json")
        for one in (data, *rows_of(data)):
            if one.get("experiment") == experiment:
                key = one.get("name", name), one.get("seed")
                found.setdefault(key, {**one, "file": name})
    return [judged(entry, found.values()) for entry in read_json(EXPECTED)[experiment]]


def judged(entry, results):
    """The verdict on one claim, as texts. Raises TableError where no result speaks of it."""
    results = [one for one in results if verdict([one], entry)]
    if not results:
        raise TableError(
            f"expected.json: {entry['sentence']}: no committed result that it speaks of; mend "
            '"when"'
        )
    found = verdict(results, entry)
    number = partial(_number, entry)
    ours = number(found.value)
    if "place" in entry:
        ours = ", ".join(map(number, found.values))
    elif found.error is not None:
        ours += f" ± {number(found.error)}"
    return {
        "what": entry["sentence"],
        "paper": f"{entry.get('side', '')} {number(entry['value'])}".strip(),
        "ours": ours,
        "seeds": "-" if "deterministic" in entry else str(len(found.values)),
        "verdict": _word(entry, found),
        "from": list(dict.fromkeys(each["file"] for each in results)),
    }


def _word(entry, found):
    """Whether a number is reproduced."""
    if found.few:
        word = "too few seeds to say"
    elif found.reproduced:
        word = "reproduced"
        judged = found.values if "place" in entry else [found.value]
        if not all(found.agrees(value, 0.0) for value in judged):
            percent = entry.get("unit") == "%"
            tolerance = entry["tolerance"]
            word += f" within {100 * tolerance:.2f} points" if percent else f" within {tolerance:g}"
    else:
        seeds = len(found.values)
        if "place" in entry:
            wrong = seeds - sum(map(found.agrees, found.values))
            word = f"differs in {wrong} of {seeds} seeds"
        else:
            word = f"differs by {_number(entry, found.value - entry['value'], '+')}"
            word += "" if found.error is None else f" ± {_number(entry, found.error)}"
        word += f" because {entry['because']}" if "because" in entry else ""
    mixed = len(found.commits) > 1 and "deterministic" not in entry
    return word + ("; versions mixed" if mixed else "")


def _number(entry, value, sign=""):
    if entry.get("unit") != "%":
        return f"{value:{sign}.4g}"
    if abs(value) < 0.5 and (sign or entry["quantity"].startswith("quantities.")):
        return f"{100 * value:{sign}.2f} points"
    return f"{value:{sign}.2%}"


def accountants():
    """For ranges of dp_accounting's epsilon: how our certified interval lies to it."""
    settings = load("accountants_beside.json")["settings"]
    for low, high in ((0, 0.5), (0.5, 2), (2, 8), (8, 100)):
        found = [row for row in settings if low <= row["pld"] < high]
        shares = [row["upper"] / row["pld"] for row in found]
        yield {
            "range": f"{low:g} to {high:g}",
            "settings": len(found),
            "inside": sum(row["lower"] <= row["pld"] <= row["upper"] for row in found),
            "above": sum(row["pld"] > row["upper"] for row in found),
            "width": max((row["upper"] - row["lower"]) / row["upper"] for row in found),
            "off": [min(shares) - 1, max(shares) - 1],
            "rdp_off": max(row["renyi"] / row["rdp"] - 1 for row in found),
        }


def beside():
    """Our certified epsilon as a share of dp_accounting's."""
    settings = load("accountants_beside.json")["settings"]
    shares = {"above 0.5": [], "below 0.5": []}
    for row in settings:
        shares[f"{'above' if row['pld'] > 0.5 else 'below'} 0.5"].append(row["upper"] / row["pld"])
    ends = {where: [min(found), max(found)] for where, found in shares.items()}
    return {"what": f"of {len(settings)} random settings", **ends}


def tables():
    """Each table that several libraries fitted at epsilon 1."""
    figures = {
        name: figure
        for peer in ("minidp", "dp_ebm", "diffprivlib")
        for name, figure in load(f"tables_{peer}.json")["figures"].items()
    }
    for data in ("Adult", "RAND"):
        found = {
            name: [figure["auroc"]["mean"], figure["log_loss"]["mean"]]
            for name, figure in figures.items()
            if name.endswith(f", {data}")
        }
        yield {"epsilon": 1, **found}


def times():
    """The time of our step as a share of others', over networks, on CPUs and on a GPU."""
    for peer in ("opacus-ghost", "torch"):
        for where, files in (
            ("two CPUs", ("benchmark.json", "benchmark_avx2.json")),
            ("a GPU", ("benchmark_gpu.json",)),
        ):
            ratios = [
                pair["ratio"]
                for file in files
                for contest in load(file)["contests"]
                if contest["threads"] == 2 or "GPU" in contest
                for pair in contest["ratios"]
                if pair["of"] == "auto" and pair["to"] == peer
            ]
            yield {"to": peer, "where": where, "ratio": 1, "ends": [min(ratios), max(ratios)]}


def commands():
    """How each figure was made."""
    for path in sorted(RESULTS.glob("figure_*.json")):
        made = load(path.name)
        if made["experiment"] == "mnist_sweeps":
            yield {
                "figure": path.stem.removeprefix("figure_"),
                "command": made["command"],
                "minutes": made["seconds_of_all_runs"] / 60,
                "seeds": made["seeds"],
                "device": made["device"],
            }


def figure_4():
    """{delta: the best accuracy for each epsilon}."""
    found = {}
    for pair in load("figure_4.json")["pairs"]:
        found.setdefault(f"{pair['delta']:g}", {})[f"{pair['epsilon']:g}"] = pair["test_accuracy"]
    return found


def devices():
    """Our step on two CPU cores and on a GPU, on each workload."""
    times = [
        {
            contest["workload"]: row["step_ms"]
            for contest in load(file)["contests"]
            for row in contest["rows"]
            if row["contender"] == "auto"
        }
        for file in ("benchmark.json", "benchmark_gpu.json")
    ]
    for workload, cpu in times[0].items():
        gpu = times[1][workload]
        yield {"workload": workload, "cpu_ms": cpu, "gpu_ms": gpu, "ratio": gpu / cpu}


def names():
    """Copies among the names that networks made, a mean over seeds at each epsilon."""
    groups = {}
    for run in load("names_lstm.json")["runs"]:
        groups.setdefault(f"{float(run['target_epsilon']):g}", []).append(run["generated"])
    copies = ("different", "in_training_set", "by_chance")
    return {
        epsilon: {key: mean(made[key] for made in found) for key in copies}
        for epsilon, found in groups.items()
    }


if __name__ == "__main__":
    write_json(FILE, derived())
