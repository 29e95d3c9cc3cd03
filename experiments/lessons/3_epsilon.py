# %% [markdown]
# # 3. Where epsilon comes from
#
# Lesson 1 used epsilon, and lesson 2 computed it by calling a function. Here you see what the
# function adds up. One idea is enough: the *privacy loss*, a random number that says how much was
# given away.
#
# As in lesson 1, the attacker subtracts everybody else, and the unit is the clip norm C. From each
# step they see `b + sigma * z`. Here `b` is 1 if Ann is in the lot and 0 if she is not, `sigma` is
# the noise multiplier, and `z` is a normal number. If she is in the data, she is in a lot with
# probability `q`, the sampling probability.
#
# Delta is 1/1000 in this lesson. That is too large for a promise to many people, but 50,000
# simulated trainings can show it.

# %%
import matplotlib.pyplot as plt
import numpy as np

import minidp

rng = np.random.default_rng(3)
RUNS, DELTA = 50_000, 1e-3


# %%
def losses(steps, sigma, q, tensors=1):
    """The privacy loss (RUNS,) of so many steps, each on a lot that has Ann with probability q."""
    total = np.zeros(RUNS)
    for _ in range(steps):
        b = rng.random(RUNS) < q
        seen = b + sigma * rng.normal(size=(tensors, RUNS))
        likelier = np.exp(((2 * seen - 1) / (2 * sigma**2)).sum(axis=0))  # if she is in this lot
        total += np.log(1 - q + q * likelier)  # if she is in the data
    return total


# %% [markdown]
# ## One release
#
# `losses` simulates trainings *with* Ann, and what the attacker sees of them. Take what is seen,
# and divide how likely it is with her by how likely it is without her. In the code, `likelier` is
# this ratio for a lot that has her for sure. She is in the lot only with probability q, so that the
# ratio of the step is `1 - q + q * likelier`. The logarithm of the ratio is the privacy loss. If
# the loss is 0, nothing was learned. If it is 2, what was seen is 7.4 times as likely with Ann.
#
# Epsilon is a line in the histogram of losses: the loss should stay left of it. It cannot always,
# because normal noise has no largest value. *Delta* says how much may be to the right. A loss that
# exceeds epsilon by a little counts a little, and one that exceeds it by far counts fully. (The
# promise must also hold with the two worlds exchanged. Here that never needs a larger delta.)
#
#     delta = mean of max(0, 1 - e^(epsilon - loss))


# %% tolerance=0.05
def epsilon_of(loss):
    """The smallest epsilon on a grid for which the mean is at most DELTA."""
    for epsilon in np.arange(0, 50, 0.005):
        if np.mean(np.maximum(0, 1 - np.exp(epsilon - loss))) <= DELTA:
            return epsilon


one = losses(steps=1, sigma=2.0, q=1.0)
print(f"mean loss {one.mean():.3f}, epsilon {epsilon_of(one):.2f} at delta {DELTA:g}")

# %% [markdown]
# ## Many releases, with and without sampling
#
# Training has many steps. Each step draws new noise. Therefore the ratios multiply, and the losses
# add up. That is all that *composition* means. The histogram moves to the right, and grows wider.
#
# Now compare two trainings with the same noise. In one, Ann is in every lot. In the other, a coin
# lets her into one lot in ten. The vertical axis is logarithmic: epsilon is decided by rare losses.

# %% tolerance=0.1
figure, axes = plt.subplots(1, 3, figsize=(9, 2.6))
for axis, steps in zip(axes, (1, 10, 1000)):
    for q in (1.0, 0.1):
        found = losses(steps, 10.0, q)
        epsilon = epsilon_of(found)
        (_, _, bars) = axis.hist(found, 60, alpha=0.6, density=True, label=f"q = {q}")
        axis.axvline(epsilon, color=bars[0].get_facecolor())
        print(f"{steps:4} steps, q = {q}: mean loss {found.mean():.4f}, epsilon {epsilon:.3f}")
    axis.set(title=f"steps: {steps}; line: epsilon", xlabel="privacy loss", yscale="log", yticks=[])
