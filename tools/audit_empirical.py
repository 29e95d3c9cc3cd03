"""Attack private training: lower bounds on epsilon beside the certified upper bounds, and broken training caught.

    python -m tools.audit_empirical                       # about a minute
    python -m tools.audit_empirical --html attack.html    # with a picture

Trains a small network with the library's own Trainer, Sanitizer and Sampler. Exit status 1 if a lower bound lies
above the certified epsilon of right training, or if a broken implementation is not noticed; 2 for user errors.
A lower bound proves nothing safe: it shows how much of the certified epsilon an attack reaches.
"""
import io
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from minidp import nn, plotting
from minidp.audit import empirical
from minidp.audit.html import page, picture, table, verdict
from minidp.cli import Parser, user_errors
from minidp.errors import ParameterError
from minidp.files import atomic_write, write_json
from minidp.numbers import lower_text, upper_text
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, ShuffleSampler, flat_group
from minidp.privacy import Gaussian, Ledger, LossDistributionAccountant, PoissonSampled, noise_multiplier_for
from minidp.streams import Streams
from minidp.train import SGD, Trainer

CLIP, WIDTHS, ORDINARY = 1.0, (60, 40, 10), 10
DELTA, CONFIDENCE = 1e-5, 0.95
SETTINGS = ((1.0, 10, 0.75), (0.01, 1000, 0.5))  # q, T, share of the certified epsilon that the attack has to reach
upper, lower = partial(upper_text, decimals=3), partial(lower_text, decimals=3)
ALARM = 1e-6  # p-value below which the checks of noise and sampler complain


def make_network(rng):
    """A network of 2800 parameters."""
    return nn.Sequential([nn.Dense(*WIDTHS[:2], rng=rng, bias=False), nn.ReLU(),
                          nn.Dense(*WIDTHS[1:], rng=rng, bias=False)], WIDTHS[:1])


def fresh(streams):
    """Streams that nothing was drawn from; of a seeded run, with a seed that it draws."""
    return Streams(int(streams.init.integers(0, 2**53)) if streams.reproducible else None)


def observe(sigma, q, steps, streams, canaries, numbers=None, sanitizer=Sanitizer, sampler=PoissonSampler,
            batch_size=10**6):
    """What the attacker sees of `steps` private steps; canaries have ten times the norm that clipping allows.

    The data are ordinary examples, then one example for each canary number.
    """
    streams = fresh(streams)
    rng, numbers = streams.init, np.arange(canaries) if numbers is None else numbers
    network = make_network(rng)
    x = rng.standard_normal((ORDINARY + len(numbers), WIDTHS[0])).astype(np.float32)
    x[:, 0] = np.minimum(x[:, 0], 10)
    x[ORDINARY:, 0] = empirical.CanaryNetwork.MARK + numbers
    y = rng.integers(0, WIDTHS[-1], len(x))
    plan = Plan(sampler(q), sanitizer(flat_group(list(network.params), CLIP, sigma)), steps, max(1.0, q * len(x)))

    def train(marked, recorder):
        Trainer(marked, nn.SoftmaxCrossEntropy(), recorder, plan, batch_size=batch_size).run(x, y, streams)

    return empirical.observe(train, network, canaries, 10 * CLIP, plan.expected_lot_size)


def ledger_of(sigma, q, steps):
    """The ledger of a run."""
    return Ledger(entries=[(PoissonSampled(q, Gaussian(sigma)), steps)])


class Attack(NamedTuple):
    """Lower bounds on one setting's epsilon, each at 95% confidence, beside the certified epsilon.

    `beyond_doubt` is the white-box bound at a confidence of 1 - ALARM: a 95% bound close to the certified epsilon
    may by chance lie above it, and that must not accuse right training.
    """

    sampling_probability: float
    steps: int
    noise_multiplier: float
    certified: float
    gaussian: float
    clopper_pearson: float
    one_run: float
    beyond_doubt: float
    needed: float

    @property
    def share(self):
        return self.gaussian / self.certified

    @property
    def passed(self):
        highest = max(self.beyond_doubt, self.clopper_pearson, self.one_run)
        return highest <= self.certified and self.share >= self.needed


def attack(target, q, steps, needed, streams, canaries, releases):
    """Calibrate the noise for (target, DELTA), attack single steps and whole runs."""
    accountant = LossDistributionAccountant()
    sigma = noise_multiplier_for(accountant, lambda s: ledger_of(s, q, steps), target, DELTA)
    certified = accountant.epsilon(ledger_of(sigma, q, steps), DELTA).upper
    # Half of the canaries are in each lot here, so that both worlds are seen; q enters through the composition.
    single = observe(sigma, 0.5, releases, streams, canaries)
    inside, outside = single.scores[single.present], single.scores[~single.present]
    gaussian, beyond_doubt = (empirical.composed_epsilon(empirical.mu_lower(inside, outside, level), q, steps, DELTA)
                              for level in (CONFIDENCE, 1 - ALARM))
    included = streams.init.random(canaries) < 0.5
    whole = observe(sigma, q, steps, streams, canaries, np.flatnonzero(included))
    scores = whole.scores.sum(axis=0)
    return Attack(q, steps, sigma, certified, gaussian,
                  empirical.clopper_pearson_epsilon(scores[included], scores[~included], DELTA, CONFIDENCE),
                  empirical.one_run_epsilon(scores, included, DELTA, CONFIDENCE), beyond_doubt, needed)


