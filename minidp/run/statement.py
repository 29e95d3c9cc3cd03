"""privacy.md: what a run did to the data and what its epsilon covers, in words that can stand alone.

The statement follows from result.json alone, so that anybody can render it again and compare.
"""
from ..numbers import lower_text, upper_text

FORMAT = 2  # of the text: one more whenever `render` would write other bytes for the same result
RELATIONS = {
    "add_remove": "one example more or less (add/remove)",
    "replace_one": "one example exchanged for another (replace-one)",
    "zero_out": "one example exchanged for one that contributes zero (zero-out)",
}


def render(result):
    """The text of privacy.md for the dictionary that result.json holds."""
    return "\n".join(line for part in (_warnings, _done, _epsilon, _covered) for line in part(result)) + "\n"


def _warnings(result):
    own = result["epsilon"][result["accountant"]]
    yield "# Privacy statement"
    yield ""
    if result["notice"]:
        yield f"**{result['notice']}**"
        yield ""
    if result["reproducible"]:
        yield (f"**Seeded run (seed {result['seed']}): reproducible, and not to be released.** Anyone who knows the seed "
               "can draw the noise again and subtract it. The figures below hold for the same run without a seed.")
        yield ""
    if own["upper"] == "inf":
        yield "**Not private: something was released without noise, so epsilon is infinite and nothing is guaranteed.**"
        yield ""
    if own["kind"] != "bound":
        yield (f"**No guarantee: the target of this run was held by {result['accountant']}, an approximation. Its epsilon may "
               "be below the truth; read the certified figures beside it.**")
        yield ""
    yield f"Experiment {result['experiment']} on {result['dataset']}, device {result['device']}."
    yield ""


def _done(result):
    settings = result["settings"]
    amplified = settings["period"] == 1
    yield "## What was done"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| training examples N (nominal, public) | {settings['dataset_size']} |"
    yield f"| expected lot size L (the divisor, public) | {settings['expected_lot_size']:g} |"
    yield (f"| {'sampling probability' if amplified else 'lot as a share of the data'} q = L/N | "
           f"{settings['sampling_probability']:g} |")
    yield f"| steps (lots) | {result['steps']}, charged {result['steps_charged']} |"
    yield f"| sampler actually used | {result['sampler']} |"
    yield f"| neighbouring relation | {RELATIONS[result['relation']]} |"
    for group in settings["clip_groups"]:
        yield (f"| clip group {group['name']} ({', '.join(group['parameters'])}) | "
               f"{_noise(group)} |")
    for setup in settings["setup"]:
        yield f"| before the first step | {setup['what']} |"
    for line in result["public"]:
        yield f"| public, no charge | {line} |"
    yield ""
    yield ("One step releases all clip groups from the same lot. It is charged as one joint Gaussian, not group by "
           "group, and each noise multiplier is the noise std over the sensitivity.")
    again = result["setup_charged"] - len(settings["setup"])
    if again > 0:
        yield ""
        yield (f"What came before the first step was charged {result['setup_charged']} times, because a run that was killed "
               "had released it already.")
    if result["steps_charged"] > result["steps"]:
        yield ""
        yield (f"{result['steps_charged'] - result['steps']} charged lots are not in the model: the run was killed, and "
               "what they released is counted as released.")
    if result["earlier_lots_charged"]:
        yield ""
        yield (f"{result['earlier_lots_charged']} more lots are charged, of earlier attempts whose checkpoint was gone "
               "when the run began again: what they released is counted as released.")
    yield ""


def _epsilon(result):
    yield f"## Epsilon at delta = {result['delta']:g}"
    yield ""
    yield "| accountant | lower | estimate | upper | |"
    yield "|---|---|---|---|---|"
    for name, bound in result["epsilon"].items():
        mark = " (held the target)" if name == result["accountant"] and result["target_epsilon"] is not None else ""
        cells = lower_text(bound["lower"]), _nearest(bound["estimate"]), upper_text(bound["upper"])
        yield f"| {name}{mark} | {' | '.join(cells)} | {bound['kind']} |"
    yield ""
    yield "Quote the smallest upper end of a row marked bound. Upper ends are rounded up, lower ends down."
    yield ""
    yield (f"Without amplification by sampling (each example in one lot of every epoch, {result['accountant']}): "
           f"epsilon {upper_text(result['epsilon_without_amplification']['upper'])}."
           + (" The figures above need the lots to be drawn as stated, in secret."
              if result["settings"]["period"] == 1 else ""))
    yield ""


def _covered(result):
    names = [setup["name"] for setup in result["settings"]["setup"]]
    before = f", and what was released before the first step ({', '.join(names)})" if names else ""
    kept = result["not_for_release"]
    yield "## What is covered"
    yield ""
    yield (f"Released: the network's parameters after every step (model.npz){before}. The guarantee covers all of "
           "it together, and every intermediate state of the network, for each training example by itself (for k examples "
           "of one person it is weaker).")
    yield ""
    yield ("Not for release: any file of a seeded run." if result["reproducible"] else
           f"Not for release: {', '.join(kept)}. All other files of the folder may be passed on.")
    yield ""
    yield "## What is not covered"
    yield ""
    yield "- Other runs on the same data: tuning, other seeds, runs that were thrown away. Each spends its own epsilon."
    if result["not_private"]:
        yield ("- Evaluation on training data: these figures, named `not_private`, are exact: "
               f"{'; '.join(result['not_private'])}. Train with --no-train-metrics, or do not pass those files on.")
    else:
        yield "- Evaluation on training data. There was none: no file holds a figure that would be named `not_private`."
    yield "- The test set. It is not protected, and its accuracy is exact."
    yield ("- Floating point: noise is drawn in float32 by a statistical generator (SFC64, or the GPU's), not a "
           "cryptographic one, and without the defence of Mironov 2012 against low-order bits.")
    yield "- Timing, and anyone who can read this machine's memory or files while it runs."
    yield ""
    yield f"Ledger SHA-256 {result['ledger_sha256']} (canonical form of ledger.json)."
    yield "`python -m minidp verify DIR` computes every figure again and compares each file with manifest.json. That catches"
    yield "accidents and single edits, not somebody who edits ledger, result, statement and manifest together."


def _noise(group):
    c, sigma, std = group["clip_norm"], group["noise_multiplier"], group["noise_std_on_sum"]
    if std is None:
        return f"C = {_setting(c)}, sigma = {_setting(sigma)}: follows the step"
    return (f"C = {float(c):g}, sigma = {sigma:g}; noise std {float(std):g} on the sum, {float(group['noise_std_on_mean']):g} "
            f"on the mean; sensitivity of the sum {float(group['sensitivity']):g}")


def _setting(value):
    if not isinstance(value, dict):
        return value
    fields = ", ".join(f"{name}={field}" for name, field in value.items() if name != "schedule")
    return f"{value['schedule']}({fields})"


def _nearest(value):
    return "unknown" if value is None else f"{float(value):.4g}".replace("inf", "infinite")
