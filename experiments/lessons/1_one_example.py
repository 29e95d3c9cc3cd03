# %% [markdown]
# # 1. What can one example do?
#
# A hospital trains a model on the records of 200 patients and publishes the model's weights. Ann
# may be one of the patients. Can somebody who reads the weights find out whether she is?
#
# In this lesson they can, always. Then you take that away from them in two moves: *clipping* and
# *noise*. You need NumPy and ten minutes, and you need to know nothing about privacy.

# %%
import matplotlib.pyplot as plt
import numpy as np

import minidp

rng = np.random.default_rng(1)
others = rng.normal(size=(199, 5))  # five measurements of each of the other patients
others_ill = (others[:, 0] + rng.normal(size=199) > 0).astype(float)
ann = np.array([0, 0, 0, 0, 12.0])  # Ann's fifth measurement is unusual
with_ann = np.vstack([others, ann]), np.append(others_ill, 1.0)
without = others, others_ill
STEPS, RATE = 25, 2.0  # of the training

# %% [markdown]
# ## The model
#
# The model is a logistic regression: for a patient `x` it predicts the chance of being ill as `1 /
# (1 + exp(-x @ w))`. Training starts at random weights. At each step, the *gradient* of a patient
# is `error * x`, which says how the weights should move to fit that patient. The gradients of all
# patients are added, and the weights move against the sum.
#
# Ignore `clip` and `noise` for now. The function trains many models side by side, each from its own
# start, because we want to see what *usually* happens.


# %%
def train(x, ill, models, clip=None, noise=0.0):
    """The weights (models, 5) of so many models."""
    w = 0.1 * rng.normal(size=(models, 5))
    for _ in range(STEPS):
        error = 1 / (1 + np.exp(-w @ x.T)) - ill  # (models, patients)
        if clip:
            norm = np.abs(error) * np.linalg.norm(x, axis=1)  # of each patient's gradient
            error = error / np.maximum(1, norm / clip)
        total = error @ x
        if noise:
            total += noise * clip * rng.normal(size=total.shape)
        w -= RATE * total / 200
    return w


# %% tolerance=0.03
print("a model with Ann:   ", train(*with_ann, models=1)[0].round(2))
print("a model without her:", train(*without, models=1)[0].round(2))

# %% [markdown]
# Two models, one row apart. The start explains some of the difference. Does Ann explain the rest?
#
# ## The attack
#
# The attacker knows all other patients and how training works, but not whether Ann was there. So
# the attacker trains models in both worlds, with Ann and without her, and looks at the fifth
# weight. Then they read the published model and say which world it is from. Both worlds are equally
# likely, so that a coin would be right half the time.
#
# It may seem too generous to let the attacker know everybody else. But what is safe from them is
# safe from everyone who knows less.

# %%
MODELS = 2000


def show(axis, title, **how):
    """Both worlds' histograms, and the largest share of models about which one can be right."""
    inside, outside = (train(*world, MODELS, **how)[:, 4] for world in (with_ann, without))
    bins = np.linspace(min(outside), max(inside), 50)
    for weights, name in ((inside, "with Ann"), (outside, "without her")):
        axis.hist(weights, bins, alpha=0.6, label=name)
    right = max(np.mean([inside > each, outside <= each]) for each in bins)
    axis.set(title=f"{title}: {right:.0%} right", xlabel="fifth weight", yticks=[])
    print(axis.get_title())


# %% tolerance=0.03
figure, axes = plt.subplots(1, 3, figsize=(9, 2.6))
show(axes[0], "no protection")
show(axes[1], "clipped", clip=0.5)
show(axes[2], "clipped, with noise", clip=0.5, noise=10.0)
axes[0].legend(loc="center")
figure.tight_layout()

# %% [markdown]
# **Left.** The histograms do not meet. The attacker is right every time.
#
# **Middle.** A patient's gradient that is longer than the *clip norm* `C = 0.5` is scaled down to
# that length. Nobody moves the sum by more than C any more, however unusual the measurement is. Ann
# still has influence, but no more than anybody else may have.
#
# **Right.** Noise is added to the sum at each step: normal numbers of standard deviation 10 C. The
# 10 is the *noise multiplier*: how large the noise is beside the most that one person can add. The
# histograms come together: 60% is not far from a coin.  Clipping alone does not do it, because a
# small shift is still a shift. Noise alone does not do it either: without clipping nobody knows how
# much noise is enough. And the noise must be new at each step: if two steps had the same noise, the
# difference of their sums would be free of it.
#
# ## How much can the attacker still find out?
#
# This attacker looks at one weight, once. A better one sees the sum of each step, and subtracts the
# gradients of all others, who are known. What remains is noise, plus Ann's gradient if she is
# there. Her gradient has length C at most, so the attack does best if it always has that length and
# one direction. The attacker adds up what remains over the steps. In units of C, Ann adds 1 at each
# step.
#
# Do not compare this figure with the share of right answers above. The attacker now accepts 10%
# *false alarms*: they say "Ann" in 10% of the trainings without her. What counts is how many
# trainings with her they find.

