"""Time and peak memory of one private step, beside its floor and beside other libraries.

    python -m tools.benchmark                                 # all workloads, what suits each, a table
    python -m tools.benchmark --workloads W1 --peers none     # minidp and the floor alone
    python -m tools.benchmark --lots 60 600 6000 60000 --workloads W1 --picture lots.png
    python -m tools.benchmark --workloads W4 --json all.json --merge   # measure a part again

A step draws the lot, computes the gradients, clips, adds noise and updates. `floor` is the bare
matrix products of forward and backward (without the first layer's input gradient) and one draw of
the noise; `copy` is a copy as large as the lot's materialised gradients. The peers are the steps of
PyTorch and JAX without privacy, and Opacus's and JAX's private ones; `+pages` gives them an
allocator that keeps what it frees, as minidp's does. They gather a lot of fixed size drawn before,
which is cheaper than what the private step here has to do.

Every contender is a process of its own. They take turns in random order, one at a time, with the
same number of threads; a turn is a tenth of a second of timed steps, after some untimed ones. A
ratio is the median over the rounds of the ratio within the round. Peak memory is the growth of the
peak RSS during the steps over the RSS with data and parameters loaded. Ctrl-C leaves what was
measured.
"""

import argparse
import itertools
import shlex
import signal
import sys
from pathlib import Path

from tqdm import tqdm

from tools.bench import contest, report  # before minidp: they keep the environment as it was
from tools.bench.ours import FLOORS, STRATEGIES
from tools.bench.workloads import WORKLOADS
from tools import tables
from minidp.cli import Parser, user_errors
from minidp.errors import MinidpError
from minidp.files import read_json, write_json


def positive(text):
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text}")
    return value


def parser():
    """The command line."""
    made = Parser(prog="python -m tools.benchmark", description=__doc__.splitlines()[0])
    made.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    made.add_argument(
        "--strategies",
        nargs="+",
        choices=(*STRATEGIES, "none"),
        help="default: those that suit the workload",
    )
    made.add_argument("--floors", nargs="+", choices=(*FLOORS, "none"), default=["floor"])
    made.add_argument(
        "--peers",
        nargs="+",
        choices=(*contest.PEERS, "none"),
        metavar="PEER",
        help=f"{', '.join(contest.PEERS)} or none; default: those installed that suit the workload",
    )
    made.add_argument(
        "--peers-python",
        default=sys.executable,
        metavar="PYTHON",
        help="an interpreter that has the peers (default: this one)",
    )
    made.add_argument(
        "--lots",
        nargs="+",
        type=positive,
        metavar="L",
        help="sizes of the lot (default: the workload's)",
    )
    made.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    made.add_argument(
        "--threads",
        type=positive,
        default=contest.Settings.threads,
        help="of every contender (default: the cores available)",
    )
    made.add_argument(
        "--rounds", type=positive, default=contest.Settings.rounds, help="turns of each contender"
    )
    made.add_argument(
        "--json", metavar="FILE", help="write the results there, after every workload and lot"
    )
    made.add_argument(
        "--merge", action="store_true", help="keep what --json FILE has of other workloads and lots"
    )
    made.add_argument(
        "--picture", metavar="FILE", help="draw time and memory against the lot there (PNG)"
    )
    made.add_argument(
        "--smoke", action="store_true", help="a few examples and rounds: is everything in order?"
    )
    return made


def names_for(workload, args, installed):
    """The contenders on one workload, in the order of the table."""
    strategies = args.strategies or workload.strategies
    peers = args.peers or [peer for peer in contest.PEERS if contest.suits(peer, workload)]
    usable = [peer for peer in peers if peer != "none" and contest.needs(peer) <= set(installed)]
    return [name for name in (*strategies, *args.floors, *usable) if name != "none"]


def before(args):
    """The contests to keep of the file that is merged into. Raises MinidpError where it is no such
    file.
    """
    if not args.merge or not Path(args.json).exists():
        return []
    found = read_json(args.json, MinidpError).get("contests")
    if not isinstance(found, list):
        raise MinidpError(f"--merge: {args.json} is not a result of this tool")
    return found


def command(argv):
    """The command that makes a result again, without folders."""
    return shlex.join(
        [
            "python",
            "-m",
            "tools.benchmark",
            *(Path(word).name if "/" in word else word for word in argv),
        ]
    )


def main(argv=None):
    """The command line; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    options = parser()
    args = options.parse_args(argv)
    for flag in ("json", "picture"):
        path = getattr(args, flag)
        if path and not Path(path).resolve().parent.is_dir():
            options.error(f"--{flag} {path}: no such folder")
        if path and Path(path).is_dir():
            options.error(f"--{flag} {path}: is a folder; name a file in it")
    if args.merge and not args.json:
        options.error("--merge needs --json FILE")
    settings = contest.Settings(
        args.device,
        args.threads,
        2 if args.smoke else args.rounds,
        0 if args.smoke else contest.Settings.seconds,
        peers_python=args.peers_python,
    )
    with user_errors():
        from minidp.backend import Backend

        Backend.pick(args.device)
        contests = before(args)
        installed = contest.peers_installed(args.peers_python) if args.peers != ["none"] else []
    missing = [name for name in ("torch", "opacus", "jax") if name not in installed]
    if missing and args.peers != ["none"]:
        print(
            f"left out: {', '.join(missing)} not installed there; pip install 'minidp[peers]'",
            file=sys.stderr,
        )
    interrupted, measured = False, False
    try:
        for workload, lot in itertools.product(
            map(WORKLOADS.get, args.workloads), args.lots or [None]
        ):
            one, interrupted = run(workload, lot or workload.lot, args, settings, installed)
            if one:
                measured = True
                one["command"] = command(argv)
                kept = [old for old in contests if identity(old) != identity(one)]
                contests = sorted([*kept, one], key=identity)
                if args.json:
                    write_json(args.json, {"contests": contests, **report.summary(contests)})
                print(*tables.markdown(report.COLUMNS, report.table(one)), "", sep="\n", flush=True)
            if interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
    if args.picture and measured:
        from tools.bench.tables import lot_sizes

        lot_sizes(contests, args.picture)
    for path in (args.json, args.picture):
        if path and measured:
            print(f"wrote {path}", file=sys.stderr)
    return 130 if interrupted else 0 if measured else 1


def identity(one):
    """What tells one contest from another."""
    return one["workload"], one["device"], one["threads"], one["lot"]


def run(workload, lot, args, settings, installed):
    """(contest, whether it was interrupted); the contest is None if nothing was measured."""
    usual = lot == workload.lot
    workload = workload.of_lot(lot)
    if args.smoke:
        workload = workload.small()
    names = names_for(workload, args, installed)
    with tqdm(total=len(names) * (1 + settings.rounds), leave=False, disable=None) as bar:
        rows, interrupted = contest.hold(
            workload, names, settings, lambda line: print(line, file=sys.stderr), bar
        )
    if not rows:
        return None, interrupted
    return {
        "workload": workload.name,
        "lot": workload.lot,
        "usual_lot": usual and not args.smoke,
        **contest.conditions(settings),
        "rows": rows,
        "ratios": report.ratios(rows),
    }, interrupted


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a time limit is as good as Ctrl-C
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
