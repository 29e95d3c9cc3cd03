"""Attack private training: lower bounds on epsilon beside the certified ones, ten planted faults, the ledger of 2016.

    python -m tools.audit_empirical --json experiments/results/audit_attacks.json

Trains with the library's own Trainer, Sanitizer and Sampler. Beside the JSON stand two pictures. Ctrl-C keeps what was done,
and the same command goes on. Exit status 1 if a bound lies, beyond doubt, above the certified epsilon of right training, if
an attack falls short of what it has to reach, if a fault is not flagged, or right training is flagged too often; 2 for user
errors. A lower bound proves nothing safe: it shows how much of the certified epsilon an attack reaches.
"""
import secrets
import sys
import time
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path

from scipy import stats

from minidp.cli import Parser, user_errors
from minidp.data.choose import load
from minidp.files import read_json, write_json
from minidp.numbers import lower_text, upper_text
from minidp.run.progress import stop_on_interrupt
from tools.attacks import black_box, canaries, faults, pictures
from tools.bench.machine import available_cores, processor, vector_flags, versions

SETTINGS = ((1.0, 10), (0.01, 1000))  # q, T
SHARE, BLACK_BOX = 0.94, 6.5  # of the certified epsilon, and the epsilon, that the attacks have to reach
upper, lower = partial(upper_text, decimals=2), partial(lower_text, decimals=2)


