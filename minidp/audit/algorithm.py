"""Algorithm 1 of Abadi et al. 2016, with the equations of the package for each line."""

from ..privacy.accountants import called, make
from ..util.text import upper_text

LINES = (  # what the paper says; the cards, or labels of cards, that do it
    ("Initialize theta_0 randomly", "", "truncated_normal"),
    (
        "for t in 1..T",
        "privacy spending is accumulated before the gradient is computed (Figure 1)",
        "Trainer.F1",
    ),
    ("Take a random sample", "L_t with sampling probability L/N", "PoissonSampler"),
    (
        "Compute gradient",
        "for each i in L_t, g_t(x_i) <- grad_theta L(theta_t, x_i)",
        "Sequential SoftmaxCrossEntropy.F1 SoftmaxCrossEntropy.B1",
    ),
    (
        "Clip gradient",
        "gbar_t(x_i) <- g_t(x_i) / max(1, |g_t(x_i)|_2 / C)",
        "Sanitizer.N1 clip_weights Sanitizer.F1",
    ),
    (
        "Add noise",
        "gtilde_t <- (1/L) (sum_i gbar_t(x_i) + N(0, sigma^2 C^2 I))",
        "ClipGroup.F1 Sanitizer.F2 add_gaussian Trainer.F2 Trainer.F3",
    ),
    ("Descent", "theta_(t+1) <- theta_t - eta_t gtilde_t", "Trainer.F4 SGD"),
    (
        "Output",
        "theta_T, and the overall privacy cost (epsilon, delta) by a privacy accounting method",
        "Sanitizer.S1 Sanitizer.S2 Plan.S1 MomentsAccountant tail_bound_epsilon",
    ),
)


def as_it_runs(rows, record=None):
    """[{line, says, places, run}]: "card.label" of the rows for each line, and its values in the
    record of a run.

    rows are those of the library's whole audit, as JSON. With a record, sampler, optimizer and
    accountant are the run's.
    """
    by_name = {}
    for row in rows:
        by_name.setdefault(row["card"].rpartition(".")[2], []).append(row)
    figures = _figures(record) if record else [""] * len(LINES)
    chosen = _chosen(record) if record else {}
    return [
        {
            "line": line,
            "says": says,
            "run": run,
            "places": [
                f"{row['card']}.{row['label']}"
                for name, _, label in (wanted.partition(".") for wanted in names.split())
                for row in by_name.get(chosen.get(name, name), ())
                if label in ("", row["label"])
            ],
        }
        for (line, says, names), run in zip(LINES, figures)
    ]


def _chosen(record):
    """{a card of LINES: the card that the run uses instead}."""
    conversions = {"moments": "tail_bound_epsilon", "renyi": "sharper_epsilon"}
    return {
        "PoissonSampler": record.sampler,
        "SGD": record.settings.optimizer,
        "MomentsAccountant": type(make(record.accountant)).__name__,
        "tail_bound_epsilon": conversions.get(record.accountant),
    }


def _figures(record):
    """The values of a run for each line, as text."""
    settings, groups = record.settings, record.settings.clip_groups

    def each(key):
        return ", ".join(f"{_said(getattr(group, key))} ({group.name})" for group in groups)

    return [
        ", ".join(name for group in groups for name in group.parameters),
        f"T = {settings.planned_steps}: {record.steps} ran, {record.steps_charged} charged",
        f"{record.sampler}: L/N = {settings.expected_lot_size:g} / "
        f"{settings.dataset_size} = {settings.sampling_probability:g}",
        f"of {record.dataset} on {record.device}; {record.gradients} gradients",
        f"C = {each('clip_norm')}",
        f"sigma = {each('noise_multiplier')}",
        f"{settings.optimizer}, eta = {_said(settings.learning_rate)}",
        f"epsilon {upper_text(record.epsilon[record.accountant].upper)} at delta "
        f"{record.delta:g} by {called(record.accountant)}",
    ]


def _said(value):
    """A setting as text: a number, or a schedule with its fields."""
    return (
        " ".join(f"{field} {entry}" for field, entry in value.items())
        if isinstance(value, dict)
        else str(value)
    )
