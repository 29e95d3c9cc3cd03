"""curve, tradeoff: pictures."""

from pathlib import Path

from ..errors import UnsupportedEventError
from ..mechanism.samplers import steps_of_epochs
from ..planning import accountants_of, check_parts, ledger_with, sampler_of, steps_of
from ..privacy.catalogue import all_bounds, make
from ..privacy.group_privacy import GroupAccountant
from ..privacy.plots import save_epsilon_curves, save_tradeoff
from ..util.text import upper_text
from ..util.validate import count as check_count
from .flags import number, whole_number
from .output import check_pictures, refuse_unbounded, show
from .setting import LENGTH, add_run, described, title_of

# the others would need another scale
DRAWN = (
    "moments",
    "renyi",
    "loss_distribution",
    "gaussian_clt",
)


def curve(parser):
    add_run(parser, "--delta", "--force")
    parser.add_argument(
        "--epochs",
        type=number,
        required=True,
        metavar="E",
        help="passes over the data where it ends",
    )
    parser.add_argument(
        "--points",
        type=whole_number,
        default=100,
        help="points of the curve (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        default="epsilon",
        help="files to write, .csv and .png, with or without ending (default: %(default)s)",
    )
    parser.set_defaults(steps=None)
    parser.epilog = (
        "example: %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --epochs 9 "
        "--delta 1e-5 --out e"
    )
    return _curve


def _curve(args):
    table, picture = check_pictures(args, ".csv", ".png")
    check_count(1, points=args.points)
    check_parts(args)
    sampler, names = sampler_of(args), accountants_of(args.accountant, DRAWN)
    last = steps_of(args, sampler)
    steps = sorted({max(1, last * i // args.points) for i in range(1, args.points + 1)})
    found = []
    for count in steps:
        ledger = ledger_with(args, sampler, args.noise_multiplier, count)
        found.append(all_bounds(ledger, names, delta=args.delta, group_size=args.group_size))
    refuse_unbounded(found[0])
    curves = {name: [point[name][0] for point in found] for name in names}
    save_epsilon_curves(
        Path(table.removesuffix(".csv")),
        [count / steps_of_epochs(sampler, 1) for count in steps],
        curves,
        args.delta,
        title_of(args, sampler, last),
        {name: make(name).kind for name in names},
    )
    ends = {name: bounds[-1].to_json() for name, bounds in curves.items()}
    record = {"csv": table, "png": picture, "epochs": args.epochs}
    show(args, {**record, "epsilon": ends}, [f"wrote {table} and {picture}"])


def tradeoff(parser):
    add_run(parser, *LENGTH, "--force")
    parser.add_argument(
        "--false-positive-rate",
        type=number,
        default=0.01,
        metavar="RATE",
        help="where to print the power of a test (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        default="tradeoff",
        help="file to write, .png, with or without ending (default: %(default)s)",
    )
    parser.epilog = (
        "example: %(prog)s --noise-multiplier 4 --sampling-probability 0.01 --steps 1e4 "
        "--out tradeoff"
    )
    return _tradeoff


def _tradeoff(args):
    import numpy as np

    from ..privacy.tradeoff import accountant_curve, true_positive_rate

    (picture,) = check_pictures(args, ".png")
    ledger, title = described(args)
    rate = args.false_positive_rate
    alphas = np.concatenate(
        [np.linspace(0, 1, 501), np.geomspace(1e-9, 0.01, 100), [min(max(rate, 0), 1)]]
    )
    alphas = np.unique(alphas)
    curves, without = {}, []
    for name in accountants_of(args.accountant, DRAWN):
        try:
            accountant = GroupAccountant(make(name, ledger.relation), args.group_size)
            curves[name] = accountant_curve(accountant, ledger, alphas)
        except UnsupportedEventError as error:
            without.append(str(error))
    if not curves:
        raise UnsupportedEventError(f"no accountant asked has a bound: {without[0]}")
    power = {name: true_positive_rate(alphas, betas, rate) for name, betas in curves.items()}
    save_tradeoff(Path(picture), alphas, curves, title, {name: make(name).kind for name in curves})
    lines = [
        f"{name}: true positive rate at most {upper_text(value)} at false positive rate {rate:g}"
        for name, value in power.items()
    ]
    record = {"png": picture, "false_positive_rate": rate, "true_positive_rate": power}
    show(args, record, [f"wrote {picture}", *lines, *without])
