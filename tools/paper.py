"""The rows of minidp/PAPER.md: each part of the two papers, and what it is here.

A place is a card or "card.label"; a card or label that is missing is an error, so that the page
names nothing that is gone. What `minidp audit --card ITEM` finds must hold the places of the item.
"""

from minidp.audit.card import Card, package
from tools.derived import TableError

# (part of the paper, what it says, places, where else)
ABADI = (
    (
        "Definition 1",
        "(epsilon, delta)-differential privacy",
        "epsilon_delta_curve.C1",
        "as an attacker's errors; `NeighbouringRelation` in [base.py](privacy/events/base.py) says "
        "which data sets are adjacent",
    ),
    (
        "Section 2.1, Gaussian mechanism",
        "delta >= 4/5 exp(-(sigma epsilon)^2/2)",
        "gaussian_mechanism_delta.C1 gaussian_delta.C1",
        "stated, and the exact delta, which is used",
    ),
    ("Algorithm 1, Initialize", "theta_0 at random", "truncated_normal.F1", ""),
    (
        "Algorithm 1, Take a random sample",
        "each example with probability L/N",
        "PoissonSampler.F1 PoissonSampler.S1",
        "",
    ),
    (
        "Algorithm 1, Compute gradient",
        "g_t(x_i) of each example",
        "Sequential.P1",
        "and the [P1], [P2] of each layer: `minidp audit --card Dense`",
    ),
    (
        "Algorithm 1, Clip gradient",
        "g / max(1, |g|/C)",
        "clip_weights.N2 Sanitizer.F1",
        "",
    ),
    (
        "Algorithm 1, Add noise",
        "(sum + N(0, sigma^2 C^2 I)) / L",
        "ClipGroup.F1 Sanitizer.F2 add_gaussian.F1 Trainer.F3",
        "",
    ),
    ("Algorithm 1, Descent", "theta - eta g", "Trainer.F4 SGD.F1", ""),
    (
        "Algorithm 1, Output",
        "theta_T and (epsilon, delta)",
        "Plan.S1 MomentsAccountant.M4 tail_bound_epsilon.C1",
        "all eight lines with a run's own numbers: `minidp audit RUN --html page.html`",
    ),
    (
        "Section 3.1, Per-layer and time-dependent parameters",
        "C and sigma for each layer and step",
        "Sanitizer.S2 Stages.F1",
        "`per_layer_groups` in [clip.py](mechanism/clip.py)",
    ),
    (
        "Section 3.1, Lots",
        "a lot is computed in batches",
        "Trainer.F2",
        "[batching.py](train/batching.py); a shuffled order is `ShuffleSampler`",
    ),
    (
        "Section 3.1, strong composition",
        "the theorem that the paper compares with",
        "AdvancedAccountant.C1 PaperStrongComposition.M1 PaperStrongComposition.C1",
        "the first is proved; the second is what Figure 2 draws",
    ),
    (
        "Theorem 1",
        "sigma >= c_2 q sqrt(T ln(1/delta)) / epsilon is enough",
        "theorem_1_noise.C1",
        "stated, with the constant of its proof; `minidp.calibrate` finds the least noise",
    ),
    ("Eq. (1)", "the privacy loss", "privacy_loss.C1", "[lesson 3]({lessons}/3_epsilon.ipynb)"),
    ("Eq. (2)", "the log moment alpha(lambda)", "MomentsAccountant.M1", ""),
    ("Theorem 2.1", "log moments add up", "MomentsAccountant.M4", ""),
    ("Theorem 2.2", "from log moments to delta", "tail_bound_epsilon.C1 tail_bound_delta.C1", ""),
    ("Eq. (3)", "E_1", "MomentsAccountant.M1", "integrated in [moment_kernels.py]({kernels})"),
    ("Eq. (4)", "E_2", "MomentsAccountant.M1", "integrated in [moment_kernels.py]({kernels})"),
    (
        "Lemma 3",
        "alpha <= q^2 lambda (lambda+1) / ((1-q) sigma^2) + ...",
        "lemma_3_log_moment.C1",
        "stated beside the exact log moment, which is used",
    ),
    (
        "Section 3.3, hyperparameter tuning",
        "few settings, and what a choice costs",
        "theorem_d1.C1",
        "[Tuning](run/README.md#tuning), [lesson 6]({lessons}/6_choosing.ipynb)",
    ),
    (
        "Figure 1, DPSGD_Optimizer",
        "charge, per-example gradients, sanitize, descend",
        "Trainer.F1 Trainer.F2 Trainer.F4",
        "`Trainer.step` in [trainer.py](train/trainer.py); its sanitizer is `Sanitizer`",
    ),
    (
        "Figure 1, DPTrain",
        "train while within_limit(eps, delta)",
        "",
        "`Trainer.train` and `Filter.charge_all` in [budget.py](privacy/budget.py)",
    ),
    (
        "Section 4, per-example gradients of dense layers",
        "as Goodfellow computes them",
        "Dense.P1 Outer.N1",
        "",
    ),
    (
        "Section 4, Sanitizer",
        "clips per-example gradients and adds noise",
        "Sanitizer.F1 Sanitizer.F2 Sanitizer.S2",
        "",
    ),
    (
        "Section 3.1 and Section 4, Privacy accounting",
        "add up the cost of each access to the data; odometer and filter",
        "Trainer.F1 MomentsAccountant.M4",
        "`Ledger` in [ledger.py](privacy/ledger.py), `Odometer` and `Filter` in "
        "[budget.py](privacy/budget.py); lambda <= 32 is `PAPER_ORDERS` in "
        "[moments.py](privacy/moments.py)",
    ),
    (
        "Section 4, Differentially private PCA",
        "noise on A^T A",
        "PrivatePCA.F1 PrivatePCA.F2 PrivatePCA.F3 PrivatePCA.F4",
        "",
    ),
    (
        "Section 4, Convolutional layers",
        "are pre-trained on public data",
        "Conv2D.P1",
        "[cifar_transfer.py]({experiments}/cifar_transfer.py); here they can be trained, too",
    ),
    (
        "Figure 2",
        "epsilon over epochs, two accountants",
        "",
        "[Figure 2]({experiments}/FIGURES.md#{figure_2})",
    ),
    (
        "Figure 3",
        "accuracy at three noise levels",
        "",
        "[Figure 3]({experiments}/FIGURES.md#figure-3-accuracy-and-delta-against-epochs)",
    ),
    (
        "Figure 4",
        "accuracy at pairs of epsilon and delta",
        "",
        "[Figure 4]({experiments}/FIGURES.md#figure-4-accuracy-for-epsilon-delta)",
    ),
    (
        "Figure 5",
        "one setting varies",
        "",
        "[Figure 5]({experiments}/FIGURES.md#figure-5-one-parameter-at-a-time)",
    ),
    ("Figure 6", "CIFAR-10", "", "[Figure 6]({experiments}/CIFAR.md)"),
    (
        "Sections 5.2 and 5.3, sentences",
        "figures in the text",
        "",
        "[verdicts]({experiments}/VERDICTS.md), a row each",
    ),
    (
        "Appendix A, proof of Theorem 2",
        "adding moments, Markov's inequality",
        "",
        "not in code, because it is a proof: its two results are Theorem 2.1 and 2.2 above",
    ),
    (
        "Appendix B, proof of Lemma 3, Eq. (5)",
        "a binomial expansion",
        "",
        "not in code, because the log moment is integrated and not expanded",
    ),
    ("Lemma C.1", "log moments of an epsilon-DP release", "MomentsAccountant.M3", "Appendix C"),
    (
        "Theorem D.1",
        "the cost of a search",
        "theorem_d1.C1 theorem_d1.C2 theorem_d1.C3",
        "Appendix D",
    ),
)
GDP = (
    (
        "f-DP, T(P, Q)",
        "the trade-off curve",
        "",
        "curves on a grid: [tradeoff.py](run/tradeoff.py)",
    ),
    ("f_(epsilon, delta)", "the curve of (epsilon, delta)-DP", "epsilon_delta_curve.C1", ""),
    ("G_mu", "Phi(Phi^-1(1 - a) - mu)", "gaussian_curve.C1", ""),
    ("sigma = sens / mu", "noise that is mu-GDP", "GaussianAccountant.M1", ""),
    (
        "Composition of curves",
        "f_1 x f_2 x ... x f_T",
        "LossDistributionAccountant.M2",
        "exactly, as a composition of privacy losses and not of curves",
    ),
    (
        "Central limit theorem",
        "mu = p sqrt(T (exp(1/sigma^2) - 1))",
        "GaussianAccountant.M2",
        "an approximation, and called one wherever it is printed",
    ),
    (
        "Subsampling",
        "p f + (1 - p) Id",
        "LossDistributionAccountant.M1",
        "as the loss of a mixture",
    ),
    (
        "min{f, f^-1}**",
        "both directions of neighbours",
        "",
        "not in code as curves: each accountant takes the worse direction",
    ),
    (
        "NoisySGD, Algorithm 1",
        "divides by the size of the lot at hand",
        "Trainer.F3",
        "not as it stands there, because that size is private: the expected size is the divisor",
    ),
    (
        "NoisyAdam",
        "Adam on released gradients",
        "Adam.F1 Adam.F2",
        "",
    ),
    ("delta(epsilon; mu)", "from mu to (epsilon, delta)", "gaussian_delta.C1", ""),
    (
        "Comparison with the moments accountant",
        "the limit is below it",
        "",
        "`minidp epsilon --all` prints both beside a proved interval",
    ),
    (
        "Proofs (4.1, 4.2)",
        "mixtures of curves, composition",
        "",
        "not in code, because they are proofs",
    ),
)
LINKS = {
    "experiments": "../experiments",
    "lessons": "../experiments/lessons",
    "kernels": "privacy/moment_kernels.py",
    "figure_2": "figure-2-strong-composition-and-the-moments-accountant",
}


def tables():
    """{name of a table: its lines}."""
    return {"paper": _lines(ABADI), "gdp": _lines(GDP)}


def cards_of(places):
    """[(card, label or "")] of places separated by spaces. Raises TableError for one that is not
    there.
    """
    by_name = {card.qualname: card for card, _ in package().values()}
    found = []
    for place in places.split():
        name, _, label = place.partition(".")
        if name not in by_name or label and label not in by_name[name].labels:
            raise TableError(f"tools/paper.py: there is no card {place}")
        found.append((by_name[name], label))
    return found


def _lines(items):
    rows = ["| in the paper | what it says | here |", "|---|---|---|"]
    for part, says, places, elsewhere in items:
        labels: dict[str, tuple[Card, list[str]]] = {}
        for card, label in cards_of(places):
            labels.setdefault(card.name, (card, []))[1].append(f"[{label}]")
        cards = [f"{_link(card)} {' '.join(held)}" for card, held in labels.values()]
        told = [", ".join(cards), elsewhere.format(**LINKS)]
        says = says.replace("|", "\\|")
        rows.append(f"| {part} | {says} | {'; '.join(filter(None, told))} |")
    return rows


def _link(card):
    return f"[`{card.qualname}`]({card.module.removeprefix('minidp/')})"
