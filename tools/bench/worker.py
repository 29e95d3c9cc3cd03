"""One contender in a process of its own, told by a pipe when to run.

    python -m tools.bench.worker THREADS

Each line of standard input is a JSON object, and so is each answer on standard output:

    {"do": "prepare", "contender": "torch", "workload": {...}, "device": "cpu"}
        {"step_s": 0.002, "versions": {...}, "products": {...}, "peak_mib": 12.3, "process_mib":
        150.0, ...}
    {"do": "turn", "seconds": 0.1, "most": 20}
        {"times_s": [0.0019, ...], "peak_mib": 12.4, "process_mib": 150.1, ...}

What goes wrong is answered as {"error": "..."}. The end of the input ends the process.
"""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

from tools.bench.workloads import Workload

WARM_BELOW = 0.2  # seconds; a longer step warms itself up


class Worker:
    """What a process does when asked."""

    def __init__(self):
        self.step, self.step_s, self.before, self.device_peak = None, None, None, None

    def prepare(self, contender, workload, device):
        """Build the step, run it three times, and say how long the last took."""
        from tools.bench import machine

        sizes = {
            **workload,
            "layers": tuple(map(tuple, workload["layers"])),
            "input_shape": tuple(workload["input_shape"]),
        }
        modules = {"jax": "jax_peers", "torch": "torch_peers", "opacus": "torch_peers"}
        module = importlib.import_module(
            f"tools.bench.{modules.get(contender.partition('-')[0], 'ours')}"
        )
        self.step, self.device_peak = module.make(contender, Workload(**sizes), device)
        _give_back()
        self.before = _status("VmRSS")
        _reset_peak()
        for _ in range(3):
            self.step_s = self._timed()
        return {
            "step_s": self.step_s,
            "versions": machine.versions(),
            "products": machine.products(),
            **self._memory(),
        }

    def turn(self, seconds, most):
        """Run untimed for a third of the time, to wake threads and caches, then timed until the
        time is up.
        """
        if self.step_s < WARM_BELOW:
            self._repeat(seconds / 3, most)
        return {"times_s": self._repeat(seconds, most), **self._memory()}

    def _memory(self):
        """The peak of all steps so far: what they added, the whole process, and the device's."""
        peak = _status("VmHWM")
        return {
            "peak_mib": (peak - self.before) / 2**20,
            "process_mib": peak / 2**20,
            "device_mib": self.device_peak() / 2**20 if self.device_peak else None,
        }

    def _repeat(self, seconds, most):
        """Times of at least one step and at most `most`, as many as begin before the time is up."""
        times, end = [], time.perf_counter() + seconds
        while not times or (time.perf_counter() < end and len(times) < most):
            times.append(self._timed())
        return times

    def _timed(self):
        started = time.perf_counter()
        self.step()
        return time.perf_counter() - started


def _give_back():
    """Let the allocator return what it has free, so that it does not hide what the steps need."""
    trim = (
        getattr(ctypes.CDLL(None), "malloc_trim", None)
        if sys.platform.startswith("linux")
        else None
    )
    if trim:
        trim(0)


def _status(name):
    """Bytes of this process by /proc; where there is none, its peak so far."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _reset_peak():
    """Let the peak start from here; where the system has no such switch, the peak so far counts
    too.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def main(threads):
    """Answer until the input ends."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the process that asks decides what it means, and closes the pipe
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not come between the answers
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except SystemExit as error:
            answer = {"error": str(error)}
        except Exception as error:  # noqa: BLE001  whatever a library raises is an answer
            answer = {
                "error": f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
            }
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
