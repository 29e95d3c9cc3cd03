"""From the command line: python -m minidp epsilon | delta | calibrate | curve | tradeoff | verify | audit."""
import json
import sys
from pathlib import Path

from . import host

if __name__ == "__main__":
    host.tune()  # before NumPy loads

from .cli import Parser, error_line, number, whole_number
from .errors import MinidpError, ParameterError, UnsupportedEventError
from .numbers import bound_texts, upper_text
from .privacy import Gaussian, JointGaussian, Ledger, NeighbouringRelation, PoissonSampled
from .privacy.catalogue import ACCOUNTANTS, all_bounds, make
from .validate import count as check_count
from .validate import in_range, positive_finite

MOST_STEPS = 10**12
BOUNDS = ("moments", "renyi", "loss_distribution", "gaussian_clt")


def step_event(args, noise_multiplier=None):
    """One step as the flags describe it, or with a noise multiplier that is being calibrated."""
    layers = getattr(args, "noise_multipliers", None)
    noise = args.noise_multiplier if noise_multiplier is None else noise_multiplier
    return PoissonSampled(args.sampling_probability, JointGaussian(layers) if layers else Gaussian(noise))


def ledger_of(args, event, steps):
    """The ledger of PCA, if there is one, and `steps` times the event."""
    check_count(0, steps=steps)
    in_range(0, MOST_STEPS, steps=steps)
    ledger = Ledger(NeighbouringRelation(args.relation))
    if args.pca_noise_multiplier is not None:
        from .mechanism.pca import PrivatePCA

        ledger.append(PrivatePCA(1, args.pca_noise_multiplier).event(ledger.relation), purpose="setup")
    ledger.append(event, steps)
    return ledger


def title_of(args):
    """The setting, for a picture."""
    noise = ", ".join(f"{sigma:g}" for sigma in args.noise_multipliers or [args.noise_multiplier])
    before = "" if args.pca_noise_multiplier is None else f", PCA with sigma {args.pca_noise_multiplier:g}"
    return f"sigma {noise}, sampling probability {args.sampling_probability:.4g}{before}"


def names_of(args, every=tuple(ACCOUNTANTS)):
    """The accountants asked for; "all" means `every` one."""
    return every if args.accountant == "all" else (args.accountant,)


def show(args, record, lines):
    """JSON with --json, else the lines."""
    print(json.dumps(record, indent=2, allow_nan=False) if args.json else "\n".join(lines))


def bounds_of(args, ledger, names, **target):
    """`all_bounds`; UnsupportedEventError where no accountant has a bound."""
    found = all_bounds(ledger, names, **target)
    if all(bound.upper is None for bound, _, _ in found.values()):
        raise UnsupportedEventError(f"no accountant asked has a bound: {next(iter(found.values()))[2]}")
    return found


def row_to_quote(found):
    """The name of the smallest upper end that is a bound; None where there is none."""
    uppers = {name: bound.upper for name, (bound, kind, _) in found.items() if kind == "bound" and bound.upper is not None}
    return min(uppers, key=uppers.get, default=None)


def table(found, what):
    """Rows of one comparison, for people: lower ends rounded down, upper ends up, the row to quote marked."""
    rows = [("accountant", f"{what} lower", "estimate", "upper", "kind", "")]
    for name, (bound, kind, note) in found.items():
        quote = "  <- quote this" if name == row_to_quote(found) else ""
        rows.append((name, *bound_texts(bound, 6), kind, note + quote))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[5]]).rstrip() for row in rows]


def comparison_command(args):
    """epsilon at --delta, or delta at --epsilon."""
    given = {"delta": args.delta} if args.command == "epsilon" else {"epsilon": args.epsilon}
    more = {"group_size": args.group_size} if args.command == "epsilon" else {}
    found = bounds_of(args, ledger_of(args, step_event(args), args.steps), names_of(args), **given, **more)
    rows = {name: {**bound.to_json(), "kind": kind, "note": note} for name, (bound, kind, note) in found.items()}
    show(args, {**given, "quote": row_to_quote(found), "accountants": rows}, table(found, args.command))


