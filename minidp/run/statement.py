"""A run in words: privacy.md, which says what was done to the data and what epsilon covers, and the
lines on the screen.

The statement follows from result.json alone, so that anybody can render it again and compare.
"""

import math

from ..exact.arithmetic import EXACT
from ..mechanism.schedule import text
from ..privacy.catalogue import row_to_quote
from ..privacy.meaning import in_words
from ..util.text import lower_text, upper_text
from .folder import CURVES, MANIFEST, STATEMENT

FORMAT = 10  # of the text: one more whenever `render` would write other bytes for the same result
RELATIONS = {
    "add_remove": "one example more or less (add/remove)",
    "replace_one": "one example exchanged for another (replace-one)",
    "zero_out": "one example exchanged for one that contributes zero (zero-out)",
}


def render(result):
    """The text of privacy.md for the dictionary that result.json holds."""
    paragraphs = [
        paragraph
        for part in (_warnings, _done, _epsilon, _arithmetic, _covered)
        for paragraph in part(result)
    ]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def quote_line(result):
    """The figure to quote, in one line."""
    name = row_to_quote(result["epsilon"])
    if name is None:
        return (
            "quote: no epsilon: something was released without noise, or no certified bound is "
            "known"
        )
    return (
        f"quote: epsilon {upper_text(result['epsilon'][name]['upper'])} at delta "
        f"{result['delta']:g} ({name}, the tightest certified bound)"
    )


def summary(result, path):
    """The lines that tell a person what came out, then the figure to quote, the file to open, the
    next command.
    """
    if result["notice"]:
        yield f"NOTICE: {result['notice']}"
    accuracy = (
        "" if result["test_accuracy"] is None else f"test accuracy {result['test_accuracy']:.2%} "
    )
    yield (
        f"{accuracy}after {result['steps']} lots ({result['epochs']:.4g} epochs) on "
        f"{result['dataset']}, {result['device']}"
    )
    for what, of in (
        ("test_r2", "of the test set"),
        ("train_r2", "of the training data (not private)"),
    ):
        if result.get(what) is not None:
            yield f"R2 {of}: {result[what]:.4f}"
    if result["train_accuracy"] is not None:
        yield f"training accuracy {result['train_accuracy']:.2%} (not private)"
    for name, bound in result["epsilon"].items():
        low, high = lower_text(bound["lower"]), upper_text(bound["upper"])
        within = high if bound["lower"] in (None, bound["upper"]) else f"{low} to {high}"
        kind = "" if bound["kind"] == "bound" else f" ({bound['kind']}, no guarantee)"
        yield f"epsilon at delta {result['delta']:g} by {name}: {within}{kind}"
    if result["reproducible"]:
        yield f"seed {result['seed']}: reproducible, and not to be released"
    threads_, kernels = (result["versions"][name] for name in ("threads", "openblas_kernels"))
    yield (
        f"{result['seconds_total']:.1f} s, {1000 * (result['seconds_per_step'] or 0):.2f} ms a "
        f"step ({result['arithmetic']} arithmetic; threads: {threads_}; OpenBLAS kernels: "
        f"{kernels})"
    )

    yield quote_line(result)
    yield f"read:  {path / STATEMENT} (picture: {path / CURVES}; {MANIFEST} seals all files)"
    yield f"check: python -m minidp verify {path}"


def _warnings(result):
    own = result["epsilon"][result["accountant"]]
    return [
        "# Privacy statement",
        result["notice"] and f"**{result['notice']}**",
        result["reproducible"]
        and (
            f"**Seeded run (seed {result['seed']}): reproducible, and not to be released.** Anyone "
            "who knows the seed can draw the noise again and subtract it. The figures below hold "
            "for the same run without a seed."
        ),
        own["upper"] == "inf"
        and (
            "**No guarantee: epsilon is so large that (1 + e^epsilon) T, which exact arithmetic "
            "adds to delta, exceeds delta. Ordinary arithmetic, or more noise, has a finite "
            "epsilon.**"
            if result["delta_added"] > result["delta"]
            else "**Not private: something was released without noise, so epsilon is infinite and "
            "nothing is guaranteed.**"
        ),
        own["kind"] != "bound"
        and (
            f"**No guarantee: the target of this run was held by {result['accountant']}, an "
            "approximation. Its epsilon may be below the truth; read the certified figures beside "
            "it.**"
        ),
        f"Experiment {result['experiment']} on {result['dataset']}, device {result['device']}.",
    ]


