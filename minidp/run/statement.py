"""A run in words: privacy.md, which says what was guaranteed, what was not, and what was done.

It begins with the parts for readers without mathematics; the sections for experts come last. The
statement follows from result.json alone, so that anybody can render it again and compare.
"""

import math

from ..privacy.accountants import called
from ..util.text import upper_text
from .answers import text_rows
from .attacker import in_words
from .schedules import text
from .summary import in_short, is_not_private, shortened, unit_of

FORMAT = 21  # of the text; raised whenever `render` writes other bytes for the same result
# that `render` can write; 20 does not begin with why a run is shorter, and says less of edits
FORMATS = (20, FORMAT)


def render(record):
    """The text of privacy.md for the Record in result.json."""
    paragraphs = [
        paragraph
        for part in (
            _warnings,
            in_short,
            _covered,
            _epsilon,
            _done,
            _arithmetic,
            _files,
        )
        for paragraph in part(record)
    ]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _warnings(record):
    return [
        f"# Privacy statement{': not private' if is_not_private(record) else ''}",
        record.notice and f"**{record.notice}**",
        record.reproducible
        and (
            f"**Seeded run (seed {record.seed}): reproducible, and not to be released.** Anyone "
            "who knows the seed can draw the noise again and subtract it. The figures below hold "
            "for the same run without a seed."
        ),
        f"Run: {record.experiment}, finished on {record.day}. Data: {record.dataset}"
        f"{', described by a schema' if record.config.get('schema') else ''}. "
        f"Device: {record.device}.",
        record.statement_format > 20 and (why := shortened(record)) and f"**Shorter: {why}.**",
    ]


def _rows(record):
    """The rows of the table of what was done."""
    settings, unit, new = record.settings, unit_of(record), record.statement_format > 20
    share = "sampling probability" if settings.period == 1 else "lot as a share of the data"
    version = record.versions["minidp"]
    averaged = f", then averaged (decay {settings.average:g})" if settings.average else ""
    return [
        ("", ""),
        ("---", "---"),
        ("program", f"minidp {version}, commit {record.commit or 'unknown'}"),
        ("sampler, and how neighbouring data differ", f"{record.sampler}, {record.relation}"),
        *((what, how.replace("|", "\\|")) for what, how in record.choices.items()),
        ("weights", f"by {settings.optimizer} from noisy sums{averaged}"),
        (f"{unit.name}s N (nominal, public)", settings.dataset_size),
        ("expected lot size L (the divisor, public)", f"{settings.expected_lot_size:g}"),
        (f"{share} q = L/N", f"{settings.sampling_probability:g}"),
        (
            f"delta times N{', which should be below 1' if new else ''}",
            f"{record.delta * settings.dataset_size:.2g}",
        ),
        ("steps (lots)", f"{record.steps}, charged {record.steps_charged}"),
        *_views(record),
        ("per-example gradients", _gradients(record)),
        *(
            (f"released before the first step: {each.name}", f"sigma = {noise:.4g}")
            for each in settings.setup
            if (noise := each.noise_multiplier) is not None
        ),
        *(
            (f"clip group {group.name} ({', '.join(group.parameters)})", _noise(group))
            for group in settings.clip_groups
        ),
    ]


def _done(record):
    settings = record.settings
    lost, earlier = record.steps_charged - record.steps, record.earlier_lots_charged
    gradient = "the gradient of each row"
    if record.unit == "person":
        gradient = f"each person's mean gradient over at most {record.rows_per_person} rows"
    return [
        "## For experts: what was done",
        f"Each step takes a lot of {record.unit}s as its sampler says, clips {gradient} to norm "
        "C in each clip group, adds noise of standard deviation sigma C to the sum, divides by L "
        "and updates the weights.",
        _table(_rows(record)),
        "One step releases all clip groups from the same lot. It is charged as one joint Gaussian, "
        "not group by group, and the noise multiplier that is charged is the noise std over the "
        "sensitivity.",
        (held := record.gradients_bytes)
        and (
            f"Explicit gradients of an expected lot take {_mib(held.lot)} on this device, which "
            f"may hold {_mib(held.budget)} at once; more are formed in parts. `--gradients "
            "factored` forms no explicit gradients of dense layers and releases the same up to "
            "rounding."
        ),
        record.setup_charged > len(settings.setup)
        and (
            f"Releases before the first step were charged {record.setup_charged} times, because "
            "a run that was killed may have made them already."
        ),
        lost > 0
        and (
            f"{lost} charged lots are not in the model, because the run was killed. They count as "
            "released."
        ),
        earlier
        and (
            f"{earlier} more lots are charged, of earlier attempts whose checkpoint was gone when "
            "the run began again. They count as released."
        ),
    ]


