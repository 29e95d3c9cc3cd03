"""A run in few words: the first part of the privacy statement, for readers without mathematics, and
the lines on the screen.
"""

import math
from typing import NamedTuple

from ..privacy.accountants import called
from ..util.text import upper_text
from .attacker import RATES, large_delta
from .folder import CURVES, STATEMENT
from .program import program

FALSE_ALARMS = RATES[1]
# {relation: (how neighbouring data sets differ, what an attacker asks, what is recognised)}, where
# {0} is "row" or "person"
NEIGHBOURS = {
    "add_remove": ("added or removed", "whether one {0} was used", "a {0} that was used"),
    "zero_out": (
        "replaced by one that contributes nothing",
        "whether one {0} contributed",
        "a {0} that contributed",
    ),
}


class Unit(NamedTuple):
    """Words for what the guarantee protects: a row, or a person with all of their rows."""

    name: str
    whole: str  # the unit with all that belongs to it
    rows: str  # the rows that it holds
    means: str  # a sentence on what the unit is and what it relies on


def unit_of(record):
    """The words for the unit of a run."""
    if record.unit == "row":
        means = "A row is one training example, such as a line of a table or an image."
        return Unit("row", "row of the training data", "row", means)
    column, here = record.config.get("person"), "here"
    if column:
        column, here = f" in the column {column!r}", "in that column"
    return Unit(
        "person",
        "person with all of their rows",
        "person's rows",
        f"All rows with their name{column or ''} count as theirs; the run learned from the first "
        f"{record.rows_per_person} of them alone. This is true only if each person has one name "
        f"{here} and no two share one.",
    )


def in_short(record):
    """Paragraphs on what is guaranteed, for whom, and what is not."""
    name = record.quoted
    if name is None:
        return ["## In short", f"**{_no_guarantee(record)}**"]
    unit = unit_of(record)
    change, question, found = (text.format(unit.name) for text in NEIGHBOURS[record.relation])
    epsilon, delta = record.epsilon[name].upper, record.delta
    size, target = record.settings.dataset_size, target_line(record)
    bullets = [
        f"**What this means.** Suppose that somebody sees all that the run released, knows every "
        f"other {unit.rows}, and wants to know {question}. {_success(record, epsilon, found)}",
        f"**Who is protected.** {_protected(record)}",
        "**What is not covered** has a section of its own below, which belongs to the guarantee.",
        target and f"**Epsilon and the target.** {target}",
        (why := large_delta(delta, size)) and f"**Delta is large.** {delta:g} is {why}.",
    ]
    return [
        "## In short",
        f"**This model is ({upper_text(epsilon)}, {delta:g})-differentially private for one "
        f"{unit.whole}, {change}.** {unit.means} The first number, epsilon, limits how much the "
        f"released files can reveal about a {unit.name}: smaller is stronger. The second, delta, "
        f"is a small allowance beyond that limit: {delta:g} is 1 in {1 / delta:,.0f}.",
        "\n".join(f"- {bullet}" for bullet in bullets if bullet),
    ]


def is_not_private(record):
    """True if something was released without noise, so that epsilon is infinite."""
    return record.quoted is None and math.inf in [row.upper for row in record.epsilon.values()]


def _no_guarantee(record):
    if not is_not_private(record):
        return (
            "No guarantee can be stated: no certified bound on epsilon is known for what this run "
            "released. Treat the model like the training data."
        )
    return (
        "This model is not private: something was released without noise, so epsilon is infinite "
        "and nothing is guaranteed. Treat the model like the training data."
    )


def _success(record, epsilon, found):
    """A sentence on the success rate of an attacker who accepts FALSE_ALARMS: an upper bound,
    rounded up.
    """
    rate = math.exp(min(epsilon, 100.0)) * FALSE_ALARMS * (1 + 1e-12) + record.delta
    if record.meaning:
        rate = min(rate, record.meaning["true_positive_rates"][f"{FALSE_ALARMS:g}"])
    if rate > 0.9995:
        return (
            f"This guarantee does not keep them from it: somebody who accepts {FALSE_ALARMS:.0%} "
            f"false alarms may recognise {found} nearly always."
        )
    return (
        f"Somebody who accepts {FALSE_ALARMS:.0%} false alarms has a chance of at most "
        f"{upper_text(100 * rate, decimals=1)}% to recognise {found}; blind guessing has one of "
        f"{FALSE_ALARMS:.0%}."
    )


