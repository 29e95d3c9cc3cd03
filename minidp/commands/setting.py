"""Flags that describe a run (noise, sampling, length, what comes before), and the ledger that follows from them."""
import math
from pathlib import Path

from ..cli import number, whole_number
from ..errors import ParameterError
from ..mechanism import ClipGroup, PoissonSampler, PrivatePCA, Sanitizer
from ..mechanism.sampling import SAMPLERS, make_sampler
from ..privacy import Gaussian, Ledger, NeighbouringRelation
from ..privacy.catalogue import ACCOUNTANTS, make
from ..privacy.ledger import SETUP
from ..validate import count as check_count
from ..validate import in_range, positive_finite

MOST_STEPS = 10**12
BOUNDS = "bounds"       # of --accountant: all that guarantee what they say
DESCRIBING = ("noise_multiplier", "noise_multipliers", "sampling_probability", "dataset_size", "lot_size", "steps", "epochs",
              "pca_noise_multiplier", "sampler", "relation")


def add_noise(parser, several=True):
    """--noise-multiplier, and --noise-multipliers of several layers."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--noise-multiplier", type=number, metavar="SIGMA", help="noise standard deviation / clip norm")
    if several:
        group.add_argument("--noise-multipliers", type=_numbers, metavar="SIGMA,...",
                           help="those of the layers of one joint step, such as 4,4")


def add_sampling(parser):
    """How lots are drawn, and what comes before the first step."""
    add = parser.add_argument
    add("--sampling-probability", type=number, metavar="Q", help="chance of each example per step, such as 0.01 or 1/60")
    add("--dataset-size", type=whole_number, metavar="N", help="public number of training examples; with --lot-size, in place "
        "of the probability, which is then L / N")
    add("--lot-size", type=whole_number, metavar="L", help="examples per step, on average with --sampler poisson")
    add("--sampler", choices=tuple(SAMPLERS), help="how lots are drawn: each example by itself with probability q, L of N "
        "without replacement, or a shuffled order that is cut into lots and gains nothing (default: poisson)")
    add("--relation", choices=[relation.value for relation in NeighbouringRelation], help="when two data sets are neighbours; "
        "it follows from the sampler (add_remove, replace_one, zero_out), and another one is refused")
    add("--pca-noise-multiplier", type=number, metavar="SIGMA", help="noise of DP-PCA before the first step")


def add_length(parser, steps="number of steps"):
    """--steps, or --epochs."""
    parser.add_argument("--steps", type=whole_number, metavar="T", help=f"{steps}, such as 1e4")
    parser.add_argument("--epochs", type=number, metavar="E", help="passes over the data in place of steps: E / q of them, "
                        "rounded up")


def add_ledger(parser):
    """--ledger, in place of everything that describes a run."""
    parser.add_argument("--ledger", metavar="FILE", help="ledger.json of a run, or its folder, in place of noise, sampling and "
                        "steps")


def add_accountants(parser):
    """--accountant and --all."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--accountant", choices=[BOUNDS, "all", *ACCOUNTANTS], default=BOUNDS,
                       help="whose figure: all that are bounds, all, or one by name (default: %(default)s)")
    group.add_argument("--all", dest="accountant", action="store_const", const="all",
                       help="the same as --accountant all: approximations and comparisons too, which guarantee nothing")


def add_group(parser):
    """--group-size."""
    parser.add_argument("--group-size", type=whole_number, default=1, metavar="K",
                        help="examples that one person contributes, who is to be protected (default: 1)")


def add_delta(parser):
    """--delta."""
    parser.add_argument("--delta", type=number, required=True, help="delta of (epsilon, delta)-DP, in (0, 1)")


def names_of(args, every=tuple(ACCOUNTANTS)):
    """The accountants asked for, of `every` one."""
    if args.accountant == BOUNDS:
        return [name for name in every if make(name).kind == "bound"]
    return list(every) if args.accountant == "all" else [args.accountant]


def sampler_of(args):
    """The sampler that the flags describe. Raises ParameterError unless they do so in exactly one way."""
    name, sizes = args.sampler or "poisson", (args.dataset_size, args.lot_size)
    if args.sampling_probability is not None and sizes == (None, None) and name == "poisson":
        sampler = PoissonSampler(args.sampling_probability)
    elif args.sampling_probability is None and None not in sizes:
        sampler = make_sampler(name, *sizes)
    else:
        either = "either --sampling-probability or " if name == "poisson" else f"with --sampler {name} "
        raise ParameterError(f"expected {either}--dataset-size and --lot-size")
    check_relation(args, sampler)
    return sampler


