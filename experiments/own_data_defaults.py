#!/usr/bin/env python3
"""Which settings a person without tuning should get: tried on drawn data only; the answer is minidp/defaults.py.

    python experiments/own_data_defaults.py --json experiments/results/own_data_defaults.json      # about 15 minutes

No measured data set is read: common/drawn.py has digits at 8 x 8 pixels, tables and regressions. Lots, steps, clip norms,
averages, the bias' part, the share of a noisy mean and the rules for the travel R = eta C T are compared at equal
budgets. A setting's regret on a problem is what the best of all settings has more, on rows not trained on.
"""
import json
import math
import platform
import sys
import time
from dataclasses import dataclass
from functools import lru_cache

from common.config import command_of, option, parse
from common.drawn import DIGITS, LARGE, REGRESSIONS, TABLES, drawn, prepared

import numpy as np
from scipy.special import softmax

from minidp.cli import user_errors
from minidp.defaults import MEAN_SHARE, mu_of
from minidp.files import atomic_write
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group

SPREADS = (0.25, 0.5, 1, 2, 4, 8)  # s = R / (mu N): standard deviation of the noise on a weight, for unit rows
BASE = {"clip_norm": 0.1, "steps": 100, "bias": 1 / 3, "momentum": 0.0, "decay": 0, "ridge": 0.0, "rows": MEAN_SHARE, "q": 1.0}
ALONE = {"clip_norm": (0.03, 0.3, 1.0), "steps": (25, 50, 200, 400), "bias": (0.1, 1.0), "momentum": (0.8,), "decay": (1,),
         "ridge": (1e-3,), "rows": ("given", 0.05, 0.2, 0.3), "q": (0.3, 0.1)}  # one at a time changes; rows: share of mu^2
FEWER = {"clip_norm": (0.3,), "steps": (50, 200), "rows": ("given", 0.05)}  # where trying costs more, or less is asked
TAILS, DECAYS = {"last": 0, "tail 1/4": 1 / 4, "tail 1/2": 1 / 2}, (0.8, 0.9, 0.95)
AVERAGED, AVERAGES, EPSILONS = "decay 0.9", [*TAILS, *(f"decay {decay}" for decay in DECAYS)], (0.3, 1.0, 3.0, 8.0)


def train(data, sigma, setting, travel, seed):
    """Scores (G, AVERAGES) of descents that differ in their travel (G,), on the same lots and noise (sigma)."""
    x, y, tested, wanted, classes = data
    clip_norm, steps, bias, momentum, falls, ridge, _, q = (setting[name] for name in BASE)
    rng = np.random.default_rng([seed, steps])
    x, tested = (np.pad(part, ((0, 0), (0, 1)), constant_values=bias) for part in (x, tested))
    targets = (np.eye(classes)[y].T if classes > 1 else y[None]).astype("f4")[:, :, None]
    lengths = np.linalg.norm(x, axis=1)[:, None]
    w = np.zeros((classes, x.shape[1], len(travel)), "f4")
    moved, averages = np.zeros_like(w), [w] * len(AVERAGES)
    rate = travel * (1 - momentum) / (steps * clip_norm)
    if classes == 1:
        rate = np.minimum(rate, 1 / (1 + bias**2))  # as minidp.defaults does, lest it diverge
    for t in range(steps):
        lot = slice(None) if q == 1 else np.flatnonzero(rng.random(len(x)) < q)
        z = np.matmul(x[lot], w)
        z = (softmax(z, axis=0) if classes > 1 else z) - targets[:, lot]
        z *= clip_norm / np.maximum(np.linalg.norm(z, axis=0) * lengths[lot], clip_norm)
        noise = rng.normal(size=(*w.shape[:2], 1)).astype("f4") * np.float32(sigma * clip_norm)
        moved = momentum * moved + (np.matmul(x[lot].T, z) + noise) / (q * len(x)) + ridge * w
        w = w - ((2 * (1 - t / steps) if falls else 1) * rate * moved).astype("f4")
        in_tail = [max(0, t - math.ceil(steps * (1 - share))) for share in TAILS.values()]
        kept = [n / (n + 1) for n in in_tail] + [min(decay, t / (t + 9)) for decay in DECAYS]
        averages = [keep * average + (1 - keep) * w for keep, average in zip(kept, averages)]
    z = np.stack([np.matmul(tested, average) for average in averages], -1)
    if classes > 1:
        return (z.argmax(0) == wanted[:, None, None]).mean(0)
    error = ((np.clip(np.nan_to_num(z[0]), -1, 1) - wanted[:, None, None]) ** 2).mean(0)
    return np.maximum(-1, 1 - error / wanted.var())


@lru_cache(None)
def noise_for(q, steps, epsilon, delta):
    """The least noise multiplier, by the tight accountant where lots are drawn."""
    if q == 1:
        return math.sqrt(steps) / mu_of(epsilon, delta)
    plan = Plan(PoissonSampler(q), Sanitizer(flat_group([("w", "W")], 1.0, 1.0)), steps, 1.0)
    return plan.calibrated("loss_distribution", epsilon, delta).sanitizer.groups[0].noise_multiplier


def settings_of(problem, epsilon):
    """BASE and what differs from it in one entry; all of them at epsilon 1 and up to 2,000 rows, since they cost time."""
    regression = problem[0] == "regression"
    base = BASE | ({"rows": "given", "momentum": 0.9} if regression else {})
    alone = ALONE if epsilon == 1 and problem[1] < 5000 else FEWER if epsilon != 3 else {}
    alone = alone | ({"rows": (), "momentum": (0.0,)} if alone and regression else {})
    return [base] + [base | {name: value} for name, values in alone.items() for value in values]


