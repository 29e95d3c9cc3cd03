"""verify, audit: whether files and formulas hold."""
from pathlib import Path

from ..files import atomic_write
from ..numbers import bound_texts
from .output import check_new, show, table
from .setting import add


def verify(parser):
    parser.add_argument("run", metavar="RUN_DIR", help="the folder that a run wrote: it holds ledger.json")
    parser.add_argument("--html", metavar="FILE", help="write the verdict as one page")
    add(parser, "--force", "--json")
    parser.epilog = "example: %(prog)s runs/mnist_pca-20260101-120000 --html verdict.html"
    return _verify


def _verify(args):
    from ..audit import html
    from ..run.verify import UNFINISHED
    from ..run.verify import verify as verify_folder

    check_new(args, args.html)
    findings, bounds, result = report = verify_folder(Path(args.run))
    failed = len(report.failed)
    text = (f"{len(findings)} questions, {failed} mismatches: "
            + ("go on with the run, or count what is charged as spent." if findings[0].question == UNFINISHED else
               "do not rely on this run's epsilon." if failed else
               "the run's files agree with each other and with the accountants.")
            + " This run is seeded: it can be repeated, and must not be released." * bool(result.get("reproducible")))
    lines = [*(table(bounds, f"epsilon at delta {result['delta']:g}") if bounds else ()),
             *(f"{'ok  ' if each.passed else 'FAIL'} {each.question} {each.answer}" for each in findings), text]
    show(args, {"run": args.run, "questions": len(findings), "reproducible": result.get("reproducible"),
                "epsilon": result.get("epsilon"), "differences": [f"{each.question} {each.answer}" for each in report.failed]}, lines)
    if args.html:
        asked = [(html.verdict(each.passed), *each[:2]) for each in findings]
        rows = [(name, *bound_texts(bound), kind, note) for name, (bound, kind, note) in bounds.items()]
        body = f"<p>{text}</p>{html.table(('', 'question', 'answer'), asked)}<h2>epsilon</h2>" + html.table(
            ("accountant", "lower", "estimate", "upper", "kind", "what it is"), rows)
        with atomic_write(args.html) as file:
            file.write(html.page(f"Privacy of one run: {args.run}", body))
    return 1 if failed else 0


def audit(parser):
    parser.add_argument("--layer", metavar="NAME", help="only this class or function, and its bases: Conv2D")
    parser.add_argument("--mutants", action="store_true", help="break every labelled line: a check must notice")
    parser.add_argument("--device", default="auto", help="auto (the default), cpu, gpu or gpu:N")
    parser.add_argument("--html", metavar="FILE", help="write a page with the equations beside their code")
    parser.add_argument("--json", metavar="FILE", help="write the same as JSON")
    add(parser, "--force")
    parser.epilog = "example: %(prog)s --layer Dense"
    return _audit


def _audit(args):
    from ..audit import mutants, report

    check_new(args, args.html, args.json)
    return mutants.main(args.layer) if args.mutants else report.main(args.layer, args.device, args.json, args.html)