def check_relation(args, sampler):
    """Raise ParameterError where --relation is not the one that the sampler's analysis is proved for."""
    if args.relation not in (None, sampler.relation.value):
        raise ParameterError(f"expected --relation {sampler.relation.value}, for which --sampler {args.sampler or 'poisson'} is "
                             f"analysed, got {args.relation}; leave it out, or name another sampler")


def lots_per_epoch(sampler):
    """Steps in one pass over the data, on average."""
    if isinstance(sampler, PoissonSampler):
        return 1 / sampler.sampling_probability if sampler.sampling_probability else math.inf
    return sampler.dataset_size / sampler.lot_size


def steps_in(epochs, sampler):
    """So many epochs as steps, rounded up."""
    positive_finite(epochs=epochs)
    steps = epochs * lots_per_epoch(sampler)
    in_range(0, MOST_STEPS, steps=steps)
    return math.ceil(steps)


def steps_of(args, sampler):
    """The number of steps that the flags describe. Raises ParameterError unless they do so in exactly one way."""
    if (args.steps is None) == (args.epochs is None):
        raise ParameterError("expected either --steps or --epochs")
    return steps_in(args.epochs, sampler) if args.steps is None else args.steps


def noise_of(args):
    """The noise multipliers of one step. Raises ParameterError where there are none."""
    several = getattr(args, "noise_multipliers", None)
    if several is None and args.noise_multiplier is None:
        raise ParameterError("expected --noise-multiplier" + (", or --ledger FILE for a run that is done"
                                                              if hasattr(args, "ledger") else ""))
    return several or (args.noise_multiplier,)


def release_event(noises, relation):
    """What one step releases, before sampling, with these noise multipliers; infinite noise releases nothing."""
    if math.inf in noises:
        return Gaussian(math.inf)
    return Sanitizer([ClipGroup(f"layer {i}", [(f"layer {i}", "all")], 1.0, sigma)
                      for i, sigma in enumerate(noises)]).event(relation)


def ledger_of(args, sampler, noises, steps):
    """The ledger of PCA, if there is one, and of `steps` steps with these noise multipliers."""
    check_count(0, steps=steps)
    in_range(0, MOST_STEPS, steps=steps)
    ledger = Ledger(sampler.relation)
    if args.pca_noise_multiplier is not None:
        ledger.append(PrivatePCA(1, args.pca_noise_multiplier).event(ledger.relation), purpose=SETUP)
    ledger.append(*sampler.charges(release_event(noises, sampler.relation), steps))
    return ledger


def described(args):
    """(ledger, one line that says what it is) of the flags, or of --ledger."""
    if getattr(args, "ledger", None) is None:
        sampler = sampler_of(args)
        steps = steps_of(args, sampler)
        return ledger_of(args, sampler, noise_of(args), steps), title_of(args, sampler, steps)
    given = [f"--{name.replace('_', '-')}" for name in DESCRIBING if getattr(args, name) is not None]
    if given:
        raise ParameterError(f"--ledger says what was done; leave out {', '.join(given)}")
    path = Path(args.ledger)
    path = path / "ledger.json" if path.is_dir() else path
    ledger = Ledger.load(path)
    return ledger, f"{path}: {sum(count for _, count in ledger.items())} releases, {ledger.relation.value}"


def title_of(args, sampler, steps):
    """The setting in one line."""
    noise = ", ".join(f"{sigma:g}" for sigma in noise_of(args))
    before = "" if args.pca_noise_multiplier is None else f", PCA with sigma {args.pca_noise_multiplier:g}"
    if isinstance(sampler, PoissonSampler):
        lots = f"sampling probability {sampler.sampling_probability:.4g}"
    else:
        lots = f"{args.sampler} lots of {sampler.lot_size} from {sampler.dataset_size}"
    group = f", groups of {args.group_size}" if args.group_size > 1 else ""
    return f"sigma {noise}, {lots}, {steps} steps{before}, {sampler.relation.value}{group}"


def _numbers(text):
    return tuple(number(part) for part in text.split(","))