def with_noise(sanitizer, share):
    """A sanitizer that adds a share of the noise that this one charges."""
    return Sanitizer(tuple(replace(group, noise_multiplier=share * group.noise_multiplier) for group in sanitizer.groups))


class QuietSanitizer(Sanitizer):
    """Broken: half of the noise that it charges."""

    def release(self, *arguments):
        return with_noise(self, 1 / 2).release(*arguments)


class UnclippedSanitizer(Sanitizer):
    """Broken: norms are not looked at."""

    def _sq_norms(self, group, grads):
        return 0 * super()._sq_norms(group, grads)


class NoisyBatches(Sanitizer):
    """Broken: noise in each batch, a quarter of it, as if four batches made up for it; none for the lot."""

    def add_clipped(self, *arguments, **named):
        return with_noise(self, 1 / 4).release(super().add_clipped(*arguments, **named), Streams().noise("batch"))

    def release(self, *arguments):
        return with_noise(self, 0).release(*arguments)


class SameSeed(Sanitizer):
    """Broken: the same numbers at every step."""

    def release(self, raw_sum, draws, *others):
        return super().release(raw_sum, Streams(0).noise(0), *others)


class ClaimedPoisson(PoissonSampler):
    """Broken: shuffled lots under the Poisson sampler's name and event."""

    def lots(self, num_examples, *arguments):
        size = round(self.sampling_probability * num_examples)
        return ShuffleSampler(num_examples, size).lots(num_examples, *arguments)


BROKEN = {
    "nothing": {},
    "noise half as large": {"sanitizer": QuietSanitizer},
    "clipping left out": {"sanitizer": UnclippedSanitizer},
    "noise once a batch": {"sanitizer": NoisyBatches, "batch_size": 300},
    "one seed at every step": {"sanitizer": SameSeed},
    "Poisson claimed, shuffling done": {"sampler": ClaimedPoisson},
}


def caught(streams, canaries, releases, sigma=2.0, q=0.5):
    """[(what is broken, noticed by the attack, by the noise check, by the sampler check)]."""
    rows = []
    certified = LossDistributionAccountant().epsilon(ledger_of(sigma, q, 10), DELTA).upper
    for name, options in BROKEN.items():
        seen = observe(sigma, q, releases, streams, canaries, **options)
        mu = empirical.mu_lower(seen.scores[seen.present], seen.scores[~seen.present], 1 - ALARM)
        rows.append((name, mu > 1 / sigma and empirical.composed_epsilon(mu, q, 10, DELTA) > certified,
                     empirical.repetition_p_value(seen) < ALARM, empirical.sampler_p_value(seen, q) < ALARM))
    return rows


def black_box(streams, sigma):
    """(false, true positive rates, area) of telling members by their loss, after 150 steps on 200 examples."""
    streams = fresh(streams)
    rng = streams.init
    network = make_network(rng)
    x, y = rng.standard_normal((400, WIDTHS[0])).astype(np.float32), rng.integers(0, WIDTHS[-1], 400)
    groups = flat_group(list(network.params), CLIP if sigma else np.inf, sigma)
    plan, loss = Plan(PoissonSampler(0.5), Sanitizer(groups), 150, 100), nn.SoftmaxCrossEntropy()
    Trainer(network, loss, SGD(0.5), plan).run(x[:200], y[:200], streams)
    losses = loss(network.forward(x)[0], y)[0]
    return empirical.roc(-losses[:200], -losses[200:])


