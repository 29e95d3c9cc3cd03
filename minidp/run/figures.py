"""What a run's files say about epsilon, computed again from its ledger.

Each function takes a `questions.Files` and yields (question, answer, whether it passed).
"""

import math

from ..errors import DataError
from ..mechanism import schedule
from ..privacy.catalogue import ACCOUNTANTS, all_bounds, make
from ..privacy.meaning import in_words, meaning_of
from ..util.text import lower_text, upper_text
from .record import ACCOUNTANTS as STATED
from .record import delta_added, group_of, unamplified

CLOSE = 1e-6  # relative: other processors round a little differently


def epsilons(run):
    """Epsilon by every accountant, of one example and of several together."""
    result = run.result
    stated = result["epsilon"]
    yield (
        "Is every accountant's figure there?",
        ", ".join(stated),
        set(STATED) <= set(stated) <= {*ACCOUNTANTS, result["accountant"]},
    )
    names = [name for name in stated if name in ACCOUNTANTS]
    again = all_bounds(run.ledger, names, delta=result["delta"])
    for name, (bound, kind, _) in again.items():
        now, said = bound.to_json(), stated[name]
        yield (
            f"Does epsilon by {name} come out again?",
            f"stated {text(said['upper'])}, now {text(now['upper'])}",
            all(near(said[side], now[side]) for side in ("lower", "estimate", "upper"))
            and said["kind"] == kind
            and said.get("fallback") == now.get("fallback"),
        )
    added = delta_added(run.ledger, again[result["accountant"]][0].upper)
    yield (
        "Does what the arithmetic adds to delta come out again?",
        f"{run.arithmetic}: {upper_text(added)}",
        math.isclose(result["delta_added"], added, rel_tol=CLOSE),
    )
    bounds = [bound for bound, kind, _ in again.values() if kind == "bound"]
    if not bounds:
        raise ValueError("result.json: expected epsilon to hold a bound")
    most = max((bound.lower for bound in bounds if bound.lower is not None), default=0.0)
    least = min((bound.upper for bound in bounds if bound.upper is not None), default=math.inf)
    yield (
        "Is no bound below the certified lower end?",
        f"{lower_text(most, 6)} <= {text(least)}",
        most <= least,
    )
    yield _group(run, again)


def _group(run, bounds):
    stated = run.result["group"] or {"size": 1}
    size = run.config.get("group_size", stated["size"])
    again = group_of(run.ledger, bounds, run.result["delta"], size) or {"size": 1}
    return (
        "Does epsilon for several examples together come out again?",
        f"{size} examples: {text(again['epsilon'])}" if size > 1 else "none was asked for",
        stated.keys() == again.keys() and all(near(stated[key], again[key]) for key in again),
    )


def course(run):
    """Epsilon along the run, without amplification, what it means, and the target."""
    result, settings, ledger = run.result, run.settings, run.ledger
    accountant = make(result["accountant"], ledger.relation)
    path = [(int(row["step"]), cell(row["epsilon"])) for row in run.metrics]
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(path, path[1:]))

    def cost(step):
        return accountant.epsilon(run.plan.ledger(step, run.setup), result["delta"]).upper

    enough = (
        run.plan
        and run.plan.relation is accountant.relation
        and all(epsilon >= cost(step) * (1 - CLOSE) for step, epsilon in path)
    )
    total = accountant.epsilon(ledger, result["delta"]).upper
    yield (
        "Is epsilon in the metrics never below what its step had cost, and in the end the run's?",
        f"{len(path)} rows, {text(path[-1][1])}",
        rising and enough and near(path[-1][1], total),
    )
    steps_per_epoch = settings["dataset_size"] / settings["expected_lot_size"]
    periods = steps_per_epoch / settings["period"]
    plain = unamplified(accountant, ledger, result["delta"], periods)
    stated = result["epsilon_without_amplification"]["upper"]
    yield (
        "Does epsilon without amplification come out again?",
        f"stated {text(stated)}, now {text(plain.upper)}",
        near(stated, plain.upper),
    )
    again, meaning = meaning_of(ledger, result["delta"]), result["meaning"]
    yield (
        "Does what epsilon means come out again?",
        in_words(again) if again else "nothing is guaranteed",
        _same_meaning(meaning, again) if again else not meaning,
    )
    asked = [
        setting(each["target_epsilon"])
        for each in (run.config, result)
        if each.get("target_epsilon") is not None
    ]
    yield (
        "Was the target kept?",
        f"{text(total)} of {min(asked):g}" if asked else "none was set",
        all(total <= target for target in asked),
    )


def _same_meaning(stated, again):
    """Whether the stated rates and mu are those computed again."""
    if not stated:
        return False
    rates = stated["true_positive_rates"]
    return near(float(stated["mu"]), float(again["mu"])) and all(
        near(float(rates[rate]), power) for rate, power in again["true_positive_rates"].items()
    )


def setting(value):
    """A number, or the schedule over steps that a result spells out."""
    if not isinstance(value, dict):
        return math.inf if value == "inf" else value
    fields = dict(value)
    name = fields.pop("schedule")
    if name not in schedule.SCHEDULES:
        raise DataError(f"the schedule {name} is not one of {', '.join(schedule.SCHEDULES)}")
    return schedule.SCHEDULES[name](**fields)


def cell(text):
    """The number in a cell of metrics.csv, None for one that was not measured."""
    return float(text) if text else None


def near(a, b):
    """Whether two settings are equal but for the rounding of other processors."""
    a, b = setting(a), setting(b)
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return a == b or (numbers and math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-12))


def text(upper):
    """An upper end of epsilon, for an answer."""
    return upper_text(upper, 6)
