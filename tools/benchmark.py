"""Time one private step beside its floor and beside other libraries.

    python -m tools.benchmark                                # all workloads, all peers
    python -m tools.benchmark --workloads W1 --peers none    # minidp and the floor alone
    python -m tools.benchmark --rounds 30 --json found.json
    python -m tools.benchmark --device gpu                   # every contender on the GPU

A private step draws the lot, computes the gradients, clips, sums, adds noise and updates. The floor
is the bare matrix products of forward and backward (without the first layer's input gradient) and
one draw of the noise. `torch` and `jax` are the steps of PyTorch and JAX without privacy;
`opacus-ghost` is Opacus's private step with ghost clipping. The peers gather lots of a fixed size
that were drawn before, which is cheaper than what a private step has to do.

Each contender is a process of its own, with as many threads as cores and an allocator that keeps
the pages that it frees. A step ends when its device is done. A round gives each contender one turn,
in random order, one at a time. A ratio is the median over the rounds of the ratio within the round,
because what disturbs the machine then disturbs both. Ctrl-C keeps the workloads that are done.
"""

from minidp import host

host.tune()  # before NumPy loads

import os
import random
import shlex
import signal
import statistics
import sys
import time
from multiprocessing import get_context

from minidp.commands.flags import Parser, user_errors, whole_number
from minidp.util.files import write_json
from minidp.util.validate import count
from tools import machine
from tools.contenders import MAKERS, STRATEGIES, WORKLOADS

PEERS = ("torch", "jax", "opacus-ghost")
SETTLE = 0.06  # seconds between turns, in which the threads of the contender before stop spinning
# of the contenders' environment
KEEP_PAGES = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # JAX takes a GPU's memory from the others otherwise
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def contend(pipe, workload, device, contender):
    """Be the process of one contender: prepare its step, say what it runs on, or why it cannot run,
    as text; then answer each number of seconds with the milliseconds of a turn.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    try:
        step = MAKERS[contender](workload, device)
        for _ in range(3):
            step()
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    pipe.send({"versions": machine.versions(), "products": machine.products()})
    while True:
        pipe.send(turn(step, pipe.recv()))


def turn(step, seconds):
    """The median milliseconds of a turn's steps, three at least; their first third only wakes
    threads and caches.
    """
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        started = time.perf_counter()
        step()
        times.append(1000 * (time.perf_counter() - started))
    return round(statistics.median(times[len(times) // 3 :]), 4)


def start(*which):
    """(process, the pipe to it) of one contender."""
    context = get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=contend, args=(theirs, *which), daemon=True)
    process.start()
    theirs.close()
    return process, pipe


def prepared(pipe):
    """What a contender says when it is ready, or why it is not."""
    try:
        return pipe.recv()
    except EOFError:
        return "its process ended"


def hold(workload, names, rounds, device="cpu", seconds=0.1):
    """The rows and ratios of the named contenders on one workload, and why others were left out."""
    contenders = {name: start(workload, device, name) for name in names}
    about = {name: prepared(pipe) for name, (_, pipe) in contenders.items()}
    left_out = {name: said for name, said in about.items() if isinstance(said, str)}
    turns = {name: [] for name in names if name not in left_out}
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample([*turns], len(turns)):
            _, pipe = contenders[name]
            time.sleep(SETTLE)
            pipe.send(seconds)
            turns[name].append(pipe.recv())
    for process, _ in contenders.values():
        process.kill()
    return {
        "workload": workload.name,
        "lot": workload.lot,
        "device": device,
        **machine.gpu(device),
        "rounds": rounds,
        "threads": machine.available_cores(),
        "processor": machine.processor(),
        "rows": [
            {"contender": name, "step_ms": statistics.median(each), "turns_ms": each, **about[name]}
            for name, each in turns.items()
        ],
        "ratios": ratios(turns),
        "left_out": left_out,
    }


def ratios(turns):
    """[{"of", "to", "ratio"}]: our steps against the floor and the peers.

    turns: {contender: milliseconds of each round}
    """
    found = []
    for ours in filter(turns.get, STRATEGIES):
        for other in filter(turns.get, ("floor", *PEERS)):
            within = [a / b for a, b in zip(turns[ours], turns[other], strict=True)]
            found.append({"of": ours, "to": other, "ratio": statistics.median(within)})
    return found


def shown(contest):
    """Lines of a contest: each contender's step, then ours as shares of the others."""
    for row in contest["rows"]:
        yield f"{contest['workload']} {row['contender']}: {row['step_ms']:.3g} ms a step"
    for pair in contest["ratios"]:
        yield f"{contest['workload']} {pair['of']} / {pair['to']}: {pair['ratio']:.2f}"


def main(argv=None):
    """Run the command line; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    parser = Parser(prog="python -m tools.benchmark", description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=STRATEGIES)
    parser.add_argument("--peers", nargs="+", choices=(*PEERS, "none"), default=PEERS)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--rounds", type=whole_number, default=15, help="turns of each contender")
    parser.add_argument("--json", metavar="FILE", help="written after every workload")
    args = parser.parse_args(argv)
    names = [*args.strategies, "floor", *(name for name in args.peers if name != "none")]
    command = shlex.join(["python", "-m", "tools.benchmark", *argv])
    os.environ |= KEEP_PAGES | dict.fromkeys(THREADS, str(machine.available_cores()))
    contests = []
    with user_errors() as note:
        count(1, rounds=args.rounds)
        note.saved = "workloads that were done are printed, and in the file of --json"
        for name in args.workloads:
            contest = hold(WORKLOADS[name], names, args.rounds, args.device)
            contests.append(contest | {"command": command})
            for contender, reason in contests[-1]["left_out"].items():
                print(f"left out: {contender}: {reason}", file=sys.stderr)
            print(*shown(contests[-1]), "", sep="\n", flush=True)
            if args.json:
                write_json(args.json, {"contests": contests})
    return 0 if any(contest["rows"] for contest in contests) else 1


if __name__ == "__main__":
    sys.exit(main())
