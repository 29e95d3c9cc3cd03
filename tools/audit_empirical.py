"""Attack private training: lower bounds on epsilon beside the certified ones, and the ledger
of 2016.

    python -m tools.audit_empirical --json experiments/results/audit_attacks.json

Trains with the library's own Trainer, Sanitizer and Sampler; two pictures go beside the JSON.
Ctrl-C keeps finished parts, and the same command resumes. Exit status 1 if a bound lies, beyond
doubt, above the certified epsilon, or if an attack falls short of what it has to reach; 2 for user
errors. A lower bound proves nothing safe: it shows how much of epsilon an attack reaches.
"""

import secrets
import sys
import time
from functools import cache, partial
from hashlib import sha256
from itertools import product
from pathlib import Path

from minidp.commands.flags import Parser, user_errors
from minidp.data import load
from minidp.run.progress import stop_on_interrupt
from minidp.util.files import read_json, write_json
from minidp.util.text import lower_text, upper_text
from tools.attacks import black_box, canaries, pictures
from tools.machine import available_cores, processor, vector_flags, versions

SETTINGS, EPSILONS = ((1.0, 10), (0.01, 1000)), (1.0, 2.0, 4.0, 8.0)  # q, T; certified
SHARE, BLACK_BOX = 0.94, 6.5  # of the certified epsilon, and epsilon, that attacks have to reach
BOX = "black box, worst-case start"
upper, lower = partial(upper_text, decimals=2), partial(lower_text, decimals=2)


def units(smoke, box):
    """{name: function of a seed} of all there is to do, a few seconds' work each, with results that
    JSON holds.
    """
    small = (4.0,), 30, {"lots": (100, 1000), "reach": 0.5}
    epsilons, side, paper = small if smoke else (EPSILONS, 75, {})
    found = {
        f"attack q={q:g} T={steps} epsilon={epsilon:g}": partial(
            canaries.attack, epsilon, q, steps, side=side
        )
        for (q, steps), epsilon in product(SETTINGS, epsilons)
    }
    found["2016"] = partial(canaries.attack_2016, **paper)
    runs = black_box.CHUNK if smoke else box().needed()
    return found | {
        f"black box {start}": lambda seed: box().scores(seed)
        for start in range(0, runs, black_box.CHUNK)
    }


def summary(done, box):
    """The figures of all units."""
    runs = [found for name, found in done.items() if name.startswith("black box ")]
    return {
        "delta": canaries.DELTA,
        "confidence": 1 - canaries.ERROR,
        "ledger_2016": done["2016"],
        "attacks": [found for key, found in done.items() if key.startswith("attack ")],
        "black_box": box.figures(*(sum(scores, []) for scores in zip(*runs))),
    }


def verdicts(result, smoke=False):
    """Yield (what has to hold, whether it does); what the black box has to reach is left out where
    it is small.
    """
    for found in [*result["attacks"], result["black_box"]]:
        where, of = (
            f"{found['steps']} steps" + (f" at q {found['q']:g}" if "q" in found else ""),
            found["bounds"],
        )
        certified = found["certified"][1]
        for name, bound in of.items():
            yield (
                (
                    f"{where}, {name}: epsilon at least {lower(bound['lower'])} "
                    f"({bound['trials']:,} trials), certified {upper(certified)}"
                ),
                bound["beyond_doubt"] <= certified,
            )
        if "q" in found:
            share = of["every step, releases composed"]["lower"] / certified
            yield (
                f"{where}: every step shows {share:.1%} of it, to be at least {SHARE:.0%}",
                share >= SHARE,
            )
            steinke, f_dp = (of[f"one run, {name}"]["lower"] for name in ("Steinke", "f-DP"))
            yield f"{where}: one run shows more by f-DP than by Steinke's bound", f_dp > steinke
    box, old = of[BOX]["lower"], result["ledger_2016"]
    if not smoke:
        yield (
            f"black box: epsilon at least {lower(box)}, to be at least {BLACK_BOX}",
            box >= BLACK_BOX,
        )
    printed, shown, most = old["printed"][-1], old["lower"][-1], old["certified"][-1][1]
    text = f"2016: {upper(printed)} printed, at least {lower(shown)} shown, {upper(most)} certified"
    yield text, printed < shown <= most


def in_words(result):
    """The figures in words for a reader who knows none of the terms."""
    steps, box = result["attacks"][-1], result["black_box"]
    proofs = [upper(found["certified"][1]) for found in (steps, box)]
    bounds = steps["bounds"]["every step, releases composed"], box["bounds"][BOX]
    shown = [lower(bound["lower"]) for bound in bounds]
    return (
        "Epsilon bounds how much anybody can find out about one person's record from training; 0 "
        f"is nothing. Where the proof allows {proofs[0]}, somebody who watches every step finds "
        f"out {shown[0]}; where it allows {proofs[1]}, somebody who only uses the finished model "
        f"finds out {shown[1]}. Each figure is too high in one audit of twenty at most."
    )


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.audit_empirical", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="repeat a run")
    parser.add_argument("--smoke", action="store_true", help="few and small, to see that it works")
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="write the figures, and pictures beside them"
    )
    options = parser.parse_args(argv)
    with user_errors() as note, stop_on_interrupt() as stopped:
        started = time.perf_counter()
        kept = options.json and options.json.with_suffix(".partial.json")
        state = read_json(kept) if kept and kept.exists() else {}
        if state.get("smoke") != options.smoke or options.seed not in (None, state.get("seed")):
            seed = secrets.randbits(32) if options.seed is None else options.seed
            state = {"smoke": options.smoke, "seed": seed, "done": {}}

        def seed_of(name):
            return int.from_bytes(sha256(f"{state['seed']} {name}".encode()).digest()[:6])

        name, records = ("strokes", 100) if options.smoke else ("auto", black_box.RECORDS)
        dataset, done = load(name, sizes=(records, 10)), state["done"]
        box = cache(lambda: black_box.BlackBox(dataset, seed_of("start")))
        todo = units(options.smoke, box)
        for place, (name, work) in enumerate(todo.items(), 1):
            if name not in done:
                done[name] = work(seed_of(name))
                if kept:
                    write_json(kept, state)
                seconds = time.perf_counter() - started
                print(f"[{place}/{len(todo)}] {name}, {seconds:.0f} s", flush=True)
            if stopped() and place < len(todo):
                again = f"the same command resumes {kept}"
                note.saved = again if kept else "--json FILE keeps finished parts"
                raise KeyboardInterrupt
        result = summary(done, box())
        result["black_box"]["data"] = {"name": dataset.name, "sha256": dataset.sha256}
        words, checks = in_words(result), list(verdicts(result, options.smoke))
        for text, right in checks:
            print("ok  " if right else "FAIL", text)
        print(words)
        failed = sum(not right for _, right in checks)
        if options.json:
            given = sys.argv[1:] if argv is None else argv
            made = {
                "command": " ".join(["python -m tools.audit_empirical", *given]),
                "device": {
                    "processor": processor(),
                    "vector": vector_flags(),
                    "cores": available_cores(),
                },
                "versions": versions(),
                "seed": state["seed"],
            }
            write_json(options.json, {**made, **result, "in_words": words, "failed": failed})
            pictures.draw_attacks(result, words, options.json.with_suffix(".png"))
            old = options.json.with_name(f"{options.json.stem}_2016.png")
            pictures.draw_2016(result["ledger_2016"], old)
            kept.unlink()
        print(f"{len(checks)} checks, {failed} failed, {time.perf_counter() - started:.0f} s")
        return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
