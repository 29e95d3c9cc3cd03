"""epsilon, delta, calibrate: figures."""

import math
import sys

from ..errors import BudgetExceededError, ParameterError
from ..mechanism import PoissonSampler
from ..privacy.budget import max_steps
from ..privacy.calibrate import noise_multiplier_for, sampling_probability_for
from ..privacy.catalogue import ACCOUNTANTS, all_bounds, make, row_to_quote
from ..privacy.group_privacy import GroupAccountant
from ..privacy.meaning import in_words, meaning_of
from ..util.text import lower_text, upper_text
from ..util.validate import count as check_count
from .flags import number
from .output import refuse_unbounded, rows_of, show, table
from .setting import (
    LENGTH,
    SAMPLING,
    add,
    add_run,
    as_related,
    described,
    ledger_of,
    names_of,
    release_event,
    sampler_of,
    steps_of,
)


def epsilon(parser):
    add_run(parser, *LENGTH, "--ledger", "--delta")
    parser.epilog = (
        "examples:\n  %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 "
        "--delta 1e-5\n  %(prog)s --noise-multiplier 1 --dataset-size 6e4 --lot-size 256 --epochs "
        "9 --delta 1e-5\n  %(prog)s --ledger runs/mine/ledger.json --delta 1e-5"
    )
    return lambda args: _compare(args, {"delta": args.delta})


def delta(parser):
    add_run(parser, *LENGTH, "--ledger")
    parser.add_argument(
        "--epsilon", type=number, required=True, help="epsilon of (epsilon, delta)-DP, at least 0"
    )
    parser.epilog = (
        "example: %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 --epsilon 1"
    )
    return lambda args: _compare(args, {"epsilon": args.epsilon})


def _compare(args, given):
    """Print epsilon at the given delta, or delta at the given epsilon; 2 where no accountant has a
    finite bound.
    """
    ledger, title = described(args)
    worthless = 1.0 if args.command == "delta" else math.inf
    found = all_bounds(ledger, names_of(args), **given, group_size=args.group_size)
    if not args.json:
        refuse_unbounded(found)
    rows = rows_of(found)
    quoted = row_to_quote(rows, worthless)
    record = {**given, "quote": quoted, "accountants": rows}
    at = ", ".join(f"{name} {value:g}" for name, value in given.items())
    lines = [f"{title}, {at}", *table(found, args.command, worthless)]
    if (
        args.command == "epsilon"
        and args.group_size == 1
        and (said := meaning_of(ledger, args.delta))
    ):
        record["meaning"] = said
        lines.append(in_words(said))
    show(args, {**record, "ledger": ledger.to_json()}, lines)
    refuse_unbounded(found)
    if min(bound.upper for bound, _, _ in found.values() if bound.upper is not None) >= worthless:
        print(
            "error: nothing is guaranteed: something is released with too little noise, or none",
            file=sys.stderr,
        )
        return 2


def calibrate(parser):
    add(
        parser,
        "--target-epsilon",
        "--delta",
        "--noise-multiplier",
        *SAMPLING,
        *LENGTH,
        "--group-size",
        "--json",
    )
    parser.add_argument(
        "--accountant",
        choices=list(ACCOUNTANTS),
        default="loss_distribution",
        help="whose figure holds the target (default: loss_distribution)",
    )
    parser.epilog = (
        "Two of noise, sampling and length are given, and the third is found:\n"
        "  %(prog)s --target-epsilon 2 --delta 1e-5 --dataset-size 60000 --lot-size 600 --epochs "
        "100\n  %(prog)s --target-epsilon 2 --delta 1e-5 --sampling-probability 0.01 "
        "--noise-multiplier 4\n  %(prog)s --target-epsilon 2 --delta 1e-5 --noise-multiplier 4 "
        "--steps 1e4"
    )
    return _calibrate


def _calibrate(args):
    given = {
        "noise_multiplier": {args.noise},
        "steps": {args.steps, args.epochs},
        "sampling_probability": {args.sampling_probability, args.lot_size},
    }
    missing = [name for name, flags in given.items() if flags == {None}]
    if len(missing) != 1:
        raise ParameterError(
            "expected two of these three, to find the third: --noise-multiplier; --steps or "
            "--epochs; --sampling-probability, or --dataset-size and --lot-size"
        )
    (name,) = missing
    if name == "sampling_probability":
        sampler = as_related(args, PoissonSampler(1.0))
    else:
        sampler = sampler_of(args)
    accountant = make(args.accountant, sampler.relation)
    if accountant.kind != "bound":
        print(
            f"NOTICE: {accountant.name} is no bound ({accountant.kind}): the true epsilon may "
            "exceed the target; --accountant loss_distribution, renyi or moments holds it",
            file=sys.stderr,
        )
    accountant = GroupAccountant(accountant, args.group_size)
    find = {"noise_multiplier": _noise, "steps": _steps, "sampling_probability": _probability}
    ledger, found, text = find[name](args, sampler, accountant)
    record, texts = {name: found}, {name: text}
    if name == "sampling_probability" and args.dataset_size is not None:
        check_count(1, dataset_size=args.dataset_size)
        record["lot_size"] = texts["lot_size"] = int(found * args.dataset_size)
        if not record["lot_size"]:
            raise BudgetExceededError(
                f"a sampling probability of {text} leaves no whole example of "
                f"{args.dataset_size} in a lot; raise the target or noise, or take fewer steps"
            )
    bound = accountant.epsilon(ledger, args.delta)
    record |= {
        "epsilon": bound.to_json(),
        "delta": args.delta,
        "accountant": accountant.name,
        "kind": accountant.kind,
        "ledger": ledger.to_json(),
    }
    lines = [f"{name.replace('_', ' ')}  {text}" for name, text in texts.items()]
    lines.append(
        f"epsilon  {upper_text(bound.upper, 6)} at delta {args.delta:g} ({accountant.name}, "
        f"{accountant.kind})"
    )
    show(args, record, lines)


# (ledger, what was found, its text): rounded so that what is printed costs no more than what was
# found


def _noise(args, sampler, accountant):
    steps = steps_of(args, sampler)

    def ledger_with(sigma):
        return ledger_of(args, sampler, (sigma,), steps)

    found = noise_multiplier_for(accountant, ledger_with, args.target_epsilon, args.delta)
    return ledger_with(found), found, upper_text(found, 6)


def _steps(args, sampler, accountant):
    event = release_event(args.noise, sampler.relation)
    before = ledger_of(args, sampler, args.noise, 0)
    found = max_steps(
        accountant,
        before,
        lambda steps: [sampler.charges(event, steps)],
        args.target_epsilon,
        args.delta,
    )
    return ledger_of(args, sampler, args.noise, found), found, found


def _probability(args, sampler, accountant):
    if args.sampler not in (None, "poisson") or args.steps is None:
        raise ParameterError(
            "a sampling probability is found for --sampler poisson and --steps only"
        )

    def ledger_with(q):
        return ledger_of(args, PoissonSampler(q), args.noise, args.steps)

    found = sampling_probability_for(accountant, ledger_with, args.target_epsilon, args.delta)
    return ledger_with(found), found, lower_text(found, 6)
