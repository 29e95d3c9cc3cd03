"""All that is to be known of a GPU in one command: is it right, how fast is it, and how does the main job do on it?

    python -m tools.gpu.report --out DIR [--data DIR]       # at most 8 minutes on a card
    python -m tools.gpu.report --out DIR --on guarded       # the small version, on arrays that stand for CuPy's

DIR gets report.json, after every part, and report.html, its tables and pictures. Each part has its seconds and is cut
when they are used up. Ctrl-C leaves what was done. Exit status 1 if a part failed, 2 without a usable GPU.
"""
import io
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tools.bench import machine  # before minidp, as tools.benchmark does

from html import escape

from minidp import plotting
from minidp.audit.html import page, picture, table, verdict
from minidp.backend import Backend
from minidp.cli import Parser, user_errors
from minidp.files import atomic_write, write_json

from . import compare, measure

SECONDS = 480  # of the whole report


class Part(NamedTuple):
    """Rows that `rows(bench)` yields, dictionaries of one table; `ok` False in one of them fails the part."""

    name: str
    seconds: int
    rows: Callable[[Any], Any]


def device(bench):
    """Versions and device."""
    xp, found = bench.backend.xp, {**machine.versions(), "processor": machine.processor(), "cores": machine.available_cores()}
    if bench.backend.name == "gpu":
        runtime = xp.cuda.runtime
        number = xp.cuda.Device().id
        about = runtime.getDeviceProperties(number)
        free, total = runtime.memGetInfo()
        found.update({"device": f"{about['name'].decode()} (number {number} of {runtime.getDeviceCount()})",
                      "compute capability": f"{about['major']}.{about['minor']}", "multiprocessors": about["multiProcessorCount"],
                      "memory, GiB": total / 2**30, "free, GiB": free / 2**30,
                      "CUDA of the driver": runtime.driverGetVersion(), "CUDA runtime": runtime.runtimeGetVersion()})
    else:
        found["device"] = "none: guarded arrays, computed by NumPy; no figure here was measured on a GPU"
    for what, value in found.items():
        yield {"what": what, "found": value}


PARTS = (Part("device", 15, device), Part("layers and losses", 75, compare.layers),
         Part("training", 60, compare.training), Part("noise", 15, compare.noise),
         Part("independence", 20, compare.independent), Part("attacks", 20, measure.attacks),
         Part("steps", 130, measure.steps), Part("launches", 25, measure.launches), Part("profile", 5, measure.profile_of),
         Part("main job", 40, measure.main_job), Part("CNN", 35, measure.cnn), Part("CIFAR-10", 35, measure.cifar),
         Part("limits", 5, measure.limits))


@dataclass
class Bench:
    """What the parts are given, and the report as far as it is done."""

    backend: Backend
    device: str
    out: Path
    small: bool = False
    parts: list = field(default_factory=list)

    def note(self, text):
        """Put a sentence above the table of the part at hand."""
        self.parts[-1]["notes"].append(text)

    def rows(self, name):
        """The rows of an earlier part."""
        return next((part["rows"] for part in self.parts if part["name"] == name), [])


class OutOfTime(BaseException):
    """A part's seconds are used up; no library's `except Exception` may take it for an error of its own."""


@contextmanager
def at_most(seconds):
    """Raise OutOfTime in the block once it has run so long; where there are no alarms, let it run."""
    def cut(number, frame):
        raise OutOfTime

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(part, bench):
    """Append the part's record to the report, whatever becomes of it. An interrupt is passed on."""
    made = {"name": part.name, "state": "passed", "message": "", "seconds": 0.0, "budget_s": part.seconds, "notes": [], "rows": []}
    bench.parts.append(made)
    started = time.perf_counter()
    try:
        with at_most(part.seconds):
            for row in part.rows(bench):
                made["rows"].append(row)
        wrong = sum(row.get("ok") is False for row in made["rows"])
        if wrong:
            made.update(state="failed", message=f"{wrong} of {len(made['rows'])} rows are not as they have to be")
    except measure.Skipped as error:
        made.update(state="skipped", message=str(error))
    except OutOfTime:
        made.update(state="failed", message=f"cut after its {part.seconds} seconds")
    except KeyboardInterrupt:
        made.update(state="interrupted", message="Ctrl-C")
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever fails belongs into the report
        made.update(state="failed", message=f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}")
    finally:
        made["seconds"] = round(time.perf_counter() - started, 2)