def units(options, box):
    """[(name, function of a seed)] of everything there is to do, each a few seconds' work whose result JSON holds."""
    for (q, steps), epsilon in product(SETTINGS, options.epsilon):
        yield f"attack q={q:g} T={steps} epsilon={epsilon:g}", partial(canaries.attack, epsilon, q, steps, **options.sizes)
    yield "2016", partial(canaries.attack_2016, **({"lots": (100, 1000), "reach": 0.5} if options.smoke else {}))
    for chunk in range(options.box_runs // black_box.CHUNK):
        yield f"black box {chunk}", lambda seed: box().scores(seed)
    for name, made in [("right training", faults.Made()), *faults.FAULTS.items()]:
        audits = options.honest if name == "right training" else options.repetitions
        for k in range(0, audits, 20):
            yield f"audits of {name} {k}", partial(_audits, made, min(20, audits - k))


def _audits(made, times, seed):
    return [faults.flagged_by(made, seed + 100 * k) for k in range(times)]


def summary(done, options, box, data):
    """The figures of all units, and (what has to hold, whether it does)."""
    attacks = [done[name] for name in done if name.startswith("attack")]
    inside, outside = (sum((done[name][world] for name in done if name.startswith("black box")), []) for world in (0, 1))
    plan = box().plan
    boxed = {"data": data, "records": len(box().x) - 1, "steps": plan.steps, "noise_multiplier": box().sigma,
             "mean_gradient_norm_at_start": box().norm, "certified": [box().certified.lower, box().certified.upper],
             "bounds": {"black box, worst-case start": box().bound(inside, outside)}, "scores": {"with": inside, "without": outside}}
    audits = {name: sum((done[key] for key in done if key.rsplit(" ", 1)[0] == f"audits of {name}"), [])
              for name in ("right training", *faults.FAULTS)}
    flagged = {name: {"audits": len(found), "flagged": sum(map(bool, found)),
                      "by": {attack: sum(attack in by for by in found) for attack in faults.ATTACKS if any(attack in by for by in found)}}
               for name, found in audits.items()}
    result = {"delta": canaries.DELTA, "confidence": 1 - canaries.ERROR, "attacks": attacks, "black_box": boxed, "ledger_2016": done["2016"],
              "level": faults.LEVEL, "level_of_each_attack": faults.error_each(), "trials": faults.plan_trials(), "audits": flagged}
    return result, list(verdicts(result))


def verdicts(result):
    """(what has to hold, whether it does) of all figures."""
    for found in [*result["attacks"], result["black_box"]]:
        where = f"q {found['q']:g}, {found['steps']} steps" if "q" in found else "black box"
        for name, bound in found["bounds"].items():
            yield (f"{where}: {name}, epsilon at least {lower(bound['lower'])} ({bound['trials']:,} trials), certified at most "
                   f"{upper(found['certified'][1])}"), bound["beyond_doubt"] <= found["certified"][1]
        if "q" in found:
            of = {name: bound["lower"] for name, bound in found["bounds"].items()}
            share = of["every step, Gaussian fit"] / found["certified"][1]
            yield f"{where}: the attack on every step reaches {share:.1%}, at least {SHARE:.0%}", share >= SHARE
            yield f"{where}: one run, f-DP above Steinke", of["one run, f-DP"] > of["one run, Steinke"]
    box = result["black_box"]["bounds"]["black box, worst-case start"]["lower"]
    yield f"black box: epsilon at least {lower(box)}, to be at least {BLACK_BOX}", box >= BLACK_BOX
    old = result["ledger_2016"]
    yield (f"2016: its ledger prints {upper(old['printed'][-1])}, the attack shows at least {lower(old['lower'][-1])}, certified "
           f"jointly {upper(old['certified'][-1][1])}"), old["printed"][-1] < old["lower"][-1] <= old["certified"][-1][1]
    for name, found in result["audits"].items():
        by = ", ".join(f"{attack} {times}" for attack, times in found["by"].items()) or "nobody"
        if name == "right training":
            most = int(stats.binom.ppf(0.995, found["audits"], faults.LEVEL))
            right, allowed = found["flagged"] <= most, f"at most {most}"
        else:
            right, allowed = found["flagged"] == found["audits"], "all"
        yield f"{name}: {found['flagged']} of {found['audits']} audits flag it, to be {allowed} (by {by})", right


def in_words(result):
    """What the figures say to a reader who knows none of the words."""
    best = max(result["attacks"], key=lambda found: found["bounds"]["every step, Gaussian fit"]["lower"])
    box = result["black_box"]
    return ("Epsilon bounds how much anybody can find out about one person's record from training; 0 is nothing. Where the proof "
            f"allows {upper(best['certified'][1])}, somebody who watches every step finds out "
            f"{lower(best['bounds']['every step, Gaussian fit']['lower'])}; where it allows {upper(box['certified'][1])}, somebody "
            f"who only uses the finished model finds out {lower(box['bounds']['black box, worst-case start']['lower'])}. Nobody "
            "found out more than the proof allows. Each of these figures is too high in one audit of twenty at most.")


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.audit_empirical", description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=(1.0, 2.0, 4.0, 8.0), help="certified ones to attack")
    parser.add_argument("--repetitions", type=int, default=20, help="audits of each planted fault")
    parser.add_argument("--honest", type=int, default=100, help="audits of right training")
    parser.add_argument("--dataset", default="auto", help="of the black box: mnist, strokes (drawn), auto")
    parser.add_argument("--seed", type=int, help="repeat a run")
    parser.add_argument("--smoke", action="store_true", help="few and small, to see that it works")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures, and pictures beside them")
    options = parser.parse_args(argv)
    options.sizes, options.records = ({"side": 30}, 100) if options.smoke else ({}, black_box.RECORDS)
    with user_errors() as note, stop_on_interrupt() as stopped:
        kept = options.json and options.json.with_suffix(".partial.json")
        asked = {name: getattr(options, name) for name in ("epsilon", "repetitions", "honest", "dataset", "smoke")}
        asked = {**asked, "epsilon": list(options.epsilon)}
        before = read_json(kept) if kept and kept.exists() else {}
        if before.get("asked") != asked or options.seed not in (None, before.get("seed")):
            before = {"asked": asked, "seed": secrets.randbits(32) if options.seed is None else options.seed, "done": {}}
        seed, done, started = before["seed"], before["done"], time.perf_counter()
        seed_of = lambda name: int.from_bytes(sha256(f"{seed} {name}".encode()).digest()[:6])
        dataset = load(options.dataset, sizes=(options.records, 10), progress=False)
        made = []

        def box():
            if not made:
                made.append(black_box.BlackBox(dataset, seed_of("start"), options.records))
            return made[0]

        trials = faults.plan_trials()
        print("trials in each world, by calculation before anything runs: "
              + ", ".join(f"{name} {count:,}" for name, count in trials.items()))
        options.box_runs = black_box.CHUNK if options.smoke else box().trials()
        print(f"black box: {options.box_runs} trainings in each world")
        todo = list(units(options, box))
        for place, (name, work) in enumerate(todo, 1):
            if name not in done:
                done[name] = work(seed_of(name))
                if kept:
                    write_json(kept, before)
                print(f"[{place}/{len(todo)}] {name}, {time.perf_counter() - started:.0f} s", flush=True)
            if stopped() and place < len(todo):
                note.saved = f"kept in {kept}: the same command goes on" if kept else "nothing was kept: --json FILE does that"
                raise KeyboardInterrupt
        result, checks = summary(done, options, box, {"name": dataset.name, "sha256": dataset.sha256})
        for text, right in checks:
            print(f"{'ok  ' if right else 'FAIL'} {text}")
        words, failed = in_words(result), sum(not right for _, right in checks)
        print(words)
        if options.json:
            write_json(options.json, {
                "command": " ".join(["python -m tools.audit_empirical", *(sys.argv[1:] if argv is None else map(str, argv))]),
                "device": {"processor": processor(), "vector": vector_flags(), "cores": available_cores()}, "versions": versions(),
                "seed": seed, **result, "in_words": words, "failed": failed})
            pictures.draw_attacks(result, words, options.json.with_suffix(".png"))
            pictures.draw_2016(result["ledger_2016"], options.json.with_name(options.json.stem + "_2016.png"))
            kept.unlink()
        print(f"{len(checks)} checks, {failed} failed, {time.perf_counter() - started:.0f} s")
        return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
