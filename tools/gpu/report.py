"""All that is to be known of a GPU in one command: is it right, how fast is it, and how does the
main job do on it?

    python -m tools.gpu.report --out DIR [--data DIR]       # at most 8 minutes on a card
    python -m tools.gpu.report --out DIR --on guarded       # the small version, on arrays that stand for CuPy's

DIR gets report.json, after every part, and report.html, its tables and pictures. Each part has its
seconds and is cut when they are used up. Ctrl-C leaves what was done. Exit status 1 if a part
failed, 2 without a usable GPU.
"""

import base64
import io
import os
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from tools.bench import machine  # before minidp, as tools.benchmark does

from minidp import plotting
from minidp.audit.html import page, table, verdict
from minidp.backend import Backend
from minidp.cli import Parser, user_errors
from minidp.files import atomic_write, write_json

from . import compare, measure

SECONDS = 480  # of the whole report


def device(bench):
    """Versions and device."""
    found = {
        **machine.versions(),
        "processor": machine.processor(),
        "cores": machine.available_cores(),
        "device": "guarded arrays in place of a GPU, computed by NumPy: no figure here was "
        "measured on a GPU",
    }
    if bench.backend.name == "gpu":
        cuda = bench.backend.xp.cuda
        about, (free, total) = (
            cuda.runtime.getDeviceProperties(cuda.Device().id),
            cuda.runtime.memGetInfo(),
        )
        found |= {
            "device": f"{about['name'].decode()}, number {cuda.Device().id} of "
            f"{cuda.runtime.getDeviceCount()}",
            "compute capability": f"{about['major']}.{about['minor']}",
            "multiprocessors": about["multiProcessorCount"],
            "memory, free, GiB": f"{total / 2**30:.1f}, {free / 2**30:.1f}",
            "CUDA of the driver, at run time": f"{cuda.runtime.driverGetVersion()}, "
            f"{cuda.runtime.runtimeGetVersion()}",
        }
    yield from ({"what": what, "found": value} for what, value in found.items())


# {name: (seconds, function)}; it yields the rows of a table, dictionaries, and `ok` False in one of
# them fails the part
PARTS = {
    "device": (15, device),
    "layers and losses": (65, compare.layers),
    "kernels": (30, compare.kernels),
    "training": (50, compare.training),
    "noise": (15, compare.noise),
    "independence": (20, compare.independent),
    "attacks": (15, measure.attacks),
    "steps": (130, measure.steps),
    "main job": (40, measure.main_job),
    "CNN": (30, measure.cnn),
    "CIFAR-10": (30, measure.cifar),
    "limits": (5, measure.limits),
}


@dataclass
class Bench:
    """What the parts are given, and the report as far as it is done."""

    backend: Backend
    out: Path
    small: bool = False
    parts: dict = field(default_factory=dict)  # {name: what became of it, its rows}


class OutOfTime(BaseException):
    """A part's seconds are used up; no library's `except Exception` may take it for an error of its
    own.
    """


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


def run(name, bench):
    """Put the part into the report, whatever becomes of it. An interrupt is passed on."""
    seconds, rows = PARTS[name]
    seconds *= 4 if bench.small else 1  # the small version may run beside other tests
    made = bench.parts[name] = {
        "state": "failed",
        "message": "",
        "seconds": 0.0,
        "limit_s": seconds,
        "about": rows.__doc__ or "",
        "rows": [],
    }
    started = time.perf_counter()
    try:
        with at_most(seconds):
            for row in rows(bench):
                made["rows"].append(row)
        wrong = sum(row.get("ok") is False for row in made["rows"])
        made.update(
            message=f"{wrong} of {len(made['rows'])} rows are not as they have to be"
        ) if wrong else made.update(state="passed")
    except compare.Skipped as error:
        made.update(state="skipped", message=str(error))
    except OutOfTime as error:
        made.update(message=str(error))
    except KeyboardInterrupt:
        made.update(state="interrupted")
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever fails belongs into the report
        made.update(
            message=f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
        )
    finally:
        made["seconds"] = round(time.perf_counter() - started, 2)
        if bench.backend.name == "gpu":  # what comes next may be another process
            bench.backend.xp.get_default_memory_pool().free_all_blocks()