axes[1].legend(loc="lower center")
figure.tight_layout()

# %% [markdown]
# After 1,000 steps, sampling with q = 1/10 has divided the mean loss by about 100, and not by 10.
# When Ann is out of the lot, the step says nothing about her. When she is in, the attacker does not
# know that, and must take most of what is seen for noise. She is there rarely, and she is
# rarely believed: 1/10 times 1/10.
#
# This works only if the lots really are drawn like that. Epsilon must be computed for the sampling
# that the program does. Lesson 4 shows what happens otherwise.
#
# ## Certified, and by moments
#
# A histogram from 50,000 runs knows nothing of rarer losses, and a promise must hold for these too.
# minidp does not simulate. It computes the shares of the losses in narrow bars, combines the steps
# by a Fourier transform, and rounds every error to the safe side. This method is called the *loss
# distribution*. It gives an interval that certainly contains epsilon. The *moments accountant* of
# 2016 computes only averages of e^(k loss), for some numbers k. This is simpler, and its epsilon is
# larger than it need be.


# %% tolerance=0.05
def accountants(steps, sigma, q):
    """The rows that `minidp epsilon` prints."""
    setting = dict(noise_multiplier=sigma, sampling_probability=q, steps=steps)
    return minidp.epsilon(**setting, delta=DELTA, accountant="all")["accountants"]


for steps in (1, 10, 100, 1000):
    found, simulated = accountants(steps, 1.0, 0.01), epsilon_of(losses(steps, 1.0, 0.01))
    certified = found["loss_distribution"]
    print(
        f"{steps:4} steps: simulated {simulated:.2f}, certified {certified['lower']:.3f} to",
        end=" ",
    )
    print(f"{certified['upper']:.3f}, by moments {found['moments']['upper']:.3f}")

# %% [markdown]
# The simulation agrees with the certified interval, as far as 50,000 runs can tell. The moments
# accountant is safe as well, since its epsilon is never too small. But whoever uses it adds more
# noise than the promise needs.
#
# ## The mistake of 2016
#
# A network has several tensors of weights. The code that came with the paper clipped and noised
# each tensor of a step separately. Its *ledger*, the list from which epsilon is computed, *charged*
# each tensor as if it had a lot of its own: it had two entries where there was one step. But a step
# has *one* lot: if Ann is in it, she is in it for all tensors. With two lots the attacker would be
# fooled twice. With one lot, the second tensor helps to recognise her in the first.

# %% tolerance=0.05
STEPS, Q, SIGMA = 1000, 0.01, 1.0
charged, true = losses(2 * STEPS, SIGMA, Q), losses(STEPS, SIGMA, Q, tensors=2)
figure, axis = plt.subplots(figsize=(4.6, 2.8))
for found, name in ((charged, "charged: two lots"), (true, "what happened: one lot")):
    axis.hist(found, np.linspace(-3, 6, 80), alpha=0.6, label=name)
axis.set(xlabel="privacy loss of 1,000 steps", yscale="log", yticks=[])
axis.legend()

ledger, both = accountants(STEPS, (SIGMA, SIGMA), Q), (epsilon_of(charged), epsilon_of(true))
print(f"charged as in 2016: simulated {both[0]:.2f}, printed {ledger['ledger_2016']['upper']:.2f}")
print(f"what happened: simulated {both[1]:.2f}, certified at most", end=" ")
print(f"{ledger['loss_distribution']['upper']:.2f}")

# %% [markdown]
# The histogram of what happened reaches further to the right. Where the ledger of 2016 prints 2.55,
# the simulation of somebody who watches every step finds 2.77. minidp charges each step as one
# joint release of all tensors, and certifies 2.79.
#
# ## Your turn
#
# Without sampling (q = 1), the loss of one step is a normal number with mean `1 / (2 sigma**2)` and
# standard deviation `1 / sigma`. After how many steps with sigma = 10 is the mean loss 1? What is
# the standard deviation then? Which sigma in a *single* step gives the same histogram? Check your
# answers with `losses`.
#
# Next: [break it](4_break_it.ipynb).
