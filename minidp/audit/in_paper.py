"""Statements of Abadi et al. 2016 that no run here uses, written as cards so that they can be
compared with the accountants.
"""

import math


def privacy_loss(x: float, q: float, sigma: float) -> float:
    r"""The privacy loss c_x at the outcome x of a Gaussian on a Poisson lot.

    Bound
        [C1]  c_x = ln(mu_x / nu_x), mu_x = (1-q) nu_x + q exp(-(x-1)^2/(2 sigma^2)) / (sigma sqrt(2
              pi)), nu_x = exp(-x^2/(2 sigma^2)) / (sigma sqrt(2 pi))    nu is the density without
              the example, mu with it

    Source
        [C1]  Abadi et al. 2016, Eq. (1); mu and nu of Eq. (3) and Eq. (4)
    """
    return math.log1p(q * math.expm1((2 * x - 1) / (2 * sigma**2)))  # [C1]


def gaussian_mechanism_delta(epsilon: float, sigma: float) -> float:
    r"""The delta of one Gaussian release, as the paper cites it.

    Bound
        [C1]  delta = 4/5 exp(-(sigma epsilon)^2/2)

    Valid for
        epsilon in (0, 1) and sigma >= 0.4, by comparison with the exact delta, which is up to 1.26
        times this one where sigma is smaller. The theorem that is cited has 5/4, for every sigma.

    Source
        [C1]  Abadi et al. 2016, Section 2.1, Gaussian mechanism; Dwork, Roth 2014, Theorem 3.22
    """
    return 4 / 5 * math.exp(-((sigma * epsilon) ** 2) / 2)  # [C1]


def lemma_3_log_moment(q: float, sigma: float, order: float) -> float:
    r"""The leading term of the bound on the log moment of a Gaussian on a Poisson lot.

    Bound
        [C1]  alpha = q^2 lambda (lambda+1) / ((1-q) sigma^2)    the lemma adds O(q^3 lambda^3 /
              sigma^3), without a constant

    Valid for
        sigma >= 1, q < 1/(16 sigma), whole lambda <= sigma^2 ln(1/(q sigma)). There the exact log
        moment is 0.49 to 1.09 of the leading term (measured): alone it is no bound, such as at
        sigma = 1, q = 0.0497 and lambda = 3.

    Source
        [C1]  Abadi et al. 2016, Lemma 3
    """
    return q**2 * order * (order + 1) / ((1 - q) * sigma**2)  # [C1]


def theorem_1_noise(q: float, steps: int, epsilon: float, delta: float) -> float:
    r"""The noise multiplier that Theorem 1 asks for, with the constant that its proof gives.

    Bound
        [C1]  sigma = 2 q sqrt(T ln(1/delta)) / epsilon

    Valid for
        no setting by itself, because the proof leaves out the O of Lemma 3. With lambda = 2
        ln(1/delta) / epsilon within the lemma's range, sigma >= 3 was enough in all that were
        tried with lambda >= 2 (measured). For epsilon 53.3, T = 100,000, q = 0.0163 and delta =
        2.6e-12, sigma = 1 is not: the exact epsilon is at least 68.8 (measured). `Plan.calibrated`
        and `minidp.calibrate` find noise that is proved to be enough.

    Source
        [C1]  Abadi et al. 2016, Theorem 1; own derivation: c_2 = 2 solves T q^2 lambda^2 /
              sigma^2 = lambda epsilon / 2 and exp(-lambda epsilon / 2) = delta, of its proof
    """
    return 2 * q * math.sqrt(steps * math.log(1 / delta)) / epsilon  # [C1]