def try_all(problem, epsilon, seeds, smoke):
    """{setting: mean scores (SPREADS, AVERAGES)} of one problem at one budget, facts about it."""
    size, delta = problem[1], 1e-4 if problem[1] <= 2000 else 1e-5
    whole, settings = mu_of(epsilon, delta), settings_of(problem, epsilon)[: 3 if smoke else None]
    spreads = np.array(SPREADS) / (10 if problem[0] == "regression" else 1)
    free = BASE | {"steps": 10 if smoke else 400, "clip_norm": 1e6, "bias": 1.0, "momentum": 0.9}
    totals, best = dict.fromkeys(map(json.dumps, settings), 0), 0
    for seed in range(seeds):
        data = drawn(problem, seed)
        for name, setting in zip(totals, settings):
            ready, mu = prepared(data, whole, setting["rows"], seed)
            sigma = noise_for(setting["q"], setting["steps"], epsilon, delta) * whole / mu
            totals[name] += train(ready, sigma, setting, spreads * whole * size, seed) / seeds
        best += train(ready, 0, free, 4e8 * np.array([0.3, 1, 3]), seed) / seeds
    return totals, {"parameters": (data[0].shape[1] + 1) * data[4], "mu": whole, "seeds": seeds,
                    "spreads": spreads.tolist(), "without privacy": float(best.max())}


def rules(problems, scores, best):
    """Regret of each kind of rule for the travel, with its best constant k."""
    kinds = {"k mu N": lambda p: p["mu"] * p["size"], "k epsilon": lambda p: p["epsilon"], "k": lambda p: 1.0,
             "k mu N / sqrt(parameters)": lambda p: p["mu"] * p["size"] / math.sqrt(p["parameters"]),
             "k epsilon N": lambda p: p["epsilon"] * p["size"], "k sqrt(mu N)": lambda p: math.sqrt(p["mu"] * p["size"])}

    def row(rule, k):
        regret = [top - np.interp(math.log(k * kinds[rule](p)), np.log(np.array(p["spreads"]) * p["mu"] * p["size"]), curve)
                  for p, curve, top in zip(problems, scores, best)]
        return {"rule": rule, "constant": k, "mean": np.mean(regret), "worst": np.max(regret)}

    return [min((row(rule, k) for k in 2.0 ** np.arange(-6, 16, 0.5)), key=lambda r: r["mean"]) for rule in kinds]


def summary(problems, tried):
    """Regrets of every setting at its best s, of the averages with the first setting, and of the rules for the travel."""
    best, index, table = [max(map(np.max, each.values())) for each in tried], AVERAGES.index(AVERAGED), []
    first = np.array([top - next(iter(each.values())) for each, top in zip(tried, best)])
    for setting in dict.fromkeys(name for each in tried for name in each):
        among = [i for i, each in enumerate(tried) if setting in each]
        regret = np.array([best[i] - tried[i][setting][:, index] for i in among])
        at = int(regret.mean(axis=0).argmin())
        table.append({"setting": json.loads(setting), "problems": len(among), "s": problems[among[0]]["spreads"][at],
                      "mean": regret[:, at].mean(), "worst": regret[:, at].max(),
                      "mean of the first on these": first[among, :, index].mean(axis=0).min()})
    return {"settings": table, "averages": dict(zip(AVERAGES, first.mean(axis=0).min(axis=0))),
            "rules": rules(problems, [next(iter(each.values()))[:, index] for each in tried], best)}


@dataclass(frozen=True)
class Config:
    """The flags."""

    json: str | None = option(None, "file to write: every setting tried with its mean scores, and the regrets")
    smoke: bool = option(False, "two small problems, seconds")


def search(args):
    """Try everything, print the regrets, write the JSON."""
    started, problems, tried, found = time.time(), [], [], {}
    for problem in [TABLES[1], REGRESSIONS[0]] if args.smoke else [*DIGITS, *TABLES, *REGRESSIONS, *LARGE]:
        for epsilon in EPSILONS[1:2] if args.smoke else EPSILONS[1::2] if problem[1] >= 5000 else EPSILONS:
            scores, facts = try_all(problem, epsilon, 1 if args.smoke else 5, args.smoke)
            problems.append({"problem": " ".join(map(str, problem)), "size": problem[1], "epsilon": epsilon, **facts})
            tried.append(scores)
            print(f"{time.time() - started:5.0f} s  {problems[-1]['problem']}, epsilon {epsilon:g}", file=sys.stderr)
    for name in ("classification", "regression"):
        which = [i for i, p in enumerate(problems) if p["problem"].startswith("regression") == (name == "regression")]
        found[name] = part = summary([problems[i] for i in which], [tried[i] for i in which])
        for row in (*part["settings"], *part["rules"], part["averages"]):
            print(name, json.dumps(row, default=float))
    if args.json:
        for problem, scores in zip(problems, tried):
            problem["scores"] = [{"setting": json.loads(name), "by s and average": np.round(each, 4).tolist()}
                                 for name, each in scores.items()]
        with atomic_write(args.json) as out:
            json.dump({"command": command_of("own_data_defaults.py", args), "machine": f"{platform.machine()}, CPU",
                       "seconds": round(time.time() - started), "averages": AVERAGES, "regrets": found,
                       "problems": problems}, out, default=float)


if __name__ == "__main__":
    with user_errors():
        search(parse(Config, prog="own_data_defaults.py", description=__doc__.splitlines()[0]))
