"""From the command line: python -m minidp epsilon | delta | calibrate | curve | tradeoff | verify | audit."""
import json
import sys
from pathlib import Path

from . import host

if __name__ == "__main__":
    host.tune()  # before NumPy loads

from .cli import Parser
from .errors import MinidpError, ParameterError
from .numbers import bound_texts
from .privacy import Gaussian, JointGaussian, Ledger, NeighbouringRelation, PoissonSampled
from .privacy.catalogue import ACCOUNTANTS, all_bounds, make
from .validate import count as check_count
from .validate import in_range, positive_finite

MOST_STEPS = 10**12
BOUNDS = ("moments", "renyi", "loss_distribution", "gaussian_clt")


def step_event(args, noise_multiplier=None, sampling_probability=None):
    """One step as the flags describe it; keywords take the place of a flag that is being calibrated."""
    if noise_multiplier is None:
        noise_multiplier = args.noise_multiplier
    layers = getattr(args, "noise_multipliers", None)
    q = args.sampling_probability if sampling_probability is None else sampling_probability
    return PoissonSampled(q, JointGaussian(layers) if layers else Gaussian(noise_multiplier))


def ledger_of(args, event, steps):
    """The ledger of PCA, if there is one, and `steps` times the event."""
    check_count(0, steps=steps)
    in_range(0, MOST_STEPS, steps=steps)
    ledger = Ledger(NeighbouringRelation(args.relation))
    if args.pca_noise_multiplier is not None:
        ledger.append(Gaussian(args.pca_noise_multiplier))
    ledger.append(event, steps)
    return ledger


def names_of(args):
    """The accountants asked for."""
    return tuple(ACCOUNTANTS) if args.accountant == "all" else (args.accountant,)


def show(args, record, lines):
    """JSON with --json, else the lines."""
    print(json.dumps(record, indent=2, allow_nan=False) if args.json else "\n".join(lines))


def table(found, what):
    """Rows of one comparison, for people."""
    rows = [("accountant", f"{what} lower", "estimate", "upper", "kind", "")]
    for name, (bound, kind, note) in found.items():
        numbers = ("unknown" if value is None else f"{value:.6g}"
                   for value in (bound.lower, bound.estimate, bound.upper))
        rows.append((name, *numbers, kind, note))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[5]]).rstrip() for row in rows]


def comparison_json(found):
    return {name: {**bound.to_json(), "kind": kind, "note": note} for name, (bound, kind, note) in found.items()}


def epsilon_command(args):
    ledger = ledger_of(args, step_event(args), args.steps)
    found = all_bounds(ledger, names_of(args), delta=args.delta, group_size=args.group_size)
    show(args, {"delta": args.delta, "accountants": comparison_json(found)}, table(found, "epsilon"))


def delta_command(args):
    found = all_bounds(ledger_of(args, step_event(args), args.steps), names_of(args), epsilon=args.epsilon)
    show(args, {"epsilon": args.epsilon, "accountants": comparison_json(found)}, table(found, "delta"))


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
    show(args, record, [f"{name.replace('_', ' ')}  {value:.6g}",
                        f"epsilon  {bound.upper:.6g} at delta {args.delta:g} ({args.accountant}, {accountant.kind})"])


def curve_command(args):
    from .privacy.plots import save_epsilon_curves

    positive_finite(epochs=args.epochs, sampling_probability=args.sampling_probability)
    check_count(1, points=args.points)
    names = BOUNDS if args.accountant == "all" else names_of(args)
    event = step_event(args)
    steps = sorted({max(1, round(args.epochs * i / args.points / args.sampling_probability))
                    for i in range(1, args.points + 1)})
    curves = {name: [] for name in names}
    for number in steps:
        found = all_bounds(ledger_of(args, event, number), names, delta=args.delta, group_size=args.group_size)
        for name in names:
            curves[name].append(found[name][0])
    save_epsilon_curves(Path(args.out), [number * args.sampling_probability for number in steps], curves, args.delta,
                        kinds={name: found[name][1] for name in names})
    last = {name: bounds[-1].to_json() for name, bounds in curves.items()}
    show(args, {"csv": f"{args.out}.csv", "png": f"{args.out}.png", "epochs": args.epochs, "epsilon": last},
         [f"wrote {args.out}.csv and {args.out}.png"])