def _rows(result):
    """The rows of the table of what was done."""
    settings = result["settings"]
    share = "sampling probability" if settings["period"] == 1 else "lot as a share of the data"
    return [
        ("", ""),
        ("---", "---"),
        ("training examples N (nominal, public)", settings["dataset_size"]),
        ("expected lot size L (the divisor, public)", f"{settings['expected_lot_size']:g}"),
        (f"{share} q = L/N", f"{settings['sampling_probability']:g}"),
        ("steps (lots)", f"{result['steps']}, charged {result['steps_charged']}"),
        ("per-example gradients", _gradients(result)),
        ("arithmetic", result["arithmetic"]),
        ("sampler actually used", result["sampler"]),
        ("neighbouring relation", RELATIONS[result["relation"]]),
        *(
            (f"clip group {group['name']} ({', '.join(group['parameters'])})", _noise(group))
            for group in settings["clip_groups"]
        ),
        *(("before the first step", setup["what"]) for setup in settings["setup"]),
        *(("public, no charge", line) for line in result["public"]),
        *((f"chosen: {name}", how) for name, how in result["choices"].items()),
        *(("told of the data, **not protected**", line) for line in result["disclosed"]),
    ]


def _done(result):
    settings = result["settings"]
    lost, earlier = result["steps_charged"] - result["steps"], result["earlier_lots_charged"]
    return [
        "## What was done",
        _table(_rows(result)),
        "One step releases all clip groups from the same lot. It is charged as one joint Gaussian, "
        "not group by group, and the noise multiplier that is charged is the noise std over the "
        "sensitivity.",
        (held := result.get("gradients_bytes"))
        and (
            f"Explicit gradients of an expected lot take {_mib(held['lot'])} on this device, where "
            f"{_mib(held['budget'])} may be held at once; more are formed in parts. `--gradients "
            "factored` forms none of dense layers and releases the same to rounding; explicit ones "
            "are what the definition says, and what an audit reads."
        ),
        result["weighted"]
        and (
            "Each example's clipped gradient was multiplied by its weight in [0, 1]. That leaves "
            "the sensitivity as it is if each weight depends on its own example alone: weights "
            "made from counts over the data, of classes for example, are not covered."
        ),
        result["best_of_measured"]
        and (
            "Of the weights measured along the run, the best on the public validation data "
            "are released; all of them are covered."
        ),
        result["setup_charged"] > len(settings["setup"])
        and (
            f"What came before the first step was charged {result['setup_charged']} times, because "
            "a run that was killed had released it already."
        ),
        lost > 0
        and (
            f"{lost} charged lots are not in the model: the run was killed, and what they released "
            "is counted as released."
        ),
        earlier
        and (
            f"{earlier} more lots are charged, of earlier attempts whose checkpoint was gone when "
            "the run began again: what they released is counted as released."
        ),
    ]


def _epsilon(result):
    rows = [("accountant", "lower", "estimate", "upper", ""), ("---",) * 5]
    for name, bound in result["epsilon"].items():
        mark = (
            " (held the target)"
            if name == result["accountant"] and result["target_epsilon"] is not None
            else ""
        )
        rows.append(
            (
                f"{name}{mark}",
                lower_text(bound["lower"]),
                _nearest(bound["estimate"]),
                upper_text(bound["upper"]),
                bound["kind"],
            )
        )
    group = result["group"]
    return [
        f"## Epsilon at delta = {result['delta']:g}",
        _table(rows),
        group
        and (
            f"For {group['size']} examples of one person together, at the same delta: epsilon "
            f"{upper_text(group['epsilon'])}."
        ),
        "Quote the smallest upper end of a row marked bound. Upper ends are rounded up, lower ends "
        "down.",
        result["meaning"] and in_words(result["meaning"]),
        f"Without amplification by sampling (each example in one lot of every epoch, "
        f"{result['accountant']}): epsilon "
        f"{upper_text(result['epsilon_without_amplification']['upper'])}."
        + (
            " The figures above need the lots to be drawn as stated, in secret."
            if result["sampler"] != "ShuffleSampler"
            else ""
        ),
    ]


def _arithmetic(result):
    """What the guarantee says of the bits that leave the process, and what it rests on there."""
    if all(bound["upper"] in (None, "inf") for bound in result["epsilon"].values()):
        return []  # nothing is guaranteed
    groups, drawn = result["settings"]["clip_groups"], "the cipher ChaCha (20 rounds)"
    added = upper_text(result["delta_added"], 3) if result["delta_added"] else "Nothing"
    if result["arithmetic"] != EXACT:
        factor = max(group["sensitivity_factor"] for group in groups)
        charged = (
            f"; what their rounding may add is charged: the sensitivity counts as "
            f"{upper_text(factor, 6)} times that of real numbers"
            if factor > 1
            else ""
        )
        return [
            "## Arithmetic: ordinary",
            f"Sums over a lot are kept in float64, and in float32 within short products{charged}. "
            f"Noise is drawn in float64 by {drawn} and rounded, together with the sum, to a public "
            f"grid. {added} is added to delta. Known floating-point attacks on the released sums "
            "find nothing; it is not a proof.",
        ]
    others = [
        setup["name"]
        for setup in result["settings"]["setup"]
        if "TotalVariation" not in str(setup["event"])
    ]
    return [
        "## Arithmetic: exact",
        "The guarantee holds for the released bits. What an example contributes depends, bit for "
        "bit, on that example, the weights and public numbers alone. Contributions, sums and noise "
        f"are whole multiples of a public grid (of a clip group, C 2^-32), so that no sum is "
        f"rounded. Noise is drawn by {drawn} from tables. Its law is within total variation "
        f"distance T of a rounded Gaussian's over the whole run: every epsilon above leaves (1 + "
        f"e^epsilon) T of delta for that, {added} at the epsilon of {result['accountant']}.",
        "It rests on float64 arithmetic as IEEE 754 defines it, on the cipher, and on the "
        "self-check before the first step, which found each example's results to be the same bits "
        "whatever the other examples were: a test, and no proof, of layers that are not the "
        "library's own.",
        others
        and f"**Released in ordinary arithmetic, before the first step: {', '.join(others)}.**",
    ]


