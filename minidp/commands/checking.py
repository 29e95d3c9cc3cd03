"""verify, audit: check a run's files, and every formula."""

import time
from dataclasses import dataclass
from pathlib import Path

from ..errors import ParameterError
from ..run.answers import rows_of, table, text_rows
from ..run.options import REQUIRED, option
from ..util.atomic import atomic_write
from ..util.files import jsonable
from .output import check_new, force_option, json_option, show


@dataclass(frozen=True, kw_only=True)
class VerifyCommand:
    """Flags of `minidp verify`."""

    examples = "example: %(prog)s runs/mnist_pca-20260101-120000 --html verdict.html"
    folder: str = option(
        REQUIRED,
        "a run's folder, which holds ledger.json",
        metavar="FOLDER",
        positional=True,
    )
    html: str | None = option(None, "write the verdict as an HTML page", metavar="FILE")
    force: bool = force_option()
    json: bool = json_option()

    def run(self):
        """Run the command."""
        from ..audit import html

        check_new(self, self.html)
        found, report = _asked(self.folder)
        bounds, record = rows_of(report.accountants), report.record
        lines = [
            *(table(bounds, f"epsilon at delta {record.delta:g}") if bounds else ()),
            *_lines(found),
        ]
        show(
            self,
            {
                "run": self.folder,
                "questions": len(report.findings),
                "reproducible": record and record.reproducible,
                "epsilon": record and jsonable(record.epsilon),
                "differences": [f"{each.question} {each.answer}" for each in report.failed],
            },
            lines,
        )
        if self.html:
            with atomic_write(self.html) as file:
                file.write(html.page(f"Privacy of one run: {self.folder}", html.run_section(found)))
        return 1 if report.failed else 0


def _asked(folder):
    """(argument of `audit.html.run_section`, Report) for a run's folder."""
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
        "bounds": text_rows(rows_of(report.accountants), "; the row to quote"),
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


@dataclass(frozen=True, kw_only=True)
class AuditCommand:
    """Flags of `minidp audit`."""

    examples = "example: %(prog)s --card Dense"
    folder: str | None = option(
        None,
        "a run's folder: verify it, and add it to the page with its own numbers",
        metavar="FOLDER",
        positional=True,
    )
    card: str | None = option(
        None,
        "check only this class or function and its bases, or the cards of a part of the paper: "
        'Conv2D, "Theorem 2"',
        metavar="NAME",
        also=("--layer",),
    )
    step: str | None = option(
        None,
        "test your own private step: NAME (default: check) is a dictionary with the arguments of "
        "minidp.audit.check_step",
        metavar="FILE.py[:NAME]",
    )
    list: bool = option(False, "print the names that --card takes, and exit")
    all: bool = option(False, "print every equation, not only failures")
    device: str = option("auto", "auto, cpu, gpu or gpu:N")
    html: str | None = option(
        None,
        "write an HTML page with the equations beside their code (a minute or two)",
        metavar="FILE",
    )
    json: str | None = option(None, "write the same as JSON", metavar="FILE")
    force: bool = force_option()

    def run(self):
        """Run the command."""
        from ..audit import report

        check_new(self, self.html, self.json)
        if self.folder and self.list:
            raise ParameterError(f"{self.folder}: --list takes no run's folder")
        if self.step:
            return self._step()
        if self.list:
            print(*report.listing(), sep="\n")
            return 0
        found = None
        if self.folder:
            found, verified = _asked(self.folder)
            print("This run", *_lines(found), sep="\n")
        status = report.main(self.card, self.device, self.json, self.html, found, self.all)
        return 1 if self.folder and verified.failed else status

    def _step(self):
        from ..steptest.step import checked_file

        if self.folder or self.card or self.list or self.json or self.html:
            raise ParameterError("--step stands alone: its report is the text that it prints")
        found = checked_file(self.step)
        print(found)
        return {True: 0, False: 1, None: 3}[found.passed]
