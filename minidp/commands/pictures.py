"""curve, tradeoff: pictures."""
from functools import partial
from pathlib import Path

from ..cli import number, whole_number
from ..errors import UnsupportedEventError
from ..numbers import upper_text
from ..privacy.catalogue import all_bounds, make
from ..privacy.group_privacy import GroupAccountant
from ..privacy.plots import save_epsilon_curves, save_tradeoff
from ..validate import count as check_count
from .output import add_force, add_json, check_new, show
from .setting import (add_accountants, add_delta, add_group, add_length, add_noise, add_sampling, described, ledger_of,
                      lots_per_epoch, names_of, noise_of, sampler_of, steps_in, title_of)

DRAWN = ("moments", "renyi", "loss_distribution", "gaussian_clt")  # the others would need another scale


def curve(parser):
    """Flags of `curve`."""
    add_noise(parser)
    add_sampling(parser)
    add_delta(parser)
    parser.add_argument("--epochs", type=number, required=True, metavar="E", help="where the curve ends: passes over the data")
    parser.add_argument("--points", type=whole_number, default=100, help="points of the curve (default: %(default)s)")
    parser.add_argument("--out", default="epsilon", help="files to write, without their ending (default: %(default)s)")
    _common(parser)
    parser.epilog = "example: %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --epochs 100 --delta 1e-5 --out epsilon"
    return _curve


def _common(parser):
    add_accountants(parser)
    add_group(parser)
    add_force(parser)
    add_json(parser)


def _curve(args):
    check_new(args, f"{args.out}.csv", f"{args.out}.png")
    check_count(1, points=args.points)
    sampler, names = sampler_of(args), names_of(args, DRAWN)
    last = steps_in(args.epochs, sampler)
    steps = sorted({max(1, last * i // args.points) for i in range(1, args.points + 1)})
    curves = {name: [] for name in names}
    for count in steps:
        ledger = ledger_of(args, sampler, noise_of(args), count)
        for name, (bound, _, why) in all_bounds(ledger, names, delta=args.delta, group_size=args.group_size).items():
            curves[name].append(bound)
    if all(bound.upper is None for bounds in curves.values() for bound in bounds):
        raise UnsupportedEventError(f"no accountant asked has a bound: {why}")
    save_epsilon_curves(Path(args.out), [count / lots_per_epoch(sampler) for count in steps], curves, args.delta,
                        title_of(args, sampler, last), kinds={name: make(name).kind for name in names})
    ends = {name: bounds[-1].to_json() for name, bounds in curves.items()}
    show(args, {"csv": f"{args.out}.csv", "png": f"{args.out}.png", "epochs": args.epochs, "epsilon": ends},
         [f"wrote {args.out}.csv and {args.out}.png"])


def tradeoff(parser):
    """Flags of `tradeoff`."""
    add_noise(parser)
    add_sampling(parser)
    add_length(parser)
    parser.add_argument("--false-positive-rate", type=number, default=0.01, metavar="RATE",
                        help="where to print the power of a test (default: %(default)s)")
    parser.add_argument("--out", default="tradeoff.png", help="file to write (default: %(default)s)")
    _common(parser)
    parser.epilog = "example: %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 --out tradeoff.png"
    return _tradeoff


def _tradeoff(args):
    import numpy as np

    from ..privacy.tradeoff import accountant_curve, true_positive_rate

    check_new(args, args.out)
    (ledger, title), alphas, curves, without = described(args), np.linspace(0.0, 1.0, 501), {}, []
    for accountant in map(partial(make, relation=ledger.relation), names_of(args, DRAWN)):
        try:
            curves[accountant.name] = accountant_curve(GroupAccountant(accountant, args.group_size), ledger, alphas)
        except UnsupportedEventError as error:
            without.append(str(error))
    if not curves:
        raise UnsupportedEventError(f"no accountant asked has a bound: {without[0]}")
    power = {name: true_positive_rate(alphas, betas, args.false_positive_rate) for name, betas in curves.items()}
    save_tradeoff(Path(args.out), alphas, curves, title, {name: make(name).kind for name in curves})
    show(args, {"png": args.out, "false_positive_rate": args.false_positive_rate, "true_positive_rate": power},
         [f"wrote {args.out}", *(f"{name}: true positive rate at most {upper_text(value)} at false positive rate "
                                 f"{args.false_positive_rate:g}" for name, value in power.items()), *without])
