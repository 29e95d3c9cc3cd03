"""epsilon, delta, calibrate: figures."""

import math
import sys

from ..costs import accountants_of, calibrated, compared
from ..privacy.accountants import ACCOUNTANTS, make
from ..privacy.attacker import in_words, large_delta
from ..util.text import upper_text
from .flags import number
from .output import refuse_unbounded, show, table
from .run_flags import LENGTH, SAMPLING, add, add_run, described


def epsilon(parser):
    add_run(parser, "--delta")
    parser.epilog = (
        "examples:\n  %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 "
        "--delta 1e-5\n  %(prog)s --noise-multiplier 1 --dataset-size 6e4 --lot-size 256 --epochs "
        "9 --delta 1e-5\n  %(prog)s --ledger runs/mine/ledger.json --delta 1e-5"
    )
    return lambda args: _compare(args, {"delta": args.delta})


def delta(parser):
    add_run(parser)
    parser.add_argument(
        "--epsilon", type=number, required=True, help="epsilon of (epsilon, delta)-DP, at least 0"
    )
    parser.epilog = (
        "example: %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 --epsilon 1"
    )
    return lambda args: _compare(args, {"epsilon": args.epsilon})


def _compare(args, given):
    """Print epsilon at the given delta, or delta at the given epsilon.

    Raises ParameterError, before the table, where no accountant has a finite bound.
    """
    ledger, title = described(args)
    _remark_delta(args)
    worthless = 1.0 if args.command == "delta" else math.inf
    found, record = compared(ledger, accountants_of(args.accountant), args.group_size, **given)
    if not args.json:
        refuse_unbounded(found, worthless)
    at = ", ".join(f"{name} {value:g}" for name, value in given.items())
    lines = [f"{title}, {at}", *table(found, args.command, worthless)]
    if "meaning" in record:
        lines.append(in_words(record["meaning"], args.group_size))
    show(args, record, lines)
    refuse_unbounded(found, worthless)


def _remark_delta(args):
    """Say on stderr that delta is large for the data set, if both are given."""
    size, delta = args.dataset_size, getattr(args, "delta", None)
    if delta is not None and size is not None and (why := large_delta(delta, size)):
        print(f"NOTICE: delta={delta:g} is {why}", file=sys.stderr)


def calibrate(parser):
    add(parser, "--target-epsilon", required=True)
    add(
        parser,
        "--delta",
        "--noise-multiplier",
        *SAMPLING,
        *LENGTH,
        "--group-size",
        "--json",
        "--quiet",
    )
    parser.add_argument(
        "--accountant",
        choices=list(ACCOUNTANTS),
        default="loss_distribution",
        help="whose figure holds the target (default: loss_distribution)",
    )
    parser.epilog = (
        "Noise or length is given, and the other is found:\n"
        "  %(prog)s --target-epsilon 2 --delta 1e-5 --dataset-size 60000 --lot-size 600 "
        "--epochs 100\n  %(prog)s --target-epsilon 2 --delta 1e-5 --sampling-probability 0.01 "
        "--noise-multiplier 4"
    )
    return _calibrate


def _calibrate(args):
    accountant = make(args.accountant)
    if accountant.kind != "bound":
        print(
            f"NOTICE: {accountant.name} is no bound ({accountant.kind}): the true epsilon may "
            "exceed the target; --accountant loss_distribution, renyi or moments holds it",
            file=sys.stderr,
        )
    _remark_delta(args)
    record = calibrated(args)
    # rounded so that what is printed costs no more than what was found
    lines = [f"steps  {record['steps']}"] if "steps" in record else []
    if "noise_multiplier" in record:
        lines.append(f"noise multiplier  {upper_text(record['noise_multiplier'], 6)}")
    lines.append(
        f"epsilon  {upper_text(record['epsilon']['upper'], 6)} at delta {args.delta:g} "
        f"({record['accountant']}, {record['kind']})"
    )
    whom = "each example by itself"
    if args.group_size > 1:
        whom = f"{args.group_size} examples of one person together, all in the data or none"
    show(args, record, [*lines, f"covers {whom}"])
