"""verify, audit: whether files and formulas hold."""
from pathlib import Path

from ..files import atomic_write
from ..numbers import bound_texts
from .output import add_force, add_json, check_new, show, table


def verify(parser):
    """Flags of `verify`."""
    parser.add_argument("run", metavar="RUN_DIR", help="the folder that a run wrote: it holds ledger.json")
    parser.add_argument("--html", metavar="FILE", help="write the verdict as one page")
    add_force(parser)
    add_json(parser)
    parser.epilog = "example: %(prog)s runs/mnist_pca-20260101-120000 --html verdict.html"
    return _verify


def _verify(args):
    from ..audit.html import page, table as html_table, verdict
    from ..run.verify import verify as verify_folder

    check_new(args, args.html)
    findings, bounds, result = report = verify_folder(Path(args.run))
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


def audit(parser):
    """Flags of `audit`."""
    add = parser.add_argument
    add("--layer", metavar="NAME", help="only this class or function and what it inherits, such as Conv2D")
    add("--mutants", action="store_true", help="break every labelled line on purpose: a check must notice")
    add("--device", default="auto", help="where to compute on arrays: auto, cpu, gpu or gpu:N (default: %(default)s)")
    add("--html", metavar="FILE", help="write a page with the equations beside their code")
    add("--json", metavar="FILE", help="write the same as JSON")
    add_force(parser)
    parser.epilog = "example: %(prog)s --layer Dense"
    return _audit


def _audit(args):
    from ..audit import mutants, report

    check_new(args, args.html, args.json)
    if args.mutants:
        return mutants.main(args.layer)
    return report.main(args.layer, args.device, args.json, args.html)