def draw(attacks, curves):
    """A PNG: lower bounds beside the certified epsilon, and the ROC of the black-box attack."""
    figure, (left, right) = plotting.new_figure(1, 2, panel=(5.5, 4.2), width_ratios=(1.7, 1),
                                                title="Attacks on private training: lower bounds, and who is told apart")
    places = np.arange(len(attacks))
    for i, (name, pick, colour) in enumerate((
            ("certified (upper)", "certified", "BLACK"), ("white-box, Gaussian (lower)", "gaussian", "BLUE"),
            ("Clopper-Pearson (lower)", "clopper_pearson", "ORANGE"), ("one run (lower)", "one_run", "GREEN"))):
        left.bar(places + 0.2 * (i - 1.5), [getattr(found, pick) for found in attacks], 0.2, label=name,
                 color=getattr(plotting, colour))
    left.set_xticks(places, [f"q {found.sampling_probability:g}\nT {found.steps}\n$\\sigma$ {found.noise_multiplier:.2f}"
                             for found in attacks])
    left.set_ylabel(f"epsilon at delta {DELTA:g}, 95% confidence")
    for i, (name, (fpr, tpr, area)) in enumerate(curves.items()):
        right.plot(fpr, tpr, label=f"{name}: area {area:.2f}", **plotting.line(i, len(fpr)))
    right.plot([0, 1], [0, 1], ":", color="#888888", label="guessing")
    right.set(xlabel="false positive rate", ylabel="true positive rate", title="black box: members by their loss")
    right.legend(loc="lower right", fontsize=plotting.SMALL)
    plotting.legend(figure, left.get_legend_handles_labels()[0], columns=4)
    out = io.BytesIO()
    plotting.save(figure, out)
    return out.getvalue()


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.audit_empirical", description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=(1.0, 2.0, 4.0), help="certified ones to attack")
    parser.add_argument("--canaries", type=int, default=2000, help="at most 2800, one a parameter")
    parser.add_argument("--releases", type=int, default=300, help="steps observed for the white-box attack")
    parser.add_argument("--seed", type=int, help="repeat a run")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument("--html", metavar="FILE", help="write one page with a picture")
    options = parser.parse_args(argv)
    with user_errors():
        if options.releases < 2:
            raise ParameterError(f"expected releases={options.releases} to be at least 2")
        streams, started = Streams(options.seed), time.perf_counter()
        attacks = []
        for (q, steps, needed), target in product(SETTINGS, options.epsilon):
            found = attack(target, q, steps, needed, streams, options.canaries, options.releases)
            attacks.append(found)
            print(f"{'ok  ' if found.passed else 'FAIL'} q {q:g}, {steps} steps, sigma {found.noise_multiplier:.3f}: "
                  f"certified epsilon {upper(found.certified)}, white-box {lower(found.gaussian)} ({found.share:.0%}, "
                  f"at least {needed:.0%}), Clopper-Pearson {lower(found.clopper_pearson)}, one run "
                  f"{lower(found.one_run)}", flush=True)
        rows = caught(streams, options.canaries, options.releases)
        noticed = [not any(row[1:]) if row[0] == "nothing" else any(row[1:]) for row in rows]
        for row, right in zip(rows, noticed):
            by = [name for name, flag in zip(("attack", "noise check", "sampler check"), row[1:]) if flag]
            print(f"{'ok  ' if right else 'FAIL'} broken: {row[0]}; noticed by {', '.join(by) or 'nobody'}")
        curves = {"without privacy": black_box(streams, 0.0), "sigma 4": black_box(streams, 4.0)}
        for name, (fpr, tpr, area) in curves.items():
            print(f"black box, {name}: area {area:.3f}, TPR {empirical.tpr_at(fpr, tpr, 0.01):.3f} at FPR 0.01, "
                  f"{empirical.tpr_at(fpr, tpr, 0.1):.3f} at 0.1")
        _write(options, attacks, rows, noticed, curves)
        failed = sum(not found.passed for found in attacks) + sum(not right for right in noticed)
        print(f"{len(attacks)} attacks, {len(rows) - 1} broken implementations, {failed} failed, "
              f"{time.perf_counter() - started:.0f} s")
        return 1 if failed else 0


def _write(options, attacks, rows, noticed, curves):
    if options.json:
        found = [dict(zip(("broken", "attack", "noise_check", "sampler_check"), row)) for row in rows]
        black = {name: {"area": area, "tpr_at_fpr_0.01": empirical.tpr_at(fpr, tpr, 0.01)}
                 for name, (fpr, tpr, area) in curves.items()}
        write_json(options.json, {"delta": DELTA, "confidence": CONFIDENCE, "attacks": [f._asdict() for f in attacks],
                                  "broken": found, "black_box": black})
    if options.html:
        figures = [(verdict(f.passed), f"{f.sampling_probability:g}", f.steps, f"{f.noise_multiplier:.3f}",
                    upper(f.certified), lower(f.gaussian), f"{f.share:.0%}", lower(f.clopper_pearson), lower(f.one_run))
                   for f in attacks]
        seen = [(verdict(right), what, *("noticed" if flag else "" for flag in by))
                for (what, *by), right in zip(rows, noticed)]
        body = (picture(draw(attacks, curves), "lower bounds beside certified epsilon, and ROC curves")
                + "<h2>Lower bounds at 95% confidence beside the certified epsilon</h2>"
                + table(("", "q", "steps", "sigma", "certified", "white-box", "share", "Clopper-Pearson", "one run"),
                        figures)
                + "<h2>Broken implementations, and what notices them</h2>"
                + table(("", "broken", "attack", "noise check", "sampler check"), seen))
        with atomic_write(options.html) as file:
            file.write(page("Attacking private training", body))


if __name__ == "__main__":
    sys.exit(main())
