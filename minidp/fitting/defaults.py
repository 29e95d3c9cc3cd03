"""A rule that computes all settings from public numbers. It was tuned on synthetic data."""

import math
from dataclasses import dataclass, replace
from typing import Any

from ..certified.gaussian import gaussian_delta

ROW_NORM = 3.0  # G: at 1 the bias takes half of each clipped gradient, at 3 a tenth
# of logits that noise alone gives, and what it is at most for p weights, times sqrt(p)
LOGIT_NOISE, LOGIT_NOISE_OF_MANY = 0.45, 9.0
MEAN_SHARE = 0.1  # of mu^2, for a noisy mean that is subtracted from the rows of a classification
# rows: with more, noise is no longer the limit, and steps take longer. With more rows than the
# first, lots of a table are the second
LARGEST_LOT, LOT_OF_MANY = 2**16, 2**13
STEPS = 100
# of a regression: noise of a weight times G, C / G where noise limits it, and steps at most
NUMBER_NOISE, NUMBER_CLIP, MOST_STEPS = 0.12, 0.06, 400
AVERAGE = 0.9
MOMENTUM = 0.9  # of regressions and tables, because their rates are bounded
FARTHEST = 12_000.0  # most travel for rows of norm 1; more does not help
FARTHEST_HIDDEN = 1000.0  # the same with hidden layers, which do worse far from the initial weights


WITHOUT_PRIVACY = 8.0  # epsilon whose steps a fit without privacy takes
# rates of such a fit: without and with hidden layers, and of the caller's network
UNCLIPPED_RATE, UNCLIPPED_HIDDEN_RATE, UNCLIPPED_OWN_RATE = 1.0, 0.4, 0.1


@dataclass(frozen=True)
class Choice:
    """Settings of a run; `choose` makes them.

    lot_size       L, expected examples per lot; at most the dataset's public size
    steps          T
    clip_norm      C, of all parameters together
    learning_rate  eta, constant
    average        decay of a moving average of the weights (`train.Averaged`), which is released
                   instead
    momentum       m of `train.Momentum`; 0 is plain descent
    """

    lot_size: int
    steps: int
    clip_norm: float
    learning_rate: float
    average: float
    momentum: float = 0.0