def write(bench):
    """report.json and report.html of the parts so far."""
    text = lambda value: (
        "-" if value is None else f"{value:.4g}" if isinstance(value, float) else value
    )
    spent, states = (
        sum(part["seconds"] for part in bench.parts.values()),
        {"passed": "ok", "failed": "fail"},
    )
    write_json(
        bench.out / "report.json",
        {
            "on": bench.backend.name,
            "small": bench.small,
            "seconds": spent,
            "limit_s": SECONDS,
            "parts": bench.parts,
        },
    )
    body = [
        table(
            ["part", "state", "seconds", "at most", ""],
            [
                [
                    name,
                    (part["state"], states.get(part["state"], "")),
                    part["seconds"],
                    part["limit_s"],
                    part["message"],
                ]
                for name, part in bench.parts.items()
            ],
        )
    ]
    for name, part in bench.parts.items():
        rows, columns = (
            part["rows"],
            [title for title in (part["rows"] or [{}])[0] if title != "ok"],
        )
        body += [
            f"<h2>{escape(name)}</h2>\n<p>{escape(part['about'])}</p>",
            table(
                [*columns, ""],
                [
                    [
                        *(text(row.get(title)) for title in columns),
                        verdict(row["ok"]) if "ok" in row else "",
                    ]
                    for row in rows
                ],
            )
            if rows
            else "",
        ]
        if name == "steps" and "step, ms" in columns:
            body.append(
                f'<img alt="time of each library\'s step" '
                f'src="data:image/png;base64,{base64.b64encode(drawn(rows)).decode()}"/>'
            )
    with atomic_write(bench.out / "report.html") as file:
        file.write(
            page(
                f"minidp on {'a GPU' if bench.backend.name == 'gpu' else 'arrays that stand for those of a GPU'}",
                "\n".join(body),
            )
        )


def drawn(rows):
    """PNG: the time of a step, by workload and contender."""
    rows = [row for row in rows if "step, ms" in row]
    names, contenders = (
        list(dict.fromkeys(row[key] for row in rows)) for key in ("workload", "contender")
    )
    figure, (axis,) = plotting.new_figure(title="Time of a step", panel=(8, 4))
    lines = [
        axis.plot(
            [row["workload"] for row in rows if row["contender"] == contender],
            [row["step, ms"] for row in rows if row["contender"] == contender],
            label=contender,
            **{**plotting.line(i), "linestyle": "none", "markersize": 8},
        )[0]
        for i, contender in enumerate(contenders)
    ]
    axis.set(yscale="log", ylabel="ms", xlim=(-0.5, len(names) - 0.5))
    plotting.legend(figure, lines)
    plotting.save(figure, png := io.BytesIO())
    return png.getvalue()


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.gpu.report", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder for report.json, report.html and the experiments' runs",
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with MNIST and CIFAR-10 (default: where minidp finds them)",
    )
    parser.add_argument(
        "--on",
        default="gpu",
        choices=("gpu", "guarded"),
        help="guarded: arrays that stand for CuPy's (default: %(default)s)",
    )
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME", help="these alone"
    )
    args = parser.parse_args(argv)
    with user_errors() as told:
        told.saved = f"what was done is in {args.out}"
        if args.on == "guarded":
            from tests.support.guarded import guarded_backend
        bench = Bench(
            guarded_backend() if args.on == "guarded" else Backend.pick("gpu"),
            args.out,
            args.on == "guarded",
        )
        if args.data:
            os.environ["MINIDP_DATA"] = str(args.data.resolve())
        args.out.mkdir(parents=True, exist_ok=True)
        for name in args.parts:
            try:
                run(name, bench)
            finally:
                write(bench)
            print(
                name + ": {state} in {seconds} s {message}".format(**bench.parts[name]), flush=True
            )
    print(f"wrote {args.out / 'report.html'}")
    return int(any(part["state"] == "failed" for part in bench.parts.values()))


if __name__ == "__main__":
    sys.exit(main())