def _epsilon(record):
    rows = [("accountant", "lower", "estimate", "upper", ""), ("---",) * 5]
    kept = None if record.target_epsilon is None else record.accountant
    figures = {name: vars(bound) for name, bound in record.epsilon.items()}
    for name, (shown, *texts, _) in zip(figures, text_rows(figures)):
        rows.append((f"{shown} (kept the target)" if name == kept else shown, *texts))
    group = record.group
    return [
        f"## For experts: epsilon at delta = {record.delta:g}",
        "Each line marked bound is a proven upper limit for the same epsilon, found by another "
        "method; the smallest is the one to quote. Larger figures are rougher calculations and do "
        "not mean less privacy. Upper ends are rounded up, lower ends down.",
        _table(rows),
        record.meaning and in_words(record.meaning, others=unit_of(record).rows),
        record.shared_ledger
        and (
            "When this run ended, all fits that shared its ledger, this one among them, had "
            f"epsilon {upper_text(record.shared_ledger)} together. Later ones add to it."
        ),
        group
        and (
            f"For {group.size} {'rows of one person' if record.unit == 'row' else 'persons'} "
            f"together, at the same delta: epsilon {upper_text(group.epsilon)}."
        ),
        record.settings.sampling_probability < 1
        and (
            "These figures count on lots that were chosen at random and stay secret. Otherwise, "
            f"with each {record.unit} in one lot of every epoch, epsilon by "
            f"{called(record.accountant)} is "
            f"{upper_text(record.epsilon_without_amplification.upper)}."
        ),
    ]


def _arithmetic(record):
    """The section on floating-point arithmetic: what it adds to epsilon, and what is not proved."""
    if record.quoted is None:
        return []  # nothing is guaranteed
    factor = max(group.sensitivity_factor for group in record.settings.clip_groups)
    charged = (
        " Epsilon includes what their rounding may add: the sensitivity counts as "
        f"{upper_text(factor, 6)} times that of real numbers."
        if factor > 1
        else ""
    )
    return [
        "## For experts: arithmetic",
        "Sums over a lot are kept in float64, and in float32 within short products."
        f"{charged} Noise is drawn in float64 by the cipher ChaCha (20 rounds) and rounded, "
        "together with the sum, to a public grid. Nothing is added to delta for this. The known "
        "floating-point attacks on released sums were tried on this library and found nothing; "
        "that is evidence and no proof.",
        _tried(record.row_bits),
    ]


def _covered(record):
    if record.quoted is None:
        return ["Not for release, unless the training data are public: any file of this run."]
    setup = "".join(f"; {each.what}" for each in record.settings.setup)
    unless = f", if no {record.unit} of the training data is in the test" if _tested(record) else ""
    return [
        "## What is covered",
        "One guarantee covers all of the following together: the weights after every step, of "
        f"which model.npz holds the last{setup}.",
        "Not for release: any file of a seeded run."
        if record.reproducible
        else f"Keep {', '.join(record.not_for_release)} secret. The guarantee still holds if "
        "all other files of the folder are published"
        f"{unless}; what they reveal besides is listed next.",
        "## What is not covered",
        "\n".join(f"- {line}" for line in _not_covered(record) if line),
    ]


def _not_covered(record):
    charged = ", ".join(setup.name for setup in record.settings.setup)
    figures = "; ".join(record.not_private)
    return [
        "Other runs on the same data: tuning, other seeds, runs that were thrown away. Each such "
        "run weakens the protection further: their epsilons add up.",
        "Anything computed from the rows before this run, such as scalers, medians, categories, or "
        "a choice of columns. "
        + (
            f"The exception is what this run computed with noise of its own: {charged}."
            if charged
            else "This run computed nothing of this kind itself."
        ),
        *(f"Revealed exactly: {_in_a_line(line)}." for line in record.disclosed),
        *(f"Taken to be public: {_in_a_line(line)}." for line in record.public),
        record.weighted
        and (
            "Weights computed from the data, such as from counts of classes. The clipped gradient "
            f"of each {record.unit} was multiplied by its weight in [0, 1]; the guarantee holds "
            f"if each weight depends on its own {unit_of(record).rows} alone."
        ),
        figures
        and (
            f"Evaluation on training data. These figures, named `not_private`, are exact: "
            f"{figures}. Train with --no-train-metrics, or do not pass those files on."
        ),
        "Fairness: the accuracy for subgroups of people was not measured.",
        _tested(record)
        and (
            "The test set. Its rows are not protected: figures and pictures of them are exact. If "
            f"a {record.unit} of the training data is among them, epsilon does not cover these."
        ),
        f"What other {record.unit}s tell. A fact about a group, which the model may show, holds "
        f"for a {record.unit} of that group, used or not.",
        record.rows_checked
        and (
            "That the data were in order. Before its first step the run would have refused "
            "infinite numbers, missing ones where no gaps are allowed, unknown labels, and weights "
            "outside [0, 1], with a message for the data's owner. So it reveals that there were "
            "none."
        ),
        record.unit == "person"
        and "That each row names its person. The run would have refused the data otherwise.",
        _rounding(record.row_bits),
        "Timing, other processes on this machine, memory that was swapped out, and anyone who can "
        "read this machine's memory or files while it runs.",
    ]