def pages(report):
    """The page: what became of each part, then its table, and pictures of the times."""
    title = f"minidp on {report['device']}"
    head = table(["part", "", "seconds", "of", ""], [
        [part["name"], (part["state"], {"passed": "ok", "failed": "fail"}.get(part["state"], "")), f"{part['seconds']:.1f}",
         part["budget_s"], part["message"]] for part in report["parts"]])
    body = [f"<p>{escape(report['command'])}</p>", head]
    for part in report["parts"]:
        body.append(f"<h2>{escape(part['name'])}</h2>\n" + "".join(f"<p>{escape(note)}</p>" for note in part["notes"]))
        if part["rows"]:
            columns = [name for name in part["rows"][0] if name != "ok"]
            body.append(table([*columns, ""], [[*(shown(row.get(name)) for name in columns), verdict(row["ok"]) if "ok" in row else ""]
                                               for row in part["rows"]]))
        if part["name"] == "steps" and part["rows"]:
            body.append(picture(drawn(part["rows"]), "time of a step of each library on each workload"))
    return page(title, "\n".join(body))


def shown(value):
    """A cell's text."""
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else value


def drawn(rows):
    """PNG: the time of a step, by workload and contender."""
    names, contenders = (list(dict.fromkeys(row[key] for row in rows)) for key in ("workload", "contender"))
    figure, (axis,) = plotting.new_figure(title="Time of a step", panel=(8, 4))
    width = 0.8 / len(contenders)
    bars = [axis.bar([names.index(row["workload"]) + i * width for row in rows if row["contender"] == contender],
                     [row["step, ms"] for row in rows if row["contender"] == contender], width, label=contender,
                     color=plotting.COLOURS[i % len(plotting.COLOURS)], hatch="" if i < len(plotting.COLOURS) else "//")
            for i, contender in enumerate(contenders)]
    axis.set(yscale="log", ylabel="ms", xticks=[i + 0.4 - width / 2 for i in range(len(names))], xticklabels=names)
    plotting.legend(figure, bars)
    plotting.save(figure, png := io.BytesIO())
    return png.getvalue()


def write(bench, command):
    """report.json and report.html of the parts so far."""
    named = next((row["found"] for row in bench.rows("device") if row["what"] == "device"), bench.device)
    report = {"command": command, "device": named, "small": bench.small, "seconds": sum(part["seconds"] for part in bench.parts),
              "limit_s": SECONDS, "parts": bench.parts}
    write_json(bench.out / "report.json", report)
    with atomic_write(bench.out / "report.html") as file:
        file.write(pages(report))


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.gpu.report", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json, report.html and the experiments' runs")
    parser.add_argument("--data", type=Path, help="folder with MNIST and CIFAR-10 (default: where minidp finds them)")
    parser.add_argument("--on", default="gpu", help="gpu, gpu:N, or guarded: arrays that stand for CuPy's (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=[part.name for part in PARTS], metavar="NAME", help="these alone")
    args = parser.parse_args(argv)
    command = " ".join(["python -m tools.gpu.report", *(f"--{name} {value}" for name, value in (("on", args.on),))])
    with user_errors() as told:
        told.saved = f"what was done is in {args.out}"
        if args.on == "guarded":
            from tests.support.guarded import guarded_backend

            backend = guarded_backend()
        else:
            backend = Backend.pick(args.on)
        if args.data:
            os.environ["MINIDP_DATA"] = str(args.data.resolve())
        args.out.mkdir(parents=True, exist_ok=True)
        bench = Bench(backend, args.on, args.out, args.on == "guarded")
        try:
            for part in PARTS:
                if args.parts is None or part.name in args.parts:
                    print(f"{part.name} ...", end=" ", flush=True)
                    run(part, bench)
                    print(f"{bench.parts[-1]['state']} in {bench.parts[-1]['seconds']} s {bench.parts[-1]['message']}", flush=True)
                    write(bench, command)
        except KeyboardInterrupt:
            write(bench, command)
            raise
    print(f"wrote {args.out / 'report.html'}")
    return int(any(part["state"] == "failed" for part in bench.parts))


if __name__ == "__main__":
    sys.exit(main())
