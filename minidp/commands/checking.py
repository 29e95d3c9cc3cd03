"""verify, audit: whether files and formulas hold."""

import time
from pathlib import Path

from ..errors import ParameterError
from ..util.atomic import atomic_write
from ..util.files import jsonable
from .output import check_new, show, table, text_rows
from .run_flags import add as add_shared


def verify(parser):
    add = parser.add_argument
    add("run", metavar="RUN_DIR", help="the folder that a run wrote: it holds ledger.json")
    add("--html", metavar="FILE", help="write the verdict as one page")
    add_shared(parser, "--force", "--json")
    parser.epilog = "example: %(prog)s runs/mnist_pca-20260101-120000 --html verdict.html"
    return _verify


def _verify(args):
    from ..audit import html

    check_new(args, args.html)
    found, report = _asked(args.run)
    bounds, record = report.accountants, report.record
    lines = [
        *(table(bounds, f"epsilon at delta {record.delta:g}") if bounds else ()),
        *_lines(found),
    ]
    show(
        args,
        {
            "run": args.run,
            "questions": len(report.findings),
            "reproducible": record and record.reproducible,
            "epsilon": record and jsonable(record.epsilon),
            "differences": [f"{each.question} {each.answer}" for each in report.failed],
        },
        lines,
    )
    if args.html:
        with atomic_write(args.html) as file:
            file.write(html.page(f"Privacy of one run: {args.run}", html.run_section(found)))
    return 1 if report.failed else 0


def _asked(folder):
    """(what `audit.html.run_section` takes, Report) of a run's folder."""
    from ..run.folder import STATEMENT
    from ..run.verify import UNFINISHED
    from ..run.verify import verify as verify_folder
    from ..run.versions import git_commit, versions

    report = verify_folder(Path(folder))
    record, failed = report.record, len(report.failed)
    sound = None if failed else record
    asked = len(report.findings)
    text = (
        f"{asked} question{'s' if asked != 1 else ''}, {failed} "
        f"mismatch{'es' if failed != 1 else ''}: "
    )
    if report.findings[0].question == UNFINISHED:
        text += "resume the run, or count what is charged as spent."
    elif failed:
        text += "do not rely on this run's epsilon."
    else:
        text += "the run's files agree with each other and with the accountants."
    if record and record.reproducible:
        text += " This run is seeded: it can be repeated, and must not be released."
    return {
        "run": str(folder),
        "text": text,
        "verified": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "result": sound or {},
        "delta": record and record.delta,
        "findings": [(each.passed, each.question, each.answer) for each in report.findings],
        "bounds": text_rows(report.accountants, "; the row to quote"),
        "statement": Path(folder, STATEMENT).read_text(encoding="utf-8") if sound else "",
        "made_by": {**sound.versions, "commit": sound.commit} if sound else {"commit": None},
        "verified_by": {**versions(), "commit": git_commit()},
    }, report


def _lines(found):
    return [
        *(
            f"{'ok  ' if passed else 'FAIL'} {question} {answer}"
            for passed, question, answer in found["findings"]
        ),
        found["text"],
    ]


def audit(parser):
    add = parser.add_argument
    add(
        "run",
        metavar="RUN_DIR",
        nargs="?",
        help="a run's folder, which is verified and put into the same page",
    )
    add("--layer", metavar="NAME", help="only this class or function, and its bases: Conv2D")
    add(
        "--step",
        metavar="FILE.py[:NAME]",
        help="test your own private step: NAME (check, if not given) is a dictionary of the "
        "arguments of minidp.audit.check_step",
    )
    add("--list", action="store_true", help="print the names that --layer takes, and end")
    add("--latex", action="store_true", help="print the equations in LaTeX, and end")
    add("--device", default="auto", help="auto (the default), cpu, gpu or gpu:N")
    add(
        "--html",
        metavar="FILE",
        help="write a page with the equations beside their code (a minute or two)",
    )
    add("--json", metavar="FILE", help="write the same as JSON")
    add_shared(parser, "--force")
    parser.epilog = "example: %(prog)s --layer Dense"
    return _audit


def _audit(args):
    from ..audit import report

    check_new(args, args.html, args.json)
    if args.run and args.list:
        raise ParameterError(f"{args.run}: --list takes no run's folder")
    if args.step:
        return _step(args)
    if args.list:
        print(*report.listing(), sep="\n")
        return 0
    if args.latex:
        print(*report.in_latex(args.layer), sep="\n")
        return 0
    found = None
    if args.run:
        found, verified = _asked(args.run)
        print("This run", *_lines(found), sep="\n")
    status = report.main(args.layer, args.device, args.json, args.html, found)
    return 1 if args.run and verified.failed else status


def _step(args):
    from ..audit.step import checked_file

    if args.run or args.layer or args.list or args.json:
        raise ParameterError("--step goes with --html alone")
    found = checked_file(args.step)
    print(found)
    if args.html:
        found.write_html(args.html)
    return 0 if found else 1