# %% tolerance=0.03
NOISE, RUNS = 10.0, 200_000
remains = NOISE * rng.normal(size=(2, STEPS, RUNS)).sum(axis=1)  # in both worlds
inside, outside = remains[0] + STEPS, remains[1]
threshold = np.quantile(outside, 0.9)  # 10% false alarms
print(f"they find her in {np.mean(inside > threshold):.2%} of the trainings with her")

# %% [markdown]
# Would a cleverer attacker find more? No experiment can answer that, since somebody may think of a
# better attack tomorrow. But a mathematical proof can: it bounds what *any* attacker finds. The
# function `minidp.epsilon` computes this bound from the noise multiplier and the number of steps.
# `sampling_probability=1.0` says that everybody takes part in each step. The function returns much
# more than you need here; look only at the two numbers that the cell prints.

# %% tolerance=0.001
DELTA = 1e-4
found = minidp.epsilon(noise_multiplier=NOISE, sampling_probability=1.0, steps=STEPS, delta=DELTA)
allowed = found["meaning"]["true_positive_rates"]["0.1"]
epsilon = found.upper
print(f"the proof allows {allowed:.2%}, and says: epsilon {epsilon:.3f} at delta {DELTA:g}")

# %% [markdown]
# Where the proof allows 21.7%, somebody who watches every step finds out 21.7%. There is no gap: no
# attack does better, and this one does as well. What the proof promises is called *differential
# privacy*. The promise is written with two numbers.
#
# *Epsilon* compares the two worlds. Name any set of models. The chance that training ends in that
# set is, with Ann, at most e^epsilon times the chance without her, and the other way round. If
# epsilon is 0, the two worlds are the same, but then nothing was learned from anybody. If epsilon
# is 1, nothing that anybody can see is more than e^1 = 2.7 times as likely in one world as in the
# other, apart from delta, which comes next. Here epsilon is 1.7, and e^1.7 is 5.5.
#
# *Delta* is for bad luck: the chance in one world may exceed e^epsilon times the chance in the
# other by delta at most. It must be far below 1/200, for 200 patients. Suppose that delta is 1/200,
# and that the hospital publishes the whole record of one patient, picked at random. Ann is picked
# with chance 1/200, and this is just what delta allows. The promise would be kept, and worth
# nothing.
#
# You choose delta. Epsilon then follows from delta, the noise multiplier, the number of steps and
# the share of the rows that take part in a step (here all; fewer in lesson 2). It does not depend
# on the data: the promise holds for Ann and for everybody else.
#
# A large epsilon still promises something, but e^epsilon says little about it: epsilon 7.3, which
# lesson 2 reaches, allows a factor of about 1,450. Ask instead what the best attack finds at few
# false alarms, as the cell above does. The next picture shows both.

# %% tolerance=0.03
false = np.linspace(0, 1, 200)  # how often they say "Ann" when she is not there
true = [np.mean(inside > np.quantile(outside, 1 - each)) for each in false]
figure, axis = plt.subplots(figsize=(4.2, 3.2))
for delta in (DELTA, 0.02, 0.08, 0.15):
    cost = minidp.epsilon(
        noise_multiplier=NOISE, sampling_probability=1.0, steps=STEPS, delta=delta
    )
    most = np.exp(cost.upper) * false + delta
    axis.fill_between(false, np.minimum(1, most), 1, alpha=0.25, color="C3", linewidth=0)
axis.plot(false, true, color="C0", label="an attacker watches every step")
axis.plot(false, false, ":", color="C1", label="an attacker tosses a coin")
axis.set(xlabel='"Ann" is said, without her', ylabel='"Ann" is said, with her')
axis.set(title="red: no attack can be here")
axis.legend()
figure.tight_layout()

# %% [markdown]
# The axes are how often the attacker says "Ann" in the trainings without her (false alarms) and in
# those with her. The edge of a red area is the line `e^epsilon * without + delta`: it starts at
# delta, and epsilon is how steep it is. Each delta has its epsilon, and the picture shows four of
# these pairs.
# All pairs, not only these four, together cover everything above the blue line. Therefore no attack
# is better than this one.
#
# ## Your turn
#
# There is a single step, and the noise multiplier is 2. In units of C, what remains for the
# attacker is a normal number of standard deviation 2, with mean 1 if Ann is there and mean 0 if she
# is not. Both worlds are equally likely. The attacker says "Ann" if the number is above 1/2. How
# often are they right? Compute it (`rng.normal` will do). Then find the noise multiplier for which
# they are right in 55% of all cases.
#
# Next: [one step by hand](2_one_step.ipynb).
