"""The rows of tables on the pages, from several files of experiments/results."""

import re
from statistics import mean

from tools.cells import TableError, entries, load, markdown, runs, spread

TRANSFER = ("figure_6", "figure_6-finetuned", "cifar_transfer-sentences")
PUBLISHED = {
    ("mnist_best", "2.93"): "Papernot et al. 98.1%, Tramer and Boneh 98.7% at 3",
    ("cifar_best", "1"): "Tramer and Boneh 60.9%",
    ("cifar_best", "2"): "67.0%",
}


def best(job, *budgets):
    """A row for each budget of an experiment."""
    return [runs(f"eps{name}", job, published=PUBLISHED.get((job, name), "")) for name in budgets]


def learned(*budgets):
    """The rows of mnist_best, each beside mnist_learned at its budget, whose settings are equal."""
    for row in best("mnist_best", *budgets):
        others = runs(row[0]["name"], "mnist_learned")
        if others[0]["settings"] != row[0]["settings"] or len(others) != len(row):
            raise TableError(f"{others[0]['where']}: other settings or seeds than mnist_best has")
        accuracies = [one["test_accuracy"] for one in others]
        yield having(
            row,
            learned=spread(accuracies),
            beside=mean(accuracies),
            before=others[0]["accuracy_before_training"],
        )


def compared():
    """What was measured here, each beside somebody else's figure."""
    found = []
    for job, data, budgets in (
        ("mnist_best", "MNIST", ("2.93",)),
        ("cifar_best", "CIFAR-10 (a JPEG copy)", ("1", "2")),
    ):
        rows = best(job, *budgets)
        accuracies = (f"{mean(one['test_accuracy'] for one in row):.1%}" for row in rows)
        what = f"{data}, no pre-training data, epsilon {' and '.join(budgets)}: accuracy"
        others = "; ".join(row[0]["published"] for row in rows)
        found.append((what, ", ".join(accuracies), f"{others} (tuning not counted)"))
    figures = {
        name: figure
        for peer in ("minidp", "dp_ebm", "diffprivlib")
        for name, figure in load(f"tables_{peer}.json")["figures"].items()
    }
    for data in ("Adult", "RAND"):
        ours, *others = [
            f"{name.removesuffix(f', {data}')} {figure['auroc']['mean']:.3f}, "
            f"{figure['log_loss']['mean']:.2f}"
            for name, figure in figures.items()
            if name.endswith(data) and "GaussianNB" not in name
        ]
        what = f"{data}, a table, epsilon 1: AUROC, log loss"
        found.append((what, ours.removeprefix("minidp "), "; ".join(others)))
    found += [epsilons(), *times(), proved()]
    return [[dict(zip(("what", "ours", "others"), row))] for row in found]


def epsilons():
    """Our certified epsilon as a share of dp_accounting's."""
    settings = load("accountants_beside.json")["settings"]
    above, below = (
        [row["upper"] / row["pld"] for row in settings if (row["pld"] > 0.5) == large]
        for large in (True, False)
    )
    return (
        f"our epsilon / dp_accounting's (PLD), {len(settings)} random settings",
        f"{min(above):.4f} to {max(above):.3f} where epsilon is above 0.5",
        f"below 0.5, where their default grid is coarse, {min(below):.2f} to {max(below):.2f}",
    )


def times():
    """The time of our step as a share of others', on CPUs and on a GPU."""
    for peer, words in (
        ("opacus-ghost", "Opacus's with ghost clipping"),
        ("torch", "PyTorch's without privacy"),
    ):
        for where, files in (
            ("two CPUs", ("benchmark.json", "benchmark_avx2.json")),
            ("a GPU (H200), older code", ("benchmark_gpu.json",)),
        ):
            ratios = [
                pair["ratio"]
                for file in files
                for contest in load(file)["contests"]
                if contest["threads"] == 2 or "GPU" in contest
                for pair in contest["ratios"]
                if pair["of"] == "auto" and pair["to"] == peer
            ]
            what = f"our time of a step / {words}; five networks, {where}"
            yield what, f"{min(ratios):.2f} to {max(ratios):.2f}", "1"


def proved():
    """What the strongest attack shows of what is certified."""
    said = re.findall(
        r"allows ([\d.]+), .* finds out (\d+\.\d+)", load("audit_attacks.json")["in_words"]
    )
    ((certified, reached),) = said
    return f"largest epsilon that our attack proves, of {certified} certified", reached, ""