def calibrate_command(args):
    from .privacy.budget import max_steps
    from .privacy.calibrate import noise_multiplier_for
    from .privacy.group_privacy import GroupAccountant

    accountant = make(args.accountant, NeighbouringRelation(args.relation))
    accountant = GroupAccountant(accountant, args.group_size) if args.group_size > 1 else accountant
    if args.steps is not None:
        def build(noise_multiplier):
            return ledger_of(args, step_event(args, noise_multiplier), args.steps)

        found = {"noise_multiplier": noise_multiplier_for(accountant, build, args.target_epsilon, args.delta)}
        ledger = build(found["noise_multiplier"])
    else:
        event = step_event(args)
        found = {"steps": max_steps(accountant, ledger_of(args, event, 0), event, args.target_epsilon, args.delta)}
        ledger = ledger_of(args, event, found["steps"])
    bound = accountant.epsilon(ledger, args.delta)
    record = {**found, "epsilon": bound.to_json(), "delta": args.delta, "accountant": args.accountant,
              "kind": accountant.kind}
    (name, value), = found.items()
    value = value if name == "steps" else upper_text(value, 6)       # less noise than was found would cost more
    show(args, record, [f"{name.replace('_', ' ')}  {value}",
                        f"epsilon  {upper_text(bound.upper, 6)} at delta {args.delta:g} ({args.accountant}, {accountant.kind})"])


def curve_command(args):
    from .privacy.plots import save_epsilon_curves

    positive_finite(epochs=args.epochs, sampling_probability=args.sampling_probability)
    check_count(1, points=args.points)
    names = names_of(args, BOUNDS)
    event = step_event(args)
    steps = sorted({max(1, round(args.epochs * i / args.points / args.sampling_probability))
                    for i in range(1, args.points + 1)})
    curves = {name: [] for name in names}
    for number in steps:
        found = bounds_of(args, ledger_of(args, event, number), names, delta=args.delta, group_size=args.group_size)
        for name in names:
            curves[name].append(found[name][0])
    save_epsilon_curves(Path(args.out), [number * args.sampling_probability for number in steps], curves, args.delta,
                        title_of(args), kinds={name: found[name][1] for name in names})
    last = {name: bounds[-1].to_json() for name, bounds in curves.items()}
    show(args, {"csv": f"{args.out}.csv", "png": f"{args.out}.png", "epochs": args.epochs, "epsilon": last},
         [f"wrote {args.out}.csv and {args.out}.png"])


def tradeoff_command(args):
    import numpy as np

    from .privacy.plots import save_tradeoff
    from .privacy.tradeoff import accountant_curve, true_positive_rate

    alphas = np.linspace(0.0, 1.0, 501)
    ledger = ledger_of(args, step_event(args), args.steps)
    names = names_of(args, BOUNDS)
    curves = {name: accountant_curve(make(name, ledger.relation), ledger, alphas) for name in names}
    save_tradeoff(Path(args.out), alphas, curves, f"{title_of(args)}, {args.steps} steps",
                  {name: make(name).kind for name in names})
    power = {name: true_positive_rate(alphas, betas, args.false_positive_rate) for name, betas in curves.items()}
    show(args, {"png": args.out, "false_positive_rate": args.false_positive_rate, "true_positive_rate": power},
         [f"wrote {args.out}", *(f"{name}: true positive rate at most {upper_text(value)} at false positive rate "
                                 f"{args.false_positive_rate:g}" for name, value in power.items())])


def verify_command(args):
    from .audit.html import page, table as html_table, verdict
    from .files import atomic_write
    from .run.verify import verify

    if args.html and not Path(args.html).parent.is_dir() or Path(args.html or "-").is_dir():
        raise ParameterError(f"--html {args.html} cannot be written: expected a file's name in a folder that is there")
    findings, bounds, result = report = verify(Path(args.run))
    failed = len(report.failed)
    seeded = " This run is seeded: it can be repeated, and must not be released." if result.get("reproducible") else ""
    text = (f"{len(findings)} questions, {failed} mismatches: "
            + ("the run's files agree with each other and with the accountants." if not failed
               else "do not rely on this run's epsilon.") + seeded)
    lines = [*(table(bounds, f"epsilon at delta {result['delta']:g}") if bounds else ()),
             *(f"{'ok  ' if finding.passed else 'FAIL'} {finding.question} {finding.answer}" for finding in findings), text]
    show(args, {"run": args.run, "differences": [f"{each.question} {each.answer}" for each in report.failed]}, lines)
    if args.html:
        rows = [(name, *bound_texts(bound), kind, note) for name, (bound, kind, note) in bounds.items()]
        body = (f"<p>{text}</p>" + html_table(("", "question", "answer"), [(verdict(each.passed), *each[:2]) for each in findings])
                + "<h2>epsilon</h2>" + html_table(("accountant", "lower", "estimate", "upper", "kind", "what it is"), rows))
        with atomic_write(args.html) as file:
            file.write(page(f"Privacy of one run: {args.run}", body))
    return 1 if failed else 0


def audit_command(args):
    from .audit import mutants, report

    if args.mutants:
        return mutants.main(args.layer)
    return report.main(args.layer, args.device, args.json, args.html)


