"""Flags that several commands share, and the run that they describe in one line."""

from ..costs import ledger_of, path_of, sampler_of, steps_of
from ..mechanism import PoissonSampler
from ..mechanism.samplers import SAMPLERS
from ..privacy import NeighbouringRelation
from ..privacy.accountants import ACCOUNTANTS
from .flags import Once, number, numbers, whole_number

NOISE = ("--noise-multiplier", "--noise-multipliers")
LENGTH = ("--steps", "--epochs")
ALSO = {"--target-epsilon": ("--epsilon",)}  # second names
SAMPLING = (
    "--sampling-probability",
    "--dataset-size",
    "--lot-size",
    "--sampler",
    "--relation",
    "--pca-noise-multiplier",
)
FLAGS = {
    "--noise-multiplier": dict(
        type=lambda text: (number(text),),
        dest="noise_multiplier",
        metavar="SIGMA",
        help="noise standard deviation / clip norm",
    ),
    "--noise-multipliers": dict(
        type=numbers,
        dest="noise_multiplier",
        metavar="SIGMA,...",
        help="those of the layers of one joint step, such as 4,4",
    ),
    "--sampling-probability": dict(
        type=number, metavar="Q", help="each example's chance per step: 0.01 or 1/60"
    ),
    "--dataset-size": dict(
        type=whole_number, metavar="N", help="public number of examples; with --lot-size q = L / N"
    ),
    "--lot-size": dict(
        type=whole_number, metavar="L", help="examples per step, on average with --sampler poisson"
    ),
    "--sampler": dict(
        choices=tuple(SAMPLERS),
        help="each example with probability q (poisson, the default), or a shuffled order cut "
        "into lots, which gains nothing (shuffle)",
    ),
    "--relation": dict(
        choices=[relation.value for relation in NeighbouringRelation],
        help="which data sets are neighbours; the sampler says it, and another one is refused",
    ),
    "--pca-noise-multiplier": dict(
        type=number, metavar="SIGMA", help="noise of DP-PCA before the first step"
    ),
    "--steps": dict(type=whole_number, metavar="T", help="number of steps, such as 1e4"),
    "--epochs": dict(
        type=number, metavar="E", help="passes over the data: E / q steps, rounded up"
    ),
    "--ledger": dict(
        metavar="FILE",
        help="ledger.json of a run, or its folder, in place of noise, sampling and steps",
    ),
    "--accountant": dict(
        choices=["bounds", "all", *ACCOUNTANTS],
        default="bounds",
        help="whose figure: all that are bounds, all, or one by name (default: %(default)s)",
    ),
    "--all": dict(
        dest="accountant",
        action="store_const",
        const="all",
        help="--accountant all: approximations and comparisons too, which guarantee nothing",
    ),
    "--group-size": dict(
        type=whole_number,
        default=1,
        metavar="K",
        help="examples of each person, all in the data or none (default: 1)",
    ),
    "--delta": dict(type=number, required=True, help="delta of (epsilon, delta)-DP, in (0, 1)"),
    "--target-epsilon": dict(
        type=number,
        action=Once,
        metavar="EPSILON",
        help="epsilon that must not be exceeded, at --delta",
    ),
    "--json": dict(action="store_true", help="print JSON in place of the table"),
    "--quiet": dict(action="store_true", help="say nothing while it computes"),
    "--force": dict(action="store_true", help="replace files that are there already"),
}


def add(parser, *names, **more):
    """Add these of the shared flags; more: what differs from the others' definition."""
    for name in names:
        parser.add_argument(name, *ALSO.get(name, ()), **{**FLAGS[name], **more})


def add_run(parser, *more):
    """The flags of a run for commands that compare accountants, and `more`."""
    add(parser.add_mutually_exclusive_group(), *NOISE)
    add(parser, *SAMPLING, *LENGTH, "--ledger", *more, "--group-size", "--json")
    add(parser.add_mutually_exclusive_group(), "--accountant", "--all")


def described(args):
    """(ledger, one line that says what it is) of the flags, or of --ledger."""
    ledger = ledger_of(args)
    if args.ledger is None:
        sampler = sampler_of(args)
        return ledger, title_of(args, sampler, steps_of(args, sampler))
    return ledger, (
        f"{path_of(args.ledger)}: {sum(count for _, count in ledger.items())} releases, "
        f"{ledger.relation.value}" + _group(args)
    )


def title_of(args, sampler, steps):
    """The setting in one line."""
    noise = ", ".join(f"{sigma:g}" for sigma in args.noise_multiplier)
    before = (
        ""
        if args.pca_noise_multiplier is None
        else f", PCA with sigma {args.pca_noise_multiplier:g}"
    )
    lots = (
        f"sampling probability {sampler.sampling_probability:.4g}"
        if isinstance(sampler, PoissonSampler)
        else f"{args.sampler} lots of {sampler.lot_size} from {sampler.dataset_size}"
    )
    return f"sigma {noise}, {lots}, {steps} steps{before}, {sampler.relation.value}{_group(args)}"


def _group(args):
    return f", groups of {args.group_size}" if args.group_size > 1 else ""