def tradeoff_command(args):
    import numpy as np

    from .privacy.plots import save_tradeoff
    from .privacy.tradeoff import accountant_curve, true_positive_rate

    alphas = np.linspace(0.0, 1.0, 501)
    ledger = ledger_of(args, step_event(args), args.steps)
    names = BOUNDS if args.accountant == "all" else names_of(args)
    curves = {name: accountant_curve(make(name, ledger.relation), ledger, alphas) for name in names}
    save_tradeoff(Path(args.out), alphas, curves)
    power = {name: true_positive_rate(alphas, betas, args.false_positive_rate) for name, betas in curves.items()}
    show(args, {"png": args.out, "false_positive_rate": args.false_positive_rate, "true_positive_rate": power},
         [f"wrote {args.out}", *(f"{name}: true positive rate at most {value:.4g} at false positive rate "
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
        return mutants.main()
    return report.main(args.layer, args.device, args.json, args.html)


def build_parser():
    """The command line."""
    parser = Parser(prog="python -m minidp", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)

    def command(name, run, help):
        sub = commands.add_parser(name, help=help)
        sub.set_defaults(run_command=run)
        sub.add_argument("--json", action="store_true", help="JSON instead of a table")
        return sub

    def describes_steps(sub, steps=True, noise_required=True, accountant="all"):
        noise = sub.add_mutually_exclusive_group(required=noise_required)
        noise.add_argument("--noise-multiplier", type=float, help="noise standard deviation / clip norm")
        noise.add_argument("--noise-multipliers", type=_floats, help="4,4: the layers of one joint step")
        sub.add_argument("--sampling-probability", type=float, required=True, help="chance of each example per step")
        if steps:
            sub.add_argument("--steps", type=int, required=True, help="number of steps")
        sub.add_argument("--pca-noise-multiplier", type=float, help="noise of DP-PCA before the first step")
        sub.add_argument("--relation", choices=[relation.value for relation in NeighbouringRelation],
                         default="add_remove", help="when two data sets are neighbours")
        sub.add_argument("--accountant", choices=[*ACCOUNTANTS, "all"] if accountant == "all" else list(ACCOUNTANTS),
                         default=accountant, help="whose figure (default: %(default)s)")

    def group(sub):
        sub.add_argument("--group-size", type=int, default=1, help="examples that one person contributes")

    epsilon = command("epsilon", epsilon_command, "epsilon of a run, by every accountant")
    describes_steps(epsilon)
    epsilon.add_argument("--delta", type=float, required=True)
    group(epsilon)

    delta = command("delta", delta_command, "delta at a given epsilon")
    describes_steps(delta)
    delta.add_argument("--epsilon", type=float, required=True)

    calibrate = command("calibrate", calibrate_command, "noise multiplier, or number of steps, for a target epsilon")
    calibrate.add_argument("--target-epsilon", type=float, required=True)
    calibrate.add_argument("--delta", type=float, required=True)
    calibrate.add_argument("--sampling-probability", type=float, required=True)
    given = calibrate.add_mutually_exclusive_group(required=True)
    given.add_argument("--steps", type=int, help="find the noise multiplier for so many steps")
    given.add_argument("--noise-multiplier", type=float, help="find the number of steps")
    calibrate.add_argument("--pca-noise-multiplier", type=float)
    calibrate.add_argument("--relation", choices=[relation.value for relation in NeighbouringRelation],
                           default="add_remove")
    calibrate.add_argument("--accountant", choices=list(ACCOUNTANTS), default="loss_distribution")
    group(calibrate)

    curve = command("curve", curve_command, "epsilon against epochs, as CSV and PNG")
    describes_steps(curve, steps=False)
    curve.add_argument("--delta", type=float, required=True)
    curve.add_argument("--epochs", type=float, required=True)
    curve.add_argument("--points", type=int, default=100)
    curve.add_argument("--out", default="epsilon", help="file name without its ending")
    group(curve)

    tradeoff = command("tradeoff", tradeoff_command, "trade-off curve between false positives and negatives, as PNG")
    describes_steps(tradeoff)
    tradeoff.add_argument("--false-positive-rate", type=float, default=0.01)
    tradeoff.add_argument("--out", default="tradeoff.png")

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


def _floats(text):
    return tuple(float(part) for part in text.split(","))


def main(argv=None):
    """Run one command; returns the exit status."""
    args = build_parser().parse_args(argv)
    try:
        return args.run_command(args) or 0
    except (MinidpError, OSError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
