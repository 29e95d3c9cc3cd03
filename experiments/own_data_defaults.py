#!/usr/bin/env python3
"""Which settings a person without tuning should get: tried on drawn data only; the answer is minidp/defaults.py.

    python experiments/own_data_defaults.py --json experiments/results/own_data_defaults.json      # about 15 minutes

No measured data set is read: digits drawn by minidp.data.strokes at 8 x 8 pixels, tables and regressions drawn below.
Lots, steps, clip norms, averages, the bias' part, the share of a noisy mean and the rules for the travel R = eta C T are
compared at equal budgets. A setting's regret on a problem is what the best of all settings has more, on rows not trained on.
"""
import json
import math
import platform
import sys
import time
from dataclasses import dataclass
from functools import lru_cache

from common.config import option, parse

import numpy as np

from minidp.cli import user_errors
from minidp.data.strokes import draw
from minidp.defaults import MEAN_SHARE, mu_of
from minidp.files import atomic_write
from minidp.mechanism import mean_sanitizer, noisy_mean
from minidp.privacy import Gaussian, Ledger, PoissonSampled, noise_multiplier_for
from minidp.privacy.catalogue import make

SPREADS = (0.25, 0.5, 1, 2, 4, 8)  # s = R / (mu N): standard deviation of the noise on a weight, for unit rows
BASE = {"clip_norm": 0.1, "steps": 100, "bias": 1 / 3, "momentum": 0.0, "decay": 0, "ridge": 0.0, "rows": MEAN_SHARE, "q": 1.0}
ALONE = {"clip_norm": (0.03, 0.3, 1.0), "steps": (25, 50, 200, 400), "bias": (0.1, 1.0), "momentum": (0.8,), "decay": (1,),
         "ridge": (1e-3,), "rows": ("given", 0.05, 0.2, 0.3), "q": (0.3, 0.1)}  # one at a time changes; rows: share of mu^2
AVERAGED, AVERAGES = "decay 0.9", ("last", "tail 1/4", "tail 1/2", "decay 0.8", "decay 0.9", "decay 0.95")
EPSILONS = (0.3, 1.0, 3.0, 8.0)
TESTED = 4000
DIGITS = [("digits", size, blend) for size in (400, 1437) for blend in (0, 0.4)] + [("digits", 5000, 0.2)]
TABLES = [(family, *shape) for family in ("blobs", "lognormal", "sparse", "unbalanced")
          for shape in ((300, 8, 5), (455, 30, 2), (2000, 64, 2))]
LARGE = [("digits", 20_000, 0.2), ("lognormal", 20_000, 30, 2)]  # with two budgets, and fewer settings
REGRESSIONS = [("regression", size, which) for size in (2000, 20_000) for which in (0, 1)]