def _covered(result):
    names = ", ".join(setup["name"] for setup in result["settings"]["setup"])
    before = f", and what was released before the first step ({names})" if names else ""
    evaluated = "There was none: no file holds a figure that would be named `not_private`."
    if result["not_private"]:
        evaluated = (
            f"These figures, named `not_private`, are exact: {'; '.join(result['not_private'])}. "
            "Train with --no-train-metrics, or do not pass those files on."
        )
    return [
        "## What is covered",
        f"Released: the network's parameters after every step (model.npz){before}. The guarantee "
        "covers all of it together, and every intermediate state of the network, for each training "
        "example by itself, one row of the data (for k examples of one person it is weaker).",
        "Not for release: any file of a seeded run."
        if result["reproducible"]
        else f"Not for release: {', '.join(result['not_for_release'])}. All other files of the "
        "folder may be passed on.",
        "## What is not covered",
        "- Other runs on the same data: tuning, other seeds, runs that were thrown away. Each "
        f"spends its own epsilon.\n- Evaluation on training data. {evaluated}\n"
        "- The test set. It is not protected, and its accuracy is exact.\n"
        + (
            "- Whether the run was stopped for its rows: it would have stopped before its first "
            "step, with a message for the data's owner, if rows or targets had not been finite, "
            "labels of no class, or weights outside [0, 1].\n"
            if result["rows_checked"]
            else ""
        )
        + (
            ""
            if result["arithmetic"] == EXACT
            else "- Rounding inside forward and backward: the last bits of an example's gradient "
            "depend on the other examples of its "
            "batch. An attacker who chose those and the weights can flip a ReLU by it. Exact "
            "arithmetic rules it out.\n"
        )
        + "- Timing, the other processes of this machine, memory that was swapped out, and anyone "
        "who can read this machine's "
        "memory or files while it runs.",
        f"Ledger SHA-256 {result['ledger_sha256']} (canonical form of ledger.json).\n"
        "`python -m minidp verify DIR` computes every figure again and compares each file with "
        "manifest.json. That catches\naccidents and single edits, not somebody who edits ledger, "
        "result, statement and manifest together.",
    ]


def _table(rows):
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _gradients(result):
    """What was asked for and, by parameter, what ran."""
    ran = "; ".join(
        f"{form} for {', '.join(names)}" for form, names in result["gradients_ran"].items()
    )
    return f"{result['gradients']}: {ran}" if ran else result["gradients"]


def _mib(size):
    return f"{size / 2**20:,.1f} MiB"


def _noise(group):
    c, sigma, std = group["clip_norm"], group["noise_multiplier"], group["noise_std_on_sum"]
    if std is None:
        return f"C = {text(c)}, sigma = {text(sigma)}: follows the step"
    return (
        f"C = {float(c):g}, sigma = {sigma:g}; noise std {float(std):g} on the sum, "
        f"{float(group['noise_std_on_mean']):g} on the mean; sensitivity of the sum "
        f"{_times(float(group['sensitivity']), float(c))}{_grid(group['grid'], float(c))}"
    )


def _times(sensitivity, c):
    """A sensitivity, and how many times the clip norm it is."""
    return (
        "infinite"
        if math.isinf(c)
        else f"{upper_text(sensitivity, 6)} = {upper_text(sensitivity / c, 6)} C"
    )


def _grid(grid, c):
    """The grid in words: a power of two, or of the clip norm; nothing without noise."""
    if not grid:
        return ""
    unit, power = (
        ("", math.log2(grid)) if math.frexp(grid)[0] == 0.5 else ("C ", math.log2(grid / c))
    )
    return f"; in multiples of {unit}2^{power:.0f}"


def _nearest(value):
    return "unknown" if value is None else f"{float(value):.4g}".replace("inf", "infinite")