def _in_a_line(text):
    """A text of the data's owner, such as the name of a class, which may not begin a paragraph."""
    return " ".join(text.splitlines())


def _tested(record):
    """True if something was measured on a test set."""
    return {record.test_accuracy, record.test_r2} != {None}


def _tried(bits):
    """The paragraph on a trial of float64 that found no difference; None for any other run."""
    if bits is None or bits.differ != []:
        return None
    kernels = f" ({bits.kernels} kernels)" if bits.kernels else ""
    return (
        f"The network computed in float64, in batches of {bits.rows} rows, filled up with rows "
        "of zeros that weigh nothing. Before the first step this was tried on this machine"
        f"{kernels}, on random rows: every bit of what each row gives in each layer stayed the "
        "same at other places of its batch and beside other rows. That is evidence and no proof, "
        "and says nothing of numbers that were computed from the rows before training."
    )


def _rounding(bits):
    """The line on rounding inside the network; none if a trial found no difference."""
    differ = None if bits is None else bits.differ
    if differ == []:
        return None
    where = "" if differ is None else f", as a trial on this machine found in {', '.join(differ)}"
    return (
        "Rounding inside the network. The last digits of what a row contributes depend on the "
        f"other rows that were computed with it{where}. For rows and weights that an attacker "
        "chose, this moved a sum of clipped gradients in float32 by up to 20.5 clip norms."
    )


def _files(record):
    kept = "this fingerprint"
    changes = "all four of ledger, result, statement and manifest to fit each other"
    if record.statement_format > 20:
        kept = "a copy of manifest.json, and this fingerprint,"
        changes = "files to fit each other, such as the model and the manifest"
    return [
        "## How to check this statement",
        "`python -m minidp verify FOLDER` computes every figure again and compares each file with "
        "manifest.json. That finds accidents and single edits. It cannot detect somebody who "
        f"changes {changes}, unless you keep {kept} elsewhere: the ledger's SHA-256 is "
        f"{record.ledger_sha256} (canonical form of ledger.json).",
    ]


def _table(rows):
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _views(record):
    """The row on views, if there are any; records of version 0.1.0 have no `facts`, and no such
    row.
    """
    views = record.settings.augmentation_multiplicity
    if views > 1 and record.facts is not None:
        yield "views of each row, whose gradients are averaged before they are clipped", views


def _gradients(record):
    """The requested form of gradients, and the form that ran for each parameter."""
    ran = "; ".join(
        f"{form} for {', '.join(names)}" for form, names in record.gradients_ran.items()
    )
    return f"{record.gradients}: {ran}" if ran else record.gradients


def _mib(size):
    return f"{size / 2**20:,.1f} MiB"


def _noise(group):
    c, sigma, std = group.clip_norm, group.noise_multiplier, group.noise_std_on_sum
    if std is None:
        return f"C = {text(c)}, sigma = {text(sigma)}: follows the step"
    return (
        f"C = {float(c):g}, sigma = {sigma:g}; noise std {float(std):g} on the sum, "
        f"{float(group.noise_std_on_mean):g} on the mean; sensitivity of the sum "
        f"{_times(float(group.sensitivity), float(c))}{_grid(group.grid, float(c))}"
    )


def _times(sensitivity, c):
    """A sensitivity as text, with its multiple of the clip norm."""
    return (
        "infinite"
        if math.isinf(c)
        else f"{upper_text(sensitivity, 6)} = {upper_text(sensitivity / c, 6)} C"
    )


def _grid(grid, c):
    """The grid in words: a power of two, by itself or times the clip norm; nothing without
    noise.
    """
    if not grid:
        return ""
    unit, power = (
        ("", math.log2(grid)) if math.frexp(grid)[0] == 0.5 else ("C ", math.log2(grid / c))
    )
    return f"; in multiples of {unit}2^{power:.0f}"