@lru_cache(None)
def drawn_digits(size):
    """(N, 64) grey levels 0..16 of drawn digits at 8 x 8 pixels, (N,) classes, (10, 64) the classes' means."""
    x, y = (np.concatenate(part)[:size] for part in zip(*(draw(0, chunk) for chunk in range(-(-size // 250)))))
    x = np.pad(x.astype("f4"), ((0, 0), (2, 2), (2, 2))).reshape(size, 8, 4, 8, 4).mean((2, 4)).reshape(size, 64)
    return np.floor(x / 255 * 16 + 0.5), y.astype(int), np.stack([x[y == k].mean(0) / 255 * 16 for k in range(10)])


def drawn(problem, seed):
    """x (N, D) with rows of norm at most 1, y (N,), the same to test on, number of classes (1: a regression)."""
    family, size, *shape = problem
    rng = np.random.default_rng([seed, *map(ord, family), size])
    n = size + TESTED
    if family == "digits":
        x, y, means = drawn_digits(26_000)
        chosen = rng.permutation(len(x))[:n]
        x, y, classes = unit((1 - shape[0]) * x[chosen] + shape[0] * means[y[chosen]]), y[chosen], 10
    elif family == "regression":
        x, classes = rng.uniform(-1, 1, (n, 8)), 1
        y = (x @ (1, -0.8, 0.6, 0.4, -0.3, 0.2, 0.1, 0) + np.sin(3 * x[:, 0]) * x[:, 1] / 2) / 3.5 if shape[0] == 0 else 0.3 + (
            np.tanh(x[:, 0] + x[:, 1]) + x[:, 2] ** 2 / 2 + 0.3 * x[:, 3] * x[:, 4] - 0.4 * x[:, 5]) / 4
        x, y = x / math.sqrt(8), np.clip(y + rng.normal(size=n) / 30, -1, 1)
    else:
        x, y, classes = *table(rng, n, family, *shape), shape[1]
    x = x.astype("f4")
    return x[:size], y[:size], x[size:], y[size:], classes


def table(rng, n, family, d, classes):
    """Features in public bounds over sqrt(D) (unit rows where unbalanced), and classes."""
    share = np.array([0.62, 0.38]) if classes == 2 else np.ones(classes) / classes
    if family == "unbalanced":
        share = np.array([0.8] + [0.2 / (classes - 1)] * (classes - 1))
    y = rng.choice(classes, n, p=share)
    mix = rng.normal(size=(max(2, d // 4), d)) / math.sqrt(max(2, d // 4))
    common = 0.9 * rng.normal(size=(n, len(mix))) @ mix + 0.45 * rng.normal(size=(n, d))
    if family == "lognormal":  # positive, of very different sizes, correlated; three numbers behind them tell the class
        hidden = 1.4 * rng.normal(size=(classes, 3))[y] + rng.normal(size=(n, 3))
        x = np.exp(rng.uniform(-6, 6, d) + rng.uniform(0.15, 0.6, d) * (hidden @ rng.normal(size=(3, d)) / 1.7 + common / 2))
        return (2 * x / x.max(0) - 1) / math.sqrt(d), y
    means = rng.normal(size=(classes, d))
    if family == "sparse":  # four features of all say anything
        means[:, 4:] = 0
        x = 1.3 * means[y] + rng.normal(size=(n, d))
    else:
        x = 2 * means[y] / np.linalg.norm(means, axis=1)[y, None] + common + rng.normal(size=d)
    return (unit(x) if family == "unbalanced" else x / (1.1 * abs(x).max(0)) / math.sqrt(d)), y


def unit(x):
    """Rows of norm 1."""
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)


def prepared(data, mu, rows, seed):
    """The data about a noisy mean that takes the share `rows` of mu^2, in unit rows again, and what is left of mu."""
    x, y, tested, wanted, classes = data
    if classes == 1 or rows == "given":
        return data, mu
    sanitizer = mean_sanitizer(1 / (mu * math.sqrt(rows)))
    mean = noisy_mean(x, sanitizer, len(x), np.random.default_rng([seed, 1]))
    return (unit(x - mean).astype("f4"), y, unit(tested - mean).astype("f4"), wanted, classes), mu * math.sqrt(1 - rows)


def train(data, mu, setting, clip_norms, biases, momenta, ridges, travel, seed, noise=None):
    """Scores (G, AVERAGES) of G descents side by side, on the same lots and noise; mu None: no noise, no clipping."""
    x, y, tested, wanted, classes = data
    (size, d), steps, q = x.shape, setting["steps"], setting["q"]
    rng = np.random.default_rng([seed, steps])
    w, b = np.zeros((classes, d, len(travel)), "f4"), np.zeros((classes, len(travel)), "f4")
    moved = [np.zeros_like(w), np.zeros_like(b)]
    averages = {name: [np.zeros_like(w), np.zeros_like(b), 0] for name in AVERAGES}
    rate = travel * (1 - momenta) / (steps * clip_norms)
    if classes == 1:
        rate = np.minimum(rate, 1 / (1 + biases**2))  # as minidp.defaults does, lest it diverge
    sigma = 0 if mu is None else math.sqrt(steps) / mu if noise is None else noise
    for t in range(steps):
        lot = slice(None) if q == 1 else np.flatnonzero(rng.random(size) < q)
        xl, yl = x[lot], y[lot]
        z = np.matmul(xl, w) + (biases * b)[:, None]
        if classes > 1:
            z -= z.max(0)
            np.exp(z, z)
            z /= z.sum(0)
            z[yl, np.arange(len(yl))] -= 1
        else:
            z -= yl.astype("f4")[:, None]
        if mu is not None:
            norms = np.sqrt(np.einsum("kng,kng->ng", z, z) * ((xl * xl).sum(1)[:, None] + biases**2))
            z *= clip_norms / np.maximum(norms, clip_norms)
        normal = rng.normal(size=(classes, d + 1, 1)).astype("f4") * (sigma * clip_norms)
        grads = np.matmul(xl.T, z) + normal[:, :d], biases * z.sum(1) + normal[:, d]
        falling = 2 * (1 - t / steps) if setting["decay"] else 1
        for theta, v, g in zip((w, b), moved, grads):
            v *= momenta
            v += g / (q * size) + ridges * theta
            theta -= (falling * rate * v).astype("f4")
        for name, average in averages.items():
            kind, _, number = name.partition(" ")
            keep = min(float(number), t / (t + 9)) if kind == "decay" else 0
            if kind == "tail" and t >= steps * (1 - (1 / 4 if number == "1/4" else 1 / 2)):
                keep, average[2] = average[2] / (average[2] + 1), average[2] + 1
            average[0] = keep * average[0] + (1 - keep) * w
            average[1] = keep * average[1] + (1 - keep) * b
    out = [np.matmul(tested, aw) + (biases * ab)[:, None] for aw, ab, _ in averages.values()]
    if classes > 1:
        return np.stack([(z.argmax(0) == wanted[:, None]).mean(0) for z in out], -1)
    error = [((np.clip(np.nan_to_num(z[0]), -1, 1) - wanted[:, None]) ** 2).mean(0) for z in out]
    return np.maximum(-1, 1 - np.stack(error, -1) / wanted.var())


@lru_cache(None)
def sampled_noise(q, steps, epsilon, delta):
    """The least noise multiplier for Poisson lots, by the tight accountant."""
    def ledger_of(noise):
        ledger = Ledger()
        ledger.append(PoissonSampled(q, Gaussian(noise)), steps)
        return ledger

    return noise_multiplier_for(make("loss_distribution"), ledger_of, epsilon, delta)


def settings_of(problem, epsilon):
    """BASE and what differs from it in one entry; all of them at epsilon 1 and up to 2,000 rows, since they cost time."""
    regression = problem[0] == "regression"
    base = BASE | ({"rows": "given", "momentum": 0.9} if regression else {})
    found = [base]
    for name, values in (ALONE | ({"rows": (), "momentum": (0.0,)} if regression else {})).items():
        if problem[1] >= 5000 or epsilon != 1:
            values = {"clip_norm": (0.3,), "steps": (50, 200), "rows": ("given", 0.05) * (not regression),
                      "momentum": (0.0,) * regression}.get(name, ()) if epsilon != 3 else ()
        found += [base | {name: value} for value in values]
    return found


def try_all(problem, epsilon, seeds, smoke):
    """{setting: mean scores (SPREADS, AVERAGES)} of one problem at one budget, facts about it."""
    delta = 1e-4 if problem[1] <= 2000 else 1e-5
    whole, size = mu_of(epsilon, delta), problem[1]
    spreads = np.array(SPREADS) / (10 if problem[0] == "regression" else 1)
    groups, totals, best = {}, {}, 0.0
    for setting in settings_of(problem, epsilon)[: 3 if smoke else None]:
        groups.setdefault(tuple(setting[name] for name in ("steps", "decay", "rows", "q")), []).append(setting)
    for seed in range(seeds):
        data = drawn(problem, seed)
        for (steps, _, rows, q), settings in groups.items():
            ready, mu = prepared(data, whole, rows, seed)
            noise = None if q == 1 else sampled_noise(q, steps, epsilon, delta) * whole / mu
            column = {name: np.repeat([each[name] for each in settings], len(spreads)).astype("f4")
                      for name in ("clip_norm", "bias", "momentum", "ridge")}
            scores = train(ready, mu, settings[0], *column.values(), np.tile(spreads * whole * size, len(settings)), seed, noise)
            for setting, part in zip(settings, scores.reshape(len(settings), len(spreads), -1)):
                totals[json.dumps(setting)] = totals.get(json.dumps(setting), 0) + part / seeds
        full, one = BASE | {"steps": 10 if smoke else 400}, np.ones(3, "f4")
        best += train(ready, None, full, 1e6 * one, one, 0.9 * one, 0 * one, 1e6 * 400 * np.array([0.3, 1, 3]), seed) / seeds
    return totals, {"parameters": (data[0].shape[1] + 1) * data[4], "mu": whole, "seeds": seeds,
                    "spreads": spreads.tolist(), "without privacy": float(best.max())}


def rules(problems, scores, best):
    """Regret of each kind of rule for the travel, with its best constant k."""
    kinds = {"k mu N": lambda p: p["mu"] * p["size"], "k epsilon": lambda p: p["epsilon"], "k": lambda p: 1.0,
             "k mu N / sqrt(parameters)": lambda p: p["mu"] * p["size"] / math.sqrt(p["parameters"]),
             "k epsilon N": lambda p: p["epsilon"] * p["size"], "k sqrt(mu N)": lambda p: math.sqrt(p["mu"] * p["size"])}
    found = []
    for rule, unit_of in kinds.items():
        tried = []
        for k in 2.0 ** np.arange(-6, 16, 0.5):
            regret = [top - np.interp(math.log(k * unit_of(p)), np.log(np.array(p["spreads"]) * p["mu"] * p["size"]), curve)
                      for p, curve, top in zip(problems, scores, best)]
            tried.append({"rule": rule, "constant": k, "mean": np.mean(regret), "worst": np.max(regret)})
        found.append(min(tried, key=lambda row: row["mean"]))
    return found


def summary(problems, tried):
    """Regrets of every setting at its best s, of the averages with the first setting, and of the rules for the travel."""
    best, index, table = [max(float(scores.max()) for scores in each.values()) for each in tried], AVERAGES.index(AVERAGED), []
    first = np.array([top - next(iter(each.values())) for each, top in zip(tried, best)])
    for setting in dict.fromkeys(name for each in tried for name in each):
        among = [i for i, each in enumerate(tried) if setting in each]
        regret = np.array([best[i] - tried[i][setting][:, index] for i in among])
        at = int(regret.mean(axis=0).argmin())
        table.append({"setting": json.loads(setting), "problems": len(among), "s": problems[among[0]]["spreads"][at],
                      "mean": regret[:, at].mean(), "worst": regret[:, at].max(),
                      "mean of the first on these": first[among, :, index].mean(axis=0).min()})
    averages = {name: regret.mean(axis=0).min() for name, regret in zip(AVERAGES, np.moveaxis(first, 2, 0))}
    curves = [next(iter(each.values()))[:, index] for each in tried]
    return {"settings": table, "averages": averages, "rules": rules(problems, curves, best)}


@dataclass(frozen=True)
class Config:
    """The flags."""

    json: str | None = option(None, "file to write: every setting tried with its mean scores, and the regrets")
    smoke: bool = option(False, "two small problems, seconds")


def main(argv=None):
    """Try everything, print the regrets, write the JSON."""
    with user_errors():
        return search(parse(Config, argv, prog="own_data_defaults.py", description=__doc__.splitlines()[0]))


def search(args):
    """What `main` does; returns the regrets."""
    started, problems, tried, seeds = time.time(), [], [], 1 if args.smoke else 5
    for problem in [TABLES[1], REGRESSIONS[0]] if args.smoke else [*DIGITS, *TABLES, *REGRESSIONS, *LARGE]:
        for epsilon in EPSILONS[1:2] if args.smoke else EPSILONS[1::2] if problem[1] >= 5000 else EPSILONS:
            scores, facts = try_all(problem, epsilon, seeds, args.smoke)
            problems.append({"problem": " ".join(map(str, problem)), "size": problem[1], "epsilon": epsilon, **facts})
            tried.append(scores)
            print(f"{time.time() - started:5.0f} s  {problems[-1]['problem']}, epsilon {epsilon:g}", file=sys.stderr)
    found = {}
    for name in ("classification", "regression"):
        which = [i for i, p in enumerate(problems) if p["problem"].startswith("regression") == (name == "regression")]
        found[name] = part = summary([problems[i] for i in which], [tried[i] for i in which])
        for row in (*part["settings"], *part["rules"], part["averages"]):
            print(name, json.dumps(row, default=float))
    if args.json:
        record = {"command": f"python experiments/own_data_defaults.py --json {args.json}" + " --smoke" * args.smoke,
                  "machine": f"{platform.machine()}, CPU", "seconds": round(time.time() - started), "averages": AVERAGES,
                  "regrets": found, "problems": [p | {"scores": [{"setting": json.loads(name), "by s and average":
                                                                  np.round(s, 4).tolist()} for name, s in each.items()]}
                                                 for p, each in zip(problems, tried)]}
        with atomic_write(args.json) as out:
            json.dump(record, out, default=float)
    return found


if __name__ == "__main__":
    main()