def choose(
    dataset_size: int,
    epsilon: float,
    delta: float,
    parameters: int,
    *,
    regression: bool = False,
    hidden: bool = False,
    table: bool = False,
    row_norm: float = 1.0,
) -> Choice:
    """Settings that need no tuning, from public numbers alone.

    dataset_size, epsilon, delta, parameters   N, the budget, and the number of trained numbers
    regression True if targets are numbers in [-1, 1], with squared error; otherwise classes, with
               softmax cross-entropy
    hidden     True if there are layers between inputs and outputs
    table      True if the rows of a classification come from a table
    row_norm   G, about the norm of the rows that reach the first layer

    The rule. With full lots, T steps at rate eta leave noise of standard deviation
    s = eta C T / (mu N) on every weight; mu is that of the Gaussian mechanism that is
    (epsilon, delta)-DP. The rule fixes s and sets the rate eta = s mu N / (T C), with

        table of classes      s = min(.45, 9 / sqrt(parameters)) / G    C = G    momentum 0.9
        images of classes     s = 2 / G                    C = G / 10
        regression            s = .12 / G                  C = .06 G        momentum 0.9
        with hidden layers    s = 14 / sqrt(parameters)    C = 1 / 2        a tenth of that s in a
                              regression; of a table of classes s = 2.5 / sqrt(parameters), C = G

    and a travel eta C T of at most 12,000 / G, or 1,000 with hidden layers. T = 100, and of a
    regression up to 400 where its rate is at its largest and the noise allows more travel, and then
    a larger C, up to G. Lots are all rows, up to 65,536 of them; of a table without hidden layers
    that has more rows, 8,192 (on two synthetic tables of 100,000 rows the log loss rose by .0006
    and .0003). Momentum m multiplies the travel by 1 / (1 - m), so the rate is lower by that
    factor; a regression's is at most 1 / (1 + G^2), a table's 3 / (1 + G^2). So at a given N the
    weights travel in proportion to mu, as in Panda et
    al. 2022 (arXiv:2212.04486). Of a table few gradients are longer than C = G, so that the fit
    minimises its loss and its probabilities mean something; that this helps, and a rate near 1, was
    first seen on Adult, RAND and other tables, and the values are those that did best on the
    synthetic tables of `tools.table_rule` (results/table_rule.json). Of images nearly all gradients
    are clipped, as in De et al. 2022 (arXiv:2204.13650); these constants are the best of those
    tried on synthetic digits (results/own_data_defaults.json has all of them with their scores).
    Those of regressions are the best of `tools.table_rule --search second`
    (results/table_rule_second.json). The constants of hidden layers were found by hand on synthetic
    digits and regressions.

    The rule was tuned for these rows: in a classification, clipped to norm 1, less a noisy mean
    (`mechanism.noisy_mean`, MEAN_SHARE of mu^2), divided by their own norm, or those of a table by
    the noisy root of its mean square, and multiplied by ROW_NORM; in a regression, rows as they are
    scaled. Tables with a schema have the same rule
    without a hidden layer: one of 32 units was no better on synthetic tables and breast cancer at
    epsilon 1.

    >>> choose(1000, epsilon=1.0, delta=1e-5, parameters=650, row_norm=ROW_NORM).steps
    100
    """
    clip_norm, farthest = row_norm / 10, FARTHEST / row_norm
    spread, steps = 2 / row_norm, STEPS
    if table:
        clip_norm = row_norm
        spread = min(LOGIT_NOISE, LOGIT_NOISE_OF_MANY / math.sqrt(parameters)) / row_norm
    if hidden:
        clip_norm, farthest = row_norm if table else 0.5, FARTHEST_HIDDEN
        spread = (1.4 if regression else 2.5 if table else 14) / math.sqrt(parameters)
    budget = mu_of(epsilon, delta) * dataset_size
    if regression and not hidden:
        # travel that the noise allows, in steps of the largest rate: first more steps, then a
        # larger clip norm
        spread, clip_norm, farthest = NUMBER_NOISE / row_norm, NUMBER_CLIP * row_norm, math.inf
        wanted = (1 - MOMENTUM) * spread * budget * (1 + row_norm**2)
        steps = int(min(max(wanted / clip_norm, STEPS), MOST_STEPS))
        clip_norm = min(max(clip_norm, wanted / steps), row_norm)
    rate = min(spread * budget, farthest) / (steps * clip_norm)
    momentum = 0.0
    if regression or table and not hidden:
        # a squared loss has a curvature of up to |x|^2 + 1 everywhere, softmax of half as much
        momentum, most = MOMENTUM, 1 if regression else 3
        rate = min((1 - momentum) * rate, most / (1 + row_norm**2))
    lot = min(dataset_size, LARGEST_LOT)
    if momentum and dataset_size > LARGEST_LOT:
        lot = LOT_OF_MANY
    return Choice(lot, steps, clip_norm, rate, AVERAGE, momentum)


def choose_for(
    given: dict[str, Any],
    dataset_size: int,
    epsilon: float,
    delta: float,
    parameters: int,
    *,
    ours: bool,
    **kinds: Any,
) -> Choice:
    """The settings of `choose`, except those that the caller gave.

    Without privacy (epsilon = inf) gradients are not clipped, steps are those of epsilon 8, and
    rates suit whole gradients (found by hand on synthetic tables and breast cancer).

    given  {name: value}
    kinds  as those of `choose`
    ours   True if `fit` made the network, so that rows have norm ROW_NORM
    """
    private = epsilon < math.inf
    choice = choose(
        dataset_size,
        epsilon if private else WITHOUT_PRIVACY,
        delta,
        parameters,
        **kinds,
    )
    choice = replace(choice, **given)
    if private:
        return choice
    rate = choice.learning_rate
    bounded = kinds["regression"] or kinds["table"] and not kinds["hidden"]
    if "learning_rate" not in given and not bounded:
        rate = UNCLIPPED_HIDDEN_RATE if kinds["hidden"] else UNCLIPPED_RATE
        rate = rate if ours else UNCLIPPED_OWN_RATE
    return replace(choice, clip_norm=math.inf, learning_rate=rate, momentum=MOMENTUM)


def mu_of(epsilon: float, delta: float) -> float:
    """mu of the Gaussian mechanism that is exactly (epsilon, delta)-DP."""
    if epsilon == math.inf:
        return math.inf
    low, high = math.log(1e-9), math.log(1e6)
    for _ in range(60):
        middle = (low + high) / 2
        if gaussian_delta(epsilon, math.exp(middle)) > delta:
            high = middle
        else:
            low = middle
    return math.exp(low)