def _protected(record):
    group = record.group
    epsilon = None if group is None else upper_text(group.epsilon)
    if record.unit == "person":
        whom = "Every person with all of their rows, whatever they hold."
        if group is None:
            return whom
        return (
            f"{whom} {group.size} persons together are protected less: epsilon for them is "
            f"{epsilon}, at the same delta."
        )
    whom = "Every row by itself, whatever it holds."
    if group is None:
        return (
            f"{whom} For a person with several rows there is no figure here: do not quote this "
            "epsilon for them."
        )
    return (
        f"{whom} A person with {group.size} rows is protected less: epsilon for these rows "
        f"together is {epsilon}, at the same delta."
    )


def shortened(record):
    """Why fewer lots were trained than planned, in one sentence; None if all were trained."""
    steps, planned = record.steps, record.settings.planned_steps
    if record.stopped == "budget":
        return (
            f"stopped {planned - steps} lots early: the budget was used up ({steps} of {planned} "
            "lots); Plan.calibrated finds noise for all of them"
        )
    if steps < planned:
        return (
            f"{planned - steps} lots of a crash stay charged and are not in the model: {steps} of "
            f"{planned} were trained"
        )
    return None


def target_line(record):
    """Why the quoted epsilon is not the target; None if no other accountant kept the target."""
    target, name = record.target_epsilon, record.accountant
    quoted = record.quoted
    if target is None or quoted in (None, name):
        return None
    who = "the paper's accountant (moments)" if name == "moments" else called(name)
    if record.epsilon[name].kind != "bound":
        who += ", which guarantees nothing"
    return (
        f"The target {target:g} was kept by {who}; the tightest certified bound proves "
        f"{upper_text(record.epsilon[quoted].upper)}."
    )


def quote_line(record):
    """A line with the figure to quote."""
    name = record.quoted
    if name is None:
        if is_not_private(record):
            return "not private: something was released without noise, so there is no epsilon"
        return "quote: no epsilon: no certified bound is known"
    return (
        f"quote: epsilon {upper_text(record.epsilon[name].upper)} at delta "
        f"{record.delta:g} ({called(name)}, the tightest certified bound)"
    )


def summary(record, path):
    """Lines on the results of a run, then the figure to quote, the file to read and the next
    command.
    """
    if record.notice:
        yield f"NOTICE: {record.notice}"
    if why := shortened(record):
        yield f"NOTICE: {why}"
    accuracy = "" if record.test_accuracy is None else f"test accuracy {record.test_accuracy:.2%} "
    yield (
        f"{accuracy}after {record.steps} lots ({record.epochs:.4g} epochs) on "
        f"{record.dataset}, {record.device}"
    )
    if record.test_r2 is not None:
        yield f"R2 of the test set: {record.test_r2:.4f}"
        if record.test_r2 < 0:
            yield "NOTICE: the mean of the test set's targets does better than the model"
    if (test := record.test) is not None:
        yield (
            f"log loss of the test set {test.loss:.4f} (a constant answer: log loss "
            f"{test.constant_loss:.4f}, accuracy {test.majority_accuracy:.2%})"
        )
        if test.loss > test.constant_loss:
            yield "NOTICE: its log loss is worse than that of a constant answer"
        if record.test_accuracy < test.majority_accuracy:
            yield "NOTICE: its accuracy is worse than that of a constant answer"
    if record.train_r2 is not None:
        yield f"R2 of the training data (not private): {record.train_r2:.4f}"
    if record.train_accuracy is not None:
        yield f"training accuracy {record.train_accuracy:.2%} (not private)"
    if record.reproducible:
        yield f"seed {record.seed}: reproducible, therefore never to be published"
    threads, kernels = (record.versions[name] for name in ("threads", "openblas_kernels"))
    yield (
        f"{record.seconds_total:.1f} s, {1000 * (record.seconds_per_step or 0):.2f} ms per "
        f"step (threads: {threads}; OpenBLAS kernels: {kernels})"
    )
    if target := target_line(record):
        yield target
    yield quote_line(record)
    yield f"read:  {path / STATEMENT} (picture: {path / CURVES})"
    yield f"next:  {program()} verify {path}"
