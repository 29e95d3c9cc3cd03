"""Flags that several commands share, and the ledger of the run that they describe."""

import math
from pathlib import Path

from ..errors import ParameterError
from ..mechanism import ClipGroup, PoissonSampler, PrivatePCA, Sanitizer
from ..mechanism.sampling import SAMPLERS, make_sampler, steps_of_epochs
from ..privacy import Gaussian, Ledger, NeighbouringRelation, total_variation
from ..privacy.catalogue import ACCOUNTANTS, make
from ..privacy.ledger import SETUP
from ..util.text import upper_text
from ..util.validate import count as check_count
from ..util.validate import in_range, positive_finite
from .flags import Once, number, numbers, positive, whole_number

MOST_STEPS = 10**18
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
        dest="noise",
        metavar="SIGMA",
        help="noise standard deviation / clip norm",
    ),
    "--noise-multipliers": dict(
        type=numbers,
        dest="noise",
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
        help="each example with probability q (poisson, the default), L of N "
        "without replacement (fixed), a shuffled order cut into lots, which gains nothing "
        "(shuffle), or each epoch every example in one random lot of N // L (balls-in-bins)",
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
        type=positive,
        action=Once,
        required=True,
        metavar="EPSILON",
        help="epsilon that must not be exceeded",
    ),
    "--json": dict(action="store_true", help="print JSON in place of the table"),
    "--force": dict(action="store_true", help="replace files that are there already"),
}


def add(parser, *names):
    """Add these of the shared flags."""
    for name in names:
        parser.add_argument(name, *ALSO.get(name, ()), **FLAGS[name])


def add_run(parser, *more):
    """The flags of a run for commands that compare accountants, and `more`."""
    add(parser.add_mutually_exclusive_group(), *NOISE)
    add(parser, *SAMPLING, *more, "--group-size", "--json")
    add(parser.add_mutually_exclusive_group(), "--accountant", "--all")


def names_of(args, every=tuple(ACCOUNTANTS)):
    """The accountants asked for, of `every` one."""
    if args.accountant == "bounds":
        return [name for name in every if make(name).kind == "bound"]
    return list(every) if args.accountant == "all" else [args.accountant]


def sampler_of(args):
    """The sampler of the flags; ParameterError unless they describe it in exactly one way."""
    name = args.sampler or "poisson"
    sizes = (args.dataset_size, args.lot_size)
    q = args.sampling_probability
    if name == "poisson" and q is not None and sizes == (None, None):
        return as_related(args, PoissonSampler(q))
    if q is None and None not in sizes:
        return as_related(args, make_sampler(name, *sizes))
    either = "either --sampling-probability or "
    if name != "poisson":
        either = f"with --sampler {name} "
    raise ParameterError(f"expected {either}--dataset-size and --lot-size")


def as_related(args, sampler):
    """The sampler. Raises ParameterError where --relation names another than its own."""
    if args.relation not in (None, sampler.relation.value):
        raise ParameterError(
            f"expected --relation {sampler.relation.value}, for which --sampler "
            f"{args.sampler or 'poisson'} is analysed, got {args.relation}; leave it out, or name "
            "another sampler"
        )
    return sampler


def steps_of(args, sampler):
    """The number of steps that the flags describe. Raises ParameterError unless they do so in
    exactly one way.
    """
    if (args.steps is None) == (args.epochs is None):
        raise ParameterError("expected either --steps or --epochs")
    if args.steps is not None:
        return args.steps
    positive_finite(epochs=args.epochs)
    steps = steps_of_epochs(sampler, args.epochs)
    in_range(0, MOST_STEPS, steps=steps)
    return math.ceil(steps * (1 - 1e-12))  # 1 / (1 / 49) is a little above 49


def release_event(noises, relation):
    """What one step releases, before sampling, with these noise multipliers; infinite noise
    releases nothing.
    """
    if math.inf in noises:
        return Gaussian(math.inf)
    return Sanitizer(
        [
            ClipGroup(f"layer {i}", [(f"layer {i}", "all")], 1.0, sigma)
            for i, sigma in enumerate(noises)
        ]
    ).event(relation)


def ledger_of(args, sampler, noises, steps):
    """The ledger of PCA, if there is one, and of `steps` steps with these noise multipliers."""
    if noises is None:
        raise ParameterError(
            "expected --noise-multiplier"
            + (", or --ledger FILE for a run that is done" if hasattr(args, "ledger") else "")
        )
    check_count(0, MOST_STEPS, steps=steps)
    relation, sigma = sampler.relation, args.pca_noise_multiplier
    setup = [] if sigma is None else [(PrivatePCA(1, sigma).event(relation), 1, SETUP)]
    return Ledger(relation, [*setup, sampler.charges(release_event(noises, relation), steps)])


def described(args):
    """(ledger, one line that says what it is) of the flags, or of --ledger."""
    if getattr(args, "ledger", None) is None:
        sampler = sampler_of(args)
        steps = steps_of(args, sampler)
        return ledger_of(args, sampler, args.noise, steps), title_of(args, sampler, steps)
    given = [
        name
        for name in (NOISE[0], *SAMPLING, *LENGTH)
        if getattr(args, FLAGS[name].get("dest", name[2:].replace("-", "_"))) is not None
    ]
    if given:
        raise ParameterError(f"--ledger says what was done; leave out {', '.join(given)}")
    path = Path(args.ledger)
    path = path / "ledger.json" if path.is_dir() else path
    ledger = Ledger.load(path)
    beside = (
        f", total variation {upper_text(variation)}"
        if (variation := total_variation(ledger))
        else ""
    )
    return ledger, (
        f"{path}: {sum(count for _, count in ledger.items())} releases{beside}, "
        f"{ledger.relation.value}" + _group(args)
    )


def title_of(args, sampler, steps):
    """The setting in one line."""
    noise = ", ".join(f"{sigma:g}" for sigma in args.noise)
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
