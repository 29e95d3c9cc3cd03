"""Attack private training: lower bounds on epsilon beside the certified ones, and the ledger
of 2016.

    python -m tools.audit_empirical --json experiments/results/audit_attacks.json

Trains with the library's own Trainer, Sanitizer and Sampler; two pictures go beside the JSON. Exit
status 1 if a bound lies, beyond doubt, above the certified epsilon, or if an attack falls short of
what it has to reach; 2 for user errors. A lower bound proves nothing safe: it shows how much of
epsilon an attack reaches.
"""

import secrets
import sys
import time
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path

from minidp.commands.flags import Parser, user_errors
from minidp.util.files import write_json
from minidp.util.text import lower_text, upper_text
from tools.attacks import canaries, pictures
from tools.machine import available_cores, processor, vector_flags, versions

SETTINGS, EPSILONS = ((1.0, 10), (0.01, 1000)), (1.0, 2.0, 4.0, 8.0)  # q, T; certified
SHARE = 0.94  # of the certified epsilon, that watching every step has to reach
upper, lower = partial(upper_text, decimals=2), partial(lower_text, decimals=2)


def attacked(smoke, seed):
    """The figures of all attacks, each with a seed of its own; a line for each that is done."""
    started = time.perf_counter()

    def seed_of(name):
        return int.from_bytes(sha256(f"{seed} {name}".encode()).digest()[:6])

    def run(name, attack, *arguments, **how):
        found = attack(*arguments, seed_of(name), **how)
        print(f"{name}, {time.perf_counter() - started:.0f} s", flush=True)
        return found

    small = (4.0,), 30, {"lots": (100, 1000)}
    epsilons, side, paper = small if smoke else (EPSILONS, 75, {})
    attacks = []
    for (q, steps), epsilon in product(SETTINGS, epsilons):
        name = f"attack q={q:g} T={steps} epsilon={epsilon:g}"
        attacks.append(run(name, canaries.attack, epsilon, q, steps, side=side))
    old = run("2016", canaries.attack_2016, **paper)
    return {
        "delta": canaries.DELTA,
        "confidence": 1 - canaries.ERROR,
        "ledger_2016": old,
        "attacks": attacks,
    }


def verdicts(result):
    """Yield (what has to hold, whether it does)."""
    for found in result["attacks"]:
        where = f"{found['steps']} steps at q {found['q']:g}"
        of, certified = found["bounds"], found["certified"][1]
        for name, bound in of.items():
            trials = f"({bound['trials']:,} trials), certified {upper(certified)}"
            text = f"{where}, {name}: epsilon at least {lower(bound['lower'])} {trials}"
            yield text, bound["beyond_doubt"] <= certified
        share = of[canaries.EVERY_STEP]["lower"] / certified
        text = f"{where}: every step shows {share:.1%} of it, to be at least {SHARE:.0%}"
        yield text, share >= SHARE
    old = result["ledger_2016"]
    printed, shown, most = old["printed"][-1], old["lower"][-1], old["certified"][-1][1]
    text = f"2016: {upper(printed)} printed, at least {lower(shown)} shown, {upper(most)} certified"
    yield text, printed < shown <= most


def in_words(result):
    """The figures in words for a reader who knows none of the terms."""
    steps = result["attacks"][-1]
    proof = upper(steps["certified"][1])
    shown = lower(steps["bounds"][canaries.EVERY_STEP]["lower"])
    return (
        "Epsilon bounds how much anybody can find out about one person's record from training; 0 "
        f"is nothing. Where the proof allows {proof}, somebody who watches every step finds "
        f"out {shown}. That figure is too high in one audit of twenty at most."
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
    with user_errors():
        seed = secrets.randbits(32) if options.seed is None else options.seed
        result = attacked(options.smoke, seed)
        words, checks = in_words(result), list(verdicts(result))
        for text, right in checks:
            print("ok  " if right else "FAIL", text)
        print(words)
        failed = sum(not right for _, right in checks)
        if options.json:
            given = sys.argv[1:] if argv is None else argv
            device = {"processor": processor(), "vector": vector_flags()}
            made = {
                "command": " ".join(["python -m tools.audit_empirical", *given]),
                "device": {**device, "cores": available_cores()},
                "versions": versions(),
                "seed": seed,
            }
            write_json(options.json, {**made, **result, "in_words": words, "failed": failed})
            pictures.draw_attacks(result, words, options.json.with_suffix(".png"))
            old = options.json.with_name(f"{options.json.stem}_2016.png")
            pictures.draw_2016(result["ledger_2016"], old)
        print(f"{len(checks)} checks, {failed} failed")
        return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
