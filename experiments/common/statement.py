"""privacy.md: what a run did to the data and what its epsilon covers, in words that can stand alone."""
import math

from minidp.files import atomic_write

RELATIONS = {
    "add_remove": "one example more or less (add/remove)",
    "replace_one": "one example exchanged for another (replace-one)",
    "zero_out": "one example exchanged for one that contributes zero (zero-out)",
}


def write_statement(path, *, result, plan, setup, ledger, released, notice=""):
    """Write the statement.

    result    the dictionary that result.json holds
    plan      the mechanism.Plan that was executed
    setup     lines on what was released before the first step (PCA), possibly none
    released  what the figures cover: the names of what was made public
    """
    with atomic_write(path) as file:
        file.write("\n".join(_lines(result, plan, setup, ledger, released, notice)) + "\n")


def _lines(result, plan, setup, ledger, released, notice):
    q = plan.expected_lot_size / result["settings"]["dataset_size"]
    yield "# Privacy statement"
    yield ""
    if notice:
        yield f"**{notice}**"
        yield ""
    if result["reproducible"]:
        yield (f"**Seeded run (seed {result['seed']}): reproducible, and not to be released.** Who knows the seed can "
               "draw the noise again and subtract it; the figures below hold for the same run without a seed.")
        yield ""
    if result["epsilon"][result["accountant"]]["upper"] == "inf":
        yield "**Not private: something was released without noise, so epsilon is infinite and nothing is guaranteed.**"
        yield ""
    if result["epsilon"][result["accountant"]]["kind"] != "bound":
        yield (f"**No guarantee: this run was held by {result['accountant']}, an approximation. Its epsilon may be below "
               "the truth; read the certified figures beside it.**")
        yield ""
    yield f"Experiment {result['experiment']} on {result['dataset']}, device {result['device']}."
    yield ""
    yield "## What was done"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| training examples N (nominal, public) | {result['settings']['dataset_size']} |"
    yield f"| expected lot size L (the divisor, public) | {plan.expected_lot_size:g} |"
    amplified = plan.sampler.period == 1
    yield f"| {'sampling probability' if amplified else 'lot as a share of the data'} q = L/N | {q:g} |"
    yield f"| steps (lots) | {result['steps']}, charged {result['steps_charged']} |"
    yield f"| sampler actually used | {result['sampler']} |"
    yield f"| neighbouring relation | {RELATIONS[result['relation']]} |"
    sensitivity = plan.sanitizer.sensitivity(plan.relation)
    for group in plan.sanitizer.groups:
        yield (f"| clip group {group.name} ({', '.join(map('.'.join, group.keys))}) | "
               f"{_noise(group, plan.expected_lot_size)}; sensitivity of the sum {sensitivity[group.name]:g} |")
    for line in setup:
        times = result["setup_charged"]
        again = f"; charged {times} times, since a run that was killed had released it before" if times > 1 else ""
        yield f"| before the first step | {line}{again} |"
    yield ""
    yield ("One step releases all clip groups from the same lot: it is charged as one joint Gaussian, not group by "
           "group, each noise multiplier being the noise std over the sensitivity.")
    if result["steps_charged"] > result["steps"]:
        yield ""
        yield (f"{result['steps_charged'] - result['steps']} charged lots are not in the model: the run was killed, and "
               "what they released is counted as released.")
    if result["earlier_lots_charged"]:
        yield ""
        yield (f"{result['earlier_lots_charged']} more lots are charged, of earlier attempts whose checkpoint was gone "
               "when the run began again: what they released is counted as released.")
    yield ""
    yield f"## Epsilon at delta = {result['delta']:g}"
    yield ""
    yield "| accountant | lower | estimate | upper | |"
    yield "|---|---|---|---|---|"
    for name, bound in result["epsilon"].items():
        mark = " (this run's)" if name == result["accountant"] else ""
        cells = " | ".join(_number(bound[key]) for key in ("lower", "estimate", "upper"))
        yield f"| {name}{mark} | {cells} | {bound.get('kind', '')} |"
    yield ""
    unamplified = result["epsilon_without_amplification"]
    yield (f"Without amplification by sampling (each example in one lot of every epoch, {result['accountant']}): "
           f"epsilon {_number(unamplified['upper'])}."
           + (" The figures above need the lots to be drawn as stated, in secret." if amplified else ""))
    yield ""
    yield "## What is covered"
    yield ""
    yield (f"Released: {', '.join(released)}. The guarantee covers all of them together, and every intermediate state "
           "of the network, for each training example by itself (for k examples of one person it is weaker).")
    yield ""
    yield "## What is not covered"
    yield ""
    yield "- Other runs on the same data: tuning, other seeds, runs that were thrown away. Each spends its own epsilon."
    yield ("- Evaluation on training data: figures named `not_private` (accuracy, loss, their curves) are exact, in "
           "checkpoint.npz too. Train with --no-train-metrics, or do not pass those files on.")
    yield "- The test set. It is not protected, and its accuracy is exact."
    yield ("- Floating point: noise is drawn in float32 by a statistical generator (SFC64, or the GPU's), not a "
           "cryptographic one, and without the defence of Mironov 2012 against low-order bits.")
    yield "- Timing, and whoever can read this machine's memory or files while it runs."
    yield ""
    yield (f"Ledger SHA-256 {ledger.sha256()} (canonical form of ledger.json). It catches accidents, "
           "not somebody who edits ledger, result and statement together.")


def _noise(group, lot_size):
    if not group.constant:
        return f"C = {group.clip_norm}, sigma = {group.noise_multiplier}: follows the step"
    std = group.noise_std
    return (f"C = {group.clip_norm:g}, sigma = {group.noise_multiplier:g}; noise std {std:g} on the sum, "
            f"{std / lot_size:g} on the mean")


def _number(value):
    if value is None:
        return "unknown"
    if value == "inf" or math.isinf(value):
        return "infinite"
    return f"{value:.4g}"