def accountants():
    """A row for each range of epsilon: dp_accounting's beside our certified interval."""
    rows = load("accountants_beside.json")["settings"]
    for low, high in ((0, 0.5), (0.5, 2), (2, 8), (8, 100)):
        found = [row for row in rows if low <= row["pld"] < high]
        ratios = [row["upper"] / row["pld"] - 1 for row in found]
        inside = [row["lower"] <= row["pld"] <= row["upper"] for row in found]
        yield [
            {
                "range": f"{low:g} to {high:g}",
                "settings": len(found),
                "inside": sum(inside),
                "above": sum(row["pld"] > row["upper"] for row in found),
                "width": max((row["upper"] - row["lower"]) / row["upper"] for row in found),
                "ours": f"{min(ratios):+.2%} to {max(ratios):+.2%}",
                "rdp": max(row["renyi"] / row["rdp"] - 1 for row in found),
            }
        ]


def over_epsilons():
    """Log loss, and AUROC or accuracy, of each table at some epsilons."""
    for key, figures in load("tables.json")["classes"].items():
        cells = {
            name: f"{figures[at]['log_loss']:.3f}, {figures[at]['ranked']:.3f}"
            for name, at in (("half", "0.5"), ("one", "1"), ("four", "4"), ("inf", "inf"))
        }
        yield [{"key": key, "constant": figures["1"]["constant"], **cells}]


def having(row, **words):
    """The row with further values of each object."""
    return [{**one, **words} for one in row]


def scores():
    """The defaults of `minidp.fit` on data they were not tuned on."""
    for row in entries("own_data.json", "data"):
        (one,) = row
        form = "{:.3f} ({:.3f})" if "without_privacy" in one else "{:.2%} ({:.2%})"
        yield having(row, score=form.format(one["mean"], one["spread"]))


def steps(contest):
    """A row for each of our steps on a workload, with its ratios to the floor and the peers as
    "to".
    """
    found = []
    for row in contest["rows"]:
        name = row["contender"]
        to = {pair["to"]: pair["ratio"] for pair in contest["ratios"] if pair["of"] == name}
        if to:
            found.append([{**contest, **row, "to": to, "where": contest["workload"]}])
    return found


def devices():
    """A row for each workload: our step on the CPU beside that on the GPU."""
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
        yield [{"workload": workload, "cpu": cpu, "gpu": gpu, "ratio": gpu / cpu}]


def panels():
    """Every point of Figure 5, and the horizontal lines of its panels."""
    for row in entries("figure_5.json", "panels"):
        (panel,) = row
        for point in panel["points"] + panel["lines"]:
            value = str(point["x"]).removeprefix("projection-")
            value += " (reference)" if point["x"] == panel["reference"] else ""
            yield [{**point, "panel": panel["label"], "value": value, "where": panel["where"]}]


def budgets():
    """Figure 4: the best accuracy for each (epsilon, delta)."""
    pairs = load("figure_4.json")["pairs"]
    best = {(pair["delta"], pair["epsilon"]): pair["test_accuracy"] for pair in pairs}
    epsilons = sorted({epsilon for _, epsilon in best})
    lines = []
    for delta in sorted({delta for delta, _ in best}):
        found = [best[delta, epsilon] for epsilon in epsilons]
        shown = ("nothing fits" if each is None else f"{each:.2%}" for each in found)
        lines.append([f"{delta:g}", *shown])
    return markdown(["delta", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines)


def names():
    """Bits per character of the network and the tables, and copies of names, at each epsilon."""
    made = load("names_lstm.json")["runs"]
    for row in entries("names_lstm.json", "bits"):
        epsilon = float(row[0]["key"])
        found = [run["generated"] for run in made if float(run["target_epsilon"]) == epsilon]
        copies = ("different", "in_training_set", "by_chance")
        yield having(row, **{key: mean(run[key] for run in found) for key in copies})


def transfer():
    """A row for each setting of CIFAR-10 by transfer, beside the paper's accuracy if it has one."""
    papers = {
        f"{way}{epsilon}": paper
        for way in ("eps", "finetuned")
        for epsilon, paper in (("2", "67%"), ("4", "70%"), ("8", "73%"))
    }
    papers |= {"lot4000": "", "lot600": "", "watched-norms": "", "baseline": "80%"}
    return [
        runs(f"cifar_transfer-{name}", *TRANSFER, paper=paper) for name, paper in papers.items()
    ]
