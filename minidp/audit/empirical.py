"""Lower bounds on epsilon by attack, to put beside the upper bounds of the accountants.

Nothing here is above the truth but with the stated probability; how far below it is says as much about the attack
as about the mechanism. The strongest attacker sees every released gradient and plants canaries: examples whose
gradient is a known direction (Nasr et al. 2021, arXiv:2101.04535). The training itself is handed in as a function.
"""
import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..backend import namespace_of, to_host
from ..errors import ParameterError
from ..grads import Explicit
from ..privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled
from ..validate import count, in_range


class CanaryNetwork:
    """A network with canaries in its data: their gradients are replaced by directions of the auditor's choice.

    An example is canary number c if its first feature is MARK + c. Canary c has the gradient `size` e_c, e_c the
    c-th coordinate of all parameters in order, so that canaries do not disturb each other. `seen` records
    (step, numbers of canaries) of each backward pass; the step is what `clock()` says.
    """

    MARK = 1e6
    draws = True  # as a layer that draws: parts of a lot run one after the other, for backward needs the last forward

    def __init__(self, network, size, clock):
        self.network, self.size, self.clock, self.seen = network, size, clock, []
        self.input_shape, self._ids = network.input_shape, None

    def __getattr__(self, name):
        if name.startswith("__"):  # asked for by copy.copy before there is a network
            raise AttributeError(name)
        return getattr(self.network, name)

    def forward(self, x, *, rng=None):
        """The network's output; canaries enter it as zeros."""
        first = to_host(x)[:, 0]
        self._ids = np.where(first >= self.MARK, first - self.MARK, -1).astype(np.int64)
        ordinary = namespace_of(x).asarray(self._ids < 0)
        return self.network.forward(x * ordinary[:, None].astype(x.dtype), rng=rng)

    def param_grads(self, dy, caches):
        """Every gradient materialised, those of canaries replaced."""
        grads, ids, start, out = self.network.param_grads(dy, caches), self._ids, 0, {}
        rows = np.flatnonzero(ids >= 0)
        self.seen.append((self.clock(), ids[rows]))
        for key in self.network.params:
            g = grads[key].materialise().copy()
            flat = g.reshape((g.shape[0], math.prod(g.shape[1:])))
            flat[rows] = 0
            here = rows[(ids[rows] >= start) & (ids[rows] < start + flat.shape[1])]
            flat[here, ids[here] - start] = self.size
            out[key], start = Explicit(flat.reshape(g.shape)), start + flat.shape[1]
        return out


class Recorder:
    """An optimizer that keeps what it is given, the released gradients, and leaves the parameters as they are."""

    def __init__(self):
        self.released = []

    def update(self, params, grads, step, noise_std=None):
        """Keep the gradients of one step, all parameters in a row."""
        self.released.append(np.concatenate([to_host(grads[key]).ravel().astype(np.float64) for key in params]))


@dataclass(frozen=True)
class Observed:
    """What the attacker has: scores (steps, canaries), <released sum, e_c>, and whether each canary was in the lot."""

    scores: np.ndarray
    present: np.ndarray


def observe(train, network, canaries, size, expected_lot_size):
    """Run train(canary network, recorder) and read what was released and which canaries each step saw."""
    count(1, canaries=canaries)
    if sum(math.prod(array.shape) for array in network.params.values()) < canaries:
        raise ParameterError(f"expected canaries={canaries} to be at most the number of parameters: each has its own")
    recorder = Recorder()
    marked = CanaryNetwork(network, size, lambda: len(recorder.released))
    train(marked, recorder)
    present = np.zeros((len(recorder.released), canaries), dtype=bool)
    for step, ids in marked.seen:
        present[step, ids] = True
    return Observed(np.array(recorder.released)[:, :canaries] * expected_lot_size, present)


def mu_lower(inside, outside, confidence=0.95):
    """A lower bound on mu = shift / standard deviation of Gaussian scores with a canary and without.

    Exact for independent Gaussians of one variance: Student's t for the shift and chi-squared for the variance,
    each at half of the error (union bound). 0 where the shift could be.
    """
    in_range(0, 1, open_low=True, open_high=True, confidence=confidence)
    n, m, half = len(inside), len(outside), (1 - confidence) / 2
    if min(n, m) < 2:
        raise ParameterError(f"expected two or more scores with and without a canary, got {n} and {m}")
    freedom = n + m - 2
    variance = (np.sum((inside - np.mean(inside)) ** 2) + np.sum((outside - np.mean(outside)) ** 2)) / freedom
    shift = np.mean(inside) - np.mean(outside) - stats.t.isf(half, freedom) * math.sqrt(variance * (1 / n + 1 / m))
    if shift <= 0:
        return 0.0
    spread = math.sqrt(variance * freedom / stats.chi2.ppf(half, freedom))
    return float(shift / spread) if spread else math.inf


def composed_epsilon(mu, sampling_probability, steps, delta):
    """The epsilon that `steps` sampled releases of a Gaussian of `mu` have at least: the certified lower end."""
    if mu in (0, math.inf):
        return mu
    ledger = Ledger(entries=[(PoissonSampled(sampling_probability, Gaussian(1 / mu)), steps)])
    return LossDistributionAccountant().epsilon(ledger, delta).lower or 0.0