def build_parser():
    """The command line."""
    parser = Parser(prog="python -m minidp", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)

    def command(name, run, help):
        sub = commands.add_parser(name, help=help)
        sub.set_defaults(run_command=run)
        sub.add_argument("--json", action="store_true", help="print JSON instead of a table")
        return sub

    def add(sub, flag, text, type=number, **named):
        sub.add_argument(flag, type=type, help=text, **named)

    def accounting(sub, accountants, default):
        """What all commands take: the sampling, what comes before the steps, the relation and the accountants."""
        add(sub, "--sampling-probability", "chance of each example per step, such as 0.01 or 1/60", required=True)
        add(sub, "--pca-noise-multiplier", "noise of DP-PCA before the first step")
        sub.add_argument("--relation", choices=[relation.value for relation in NeighbouringRelation],
                         default="add_remove", help="when two data sets are neighbours (default: %(default)s)")
        sub.add_argument("--accountant", choices=accountants, default=default, help="whose figure (default: %(default)s)")

    def noise_of(sub):
        noise = sub.add_mutually_exclusive_group(required=True)
        add(noise, "--noise-multiplier", "noise standard deviation / clip norm")
        add(noise, "--noise-multipliers", "of the layers of one joint step, such as 4,4", type=_numbers)

    def delta_of(sub):
        add(sub, "--delta", "delta of (epsilon, delta)-DP, in (0, 1)", required=True)

    def group(sub):
        add(sub, "--group-size", "examples that one person contributes (default: 1)", type=whole_number, default=1)

    epsilon = command("epsilon", comparison_command, "epsilon of a run, by every accountant")
    delta = command("delta", comparison_command, "delta at a given epsilon")
    curve = command("curve", curve_command, "epsilon against epochs, as CSV and PNG")
    tradeoff = command("tradeoff", tradeoff_command, "trade-off curve between false positives and negatives, as PNG")
    for sub in (epsilon, delta, curve, tradeoff):
        noise_of(sub)
        accounting(sub, [*ACCOUNTANTS, "all"], "all")
    for sub in (epsilon, delta, tradeoff):
        add(sub, "--steps", "number of steps", type=whole_number, required=True)

    delta_of(epsilon)
    group(epsilon)

    add(delta, "--epsilon", "epsilon of (epsilon, delta)-DP", required=True)

    calibrate = command("calibrate", calibrate_command, "noise multiplier, or number of steps, for a target epsilon")
    add(calibrate, "--target-epsilon", "epsilon that must not be exceeded", required=True)
    delta_of(calibrate)
    given = calibrate.add_mutually_exclusive_group(required=True)
    add(given, "--steps", "find the noise multiplier for this many steps", type=whole_number)
    add(given, "--noise-multiplier", "find the number of steps with this noise")
    accounting(calibrate, list(ACCOUNTANTS), "loss_distribution")
    group(calibrate)

    delta_of(curve)
    add(curve, "--epochs", "where the curve ends: steps times sampling probability", required=True)
    add(curve, "--points", "of the curve (default: %(default)s)", type=whole_number, default=100)
    curve.add_argument("--out", default="epsilon", help="files to write, without their ending (default: %(default)s)")
    group(curve)

    add(tradeoff, "--false-positive-rate", "where to print the power of a test (default: %(default)s)", default=0.01)
    tradeoff.add_argument("--out", default="tradeoff.png", help="file to write (default: %(default)s)")

    verify = command("verify", verify_command, "recompute a run's figures from its ledger")
    verify.add_argument("run", metavar="RUN_DIR", help="folder of a run")
    verify.add_argument("--html", metavar="FILE", help="write the verdict as one page")

    audit = commands.add_parser("audit", help="every equation, its line of code and its error, measured now")
    audit.set_defaults(run_command=audit_command)
    audit.add_argument("--layer", metavar="NAME", help="only this class or function and what it inherits: --layer Conv2D")
    audit.add_argument("--mutants", action="store_true", help="break every labelled line on purpose: a check must notice")
    audit.add_argument("--device", default="auto", choices=("auto", "cpu", "gpu"), help="for what computes on arrays")
    audit.add_argument("--html", metavar="FILE", help="write a page with the equations beside their code")
    audit.add_argument("--json", metavar="FILE", help="write the same as JSON")
    return parser


def _numbers(text):
    return tuple(number(part) for part in text.split(","))


def main(argv=None):
    """Run one command; returns the exit status."""
    args = build_parser().parse_args(argv)
    try:
        return args.run_command(args) or 0
    except (MinidpError, OSError) as error:
        print(error_line(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
