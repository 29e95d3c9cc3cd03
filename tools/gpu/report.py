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
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from tools.bench import machine  # before minidp, as tools.benchmark does

from minidp import plotting
from minidp.audit.html import page, picture, table, verdict
from minidp.backend import Backend
from minidp.cli import Parser, user_errors
from minidp.files import atomic_write, write_json

from . import compare, measure

SECONDS = 480  # of the whole report


def device(bench):
    """Versions and device."""
    found = {**machine.versions(), "processor": machine.processor(), "cores": machine.available_cores(),
             "device": "guarded arrays in place of a GPU, computed by NumPy: no figure here was measured on a GPU"}
    if bench.backend.name == "gpu":
        cuda = bench.backend.xp.cuda
        about, (free, total) = cuda.runtime.getDeviceProperties(cuda.Device().id), cuda.runtime.memGetInfo()
        found |= {"device": f"{about['name'].decode()}, number {cuda.Device().id} of {cuda.runtime.getDeviceCount()}",
                  "compute capability": f"{about['major']}.{about['minor']}", "multiprocessors": about["multiProcessorCount"],
                  "memory, free, GiB": f"{total / 2**30:.1f}, {free / 2**30:.1f}",
                  "CUDA of the driver, at run time": f"{cuda.runtime.driverGetVersion()}, {cuda.runtime.runtimeGetVersion()}"}
    yield from ({"what": what, "found": value} for what, value in found.items())


class Part(NamedTuple):
    """`rows(bench)` yields dictionaries, the rows of one table; `ok` False in one of them fails the part."""

    name: str
    seconds: int
    rows: Callable[[Any], Any]


PARTS = (Part("device", 15, device), Part("layers and losses", 65, compare.layers), Part("kernels", 30, compare.kernels),
         Part("training", 50, compare.training), Part("noise", 15, compare.noise), Part("independence", 20, compare.independent),
         Part("attacks", 15, measure.attacks),
         Part("steps", 130, measure.steps), Part("launches", 25, measure.launches), Part("profile", 5, measure.profile_of),
         Part("main job", 40, measure.main_job), Part("CNN", 35, measure.cnn), Part("CIFAR-10", 30, measure.cifar),
         Part("limits", 5, measure.limits))


@dataclass
class Bench:
    """What the parts are given, and the report as far as it is done."""

    backend: Backend
    device: str
    out: Path
    small: bool = False
    parts: list = field(default_factory=list)
    traces: dict = field(default_factory=dict)  # {(workload, strategy): events on the device}

    def rows(self, name):
        """The rows of an earlier part."""
        return next((part["rows"] for part in self.parts if part["name"] == name), [])


class OutOfTime(BaseException):
    """A part's seconds are used up; no library's `except Exception` may take it for an error of its own."""


@contextmanager
def at_most(seconds):
    """Raise OutOfTime in the block once it has run so long."""
    def cut(number, frame):
        raise OutOfTime(f"cut after its {seconds} seconds")

    before = signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(part, bench):
    """Append the part's record to the report, whatever becomes of it. An interrupt is passed on."""
    made = {"name": part.name, "state": "failed", "message": "", "seconds": 0.0,
            "limit_s": part.seconds * (4 if bench.small else 1),  # the small version may run beside other tests
            "about": part.rows.__doc__ or "", "rows": []}
    bench.parts.append(made)
    started = time.perf_counter()
    try:
        with at_most(made["limit_s"]):
            for row in part.rows(bench):
                made["rows"].append(row)
        wrong = sum(row.get("ok") is False for row in made["rows"])
        made.update(message=f"{wrong} of {len(made['rows'])} rows are not as they have to be") if wrong else made.update(state="passed")
    except compare.Skipped as error:
        made.update(state="skipped", message=str(error))
    except OutOfTime as error:
        made.update(message=str(error))
    except KeyboardInterrupt:
        made.update(state="interrupted")
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever fails belongs into the report
        made.update(message=f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}")
    finally:
        made["seconds"] = round(time.perf_counter() - started, 2)


def write(bench):
    """report.json and report.html of the parts so far."""
    named = next((row["found"] for row in bench.rows("device") if row["what"] == "device"), bench.device)
    write_json(bench.out / "report.json", {
        "command": f"python -m tools.gpu.report --on {bench.device}", "device": named, "small": bench.small,
        "seconds": sum(part["seconds"] for part in bench.parts), "limit_s": SECONDS, "parts": bench.parts})
    states = {"passed": "ok", "failed": "fail"}
    body = [table(["part", "state", "seconds", "at most", ""], [
        [part["name"], (part["state"], states.get(part["state"], "")), part["seconds"], part["limit_s"], part["message"]]
        for part in bench.parts])]
    for part in bench.parts:
        rows, columns = part["rows"], [name for name in (part["rows"] or [{}])[0] if name != "ok"]
        body.append(f"<h2>{escape(part['name'])}</h2>\n<p>{escape(part['about'])}</p>")
        body.append(table([*columns, ""], [
            [*(f"{row[name]:.4g}" if isinstance(row[name], float) else "-" if row[name] is None else row[name] for name in columns),
             verdict(row["ok"]) if "ok" in row else ""] for row in rows]) if rows else "")
        if part["name"] == "steps" and rows:
            body.append(picture(drawn(rows), "time of a step of each library on each workload"))
    with atomic_write(bench.out / "report.html") as file:
        file.write(page(f"minidp on {named}", "\n".join(body)))


def drawn(rows):
    """PNG: the time of a step, by workload and contender."""
    names, contenders = (list(dict.fromkeys(row[key] for row in rows)) for key in ("workload", "contender"))
    figure, (axis,) = plotting.new_figure(title="Time of a step", panel=(8, 4))
    lines = [axis.plot([row["workload"] for row in rows if row["contender"] == contender],
                       [row["step, ms"] for row in rows if row["contender"] == contender], label=contender,
                       **{**plotting.line(i), "linestyle": "none", "markersize": 8})[0] for i, contender in enumerate(contenders)]
    axis.set(yscale="log", ylabel="ms", xlim=(-0.5, len(names) - 0.5))
    plotting.legend(figure, lines)
    plotting.save(figure, png := io.BytesIO())
    return png.getvalue()


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.gpu.report", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json, report.html and the experiments' runs")
    parser.add_argument("--data", type=Path, help="folder with MNIST and CIFAR-10 (default: where minidp finds them)")
    parser.add_argument("--on", default="gpu", help="gpu, gpu:N, or guarded: arrays that stand for CuPy's (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=[part.name for part in PARTS], metavar="NAME", help="these alone")
    args = parser.parse_args(argv)
    with user_errors() as told:
        told.saved = f"what was done is in {args.out}"
        if args.on == "guarded":
            from tests.support.guarded import guarded_backend
        backend = guarded_backend() if args.on == "guarded" else Backend.pick(args.on)
        if args.data:
            os.environ["MINIDP_DATA"] = str(args.data.resolve())
        args.out.mkdir(parents=True, exist_ok=True)
        bench = Bench(backend, args.on, args.out, args.on == "guarded")
        for part in PARTS:
            if args.parts is None or part.name in args.parts:
                try:
                    run(part, bench)
                finally:
                    write(bench)
                print("{name}: {state} in {seconds} s {message}".format(**bench.parts[-1]), flush=True)
    print(f"wrote {args.out / 'report.html'}")
    return int(any(part["state"] == "failed" for part in bench.parts))


if __name__ == "__main__":
    sys.exit(main())