def clopper_pearson_epsilon(inside, outside, delta, confidence=0.95):
    """A lower bound on epsilon without any assumption on the scores, but that each pair of worlds was run anew.

    A threshold and a direction are chosen on the first half of the scores; the second half gives true and false
    positives with exact binomial bounds: epsilon >= ln((TPR - delta) / FPR), or the same for negatives.
    """
    (first_in, last_in), (first_out, last_out) = (np.array_split(np.asarray(scores), 2) for scores in (inside, outside))
    chosen = []
    for hits, alarms, last in ((first_in, first_out, (last_in, last_out)), (-first_out, -first_in, (-last_out, -last_in))):
        for threshold in np.quantile(alarms, (0.3, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)):
            chosen.append((_bounded_ratio(hits, alarms, threshold, delta, confidence), *last, threshold))
    _, hits, alarms, threshold = max(chosen, key=lambda choice: choice[0])
    return max(0.0, _bounded_ratio(hits, alarms, threshold, delta, confidence))


def _bounded_ratio(inside, outside, threshold, delta, confidence):
    """ln of the least true over the largest false positive rate, each at half of the error (Clopper, Pearson 1934)."""
    half = (1 - confidence) / 2
    hits, alarms = int(np.sum(inside > threshold)), int(np.sum(outside > threshold))
    tpr = stats.beta.ppf(half, hits, len(inside) - hits + 1) if hits else 0.0
    fpr = stats.beta.ppf(1 - half, alarms + 1, len(outside) - alarms) if alarms < len(outside) else 1.0
    return math.log((tpr - delta) / fpr) if tpr > delta and fpr > 0 else -math.inf


def one_run_epsilon(scores, included, delta, confidence=0.95, guesses=None):
    """A lower bound on epsilon from one run in which each canary was included by a fair coin.

    The `guesses` canaries of largest and smallest score (half each; by default a range of numbers is tried, each
    at its share of the error) are guessed in and out. Under (epsilon, delta)-DP the number of right guesses is
    hardly above Binomial(guesses, e^epsilon / (1 + e^epsilon)): Steinke, Nasr, Jagielski 2023 (arXiv:2305.08846),
    Section 5, approximate DP.
    """
    order, included = np.argsort(scores), np.asarray(included, dtype=bool)
    m = len(order)
    tried = [guesses] if guesses else sorted({max(2, 2 * (m // k // 2)) for k in (1, 2, 4, 8, 16)})
    right = {r: int(np.sum(included[order[m - r // 2 :]]) + np.sum(~included[order[: r // 2]])) for r in tried}
    return max(_largest_rejected(m, 2 * (r // 2), right[r], delta, (1 - confidence) / len(tried)) for r in tried)


def one_run_p_value(m, r, v, epsilon, delta):
    """The largest chance, over all (epsilon, delta)-DP mechanisms, of v or more right among r guesses on m canaries."""
    p = 1 / (1 + math.exp(-epsilon))
    pmf = stats.binom.pmf(np.arange(v - 1, -1, -1), r, p)
    share = float(np.max(np.cumsum(pmf) / np.arange(1, v + 1), initial=0.0))
    return min(1.0, float(stats.binom.sf(v - 1, r, p)) + 2 * m * delta * share)


def _largest_rejected(m, r, v, delta, error):
    if one_run_p_value(m, r, v, 0.0, delta) > error:
        return 0.0
    low, high = 0.0, 30.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if one_run_p_value(m, r, v, middle, delta) <= error else (low, middle)
    return low


def roc(members, others):
    """(false positive rates, true positive rates, area) of guessing "member" above a threshold of a score."""
    scores = np.concatenate([members, others])
    order = np.argsort(-scores, kind="stable")
    member = np.repeat([True, False], [len(members), len(others)])[order]
    last = np.append(np.diff(scores[order]) != 0, True)  # equal scores are one threshold
    tpr = np.append(0.0, np.cumsum(member)[last] / len(members))
    fpr = np.append(0.0, np.cumsum(~member)[last] / len(others))
    return fpr, tpr, float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2))


def tpr_at(fpr, tpr, rate):
    """The true positive rate at a false positive rate of at most `rate`."""
    return float(np.max(tpr[fpr <= rate]))


def repetition_p_value(observed):
    """Chance of such a correlation between the noise of neighbouring steps if noise is drawn anew at each."""
    noise = np.where(observed.present, np.nan, observed.scores)
    noise = noise - np.nanmean(noise, axis=1, keepdims=True)
    products = noise[1:] * noise[:-1] / np.nanvar(noise)
    products = products[~np.isnan(products)]
    return float(2 * stats.norm.sf(abs(products.sum()) / math.sqrt(max(len(products), 1))))


def sampler_p_value(observed, sampling_probability):
    """Chance of canaries being seen as regularly, or as irregularly, as this if each lot is a Poisson sample."""
    q, (steps, canaries) = sampling_probability, observed.present.shape
    if q == 1:
        return 1.0 if observed.present.all() else 0.0
    figures = []
    for totals, n in ((observed.present.sum(axis=0), steps), (observed.present.sum(axis=1), canaries)):
        statistic = float(np.sum((totals - n * q) ** 2) / (n * q * (1 - q)))  # chi-squared, for Binomial(n, q) totals
        figures.append(2 * min(stats.chi2.sf(statistic, len(totals)), stats.chi2.cdf(statistic, len(totals))))
    return float(min(1.0, 2 * min(figures)))
