# %% [markdown]
# # 4. Break it
#
# A private step that is wrong looks like one that is right: the model trains, the numbers are
# noisy, and an epsilon is printed. In this lesson you break a step in five ways that are found in
# real programs. Each time a tool finds the fault. The tool does not read the step: it calls the
# step, and compares what comes out with what the step promises.
#
# First the right step, as in lesson 2. The model predicts the last number of a row from the five
# others.

# %%
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

import minidp
from minidp.audit import check_step

CLIP, SIGMA, LOT = 1.0, 1.5, 16
w = np.array([1.0, -1.0, 0.5, 0.0, 0.0])
rng = np.random.default_rng(4)


# %%
def gradients(rows):
    """One gradient (5,) per row: of half the squared error."""
    x, target = rows[:, :5].astype(float), rows[:, 5].astype(float)
    return (x @ w - target)[:, None] * x


def clipped_sum(each):
    """The sum of the gradients, each of length CLIP at most."""
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(each, axis=1, keepdims=True)
        each = np.where(np.isfinite(norms), each / np.maximum(1, norms * (1 + 2**-20) / CLIP), 0)
    return each.sum(axis=0)


# %%
def with_noise(total):
    """The sum plus noise, rounded to a grid that does not depend on the data."""
    grid = 2.0**-20
    return np.rint((total + SIGMA * CLIP * rng.normal(size=total.shape)) / grid) * grid


def step(rows):
    return with_noise(clipped_sum(gradients(rows))) / LOT


# %%
def check(step, **more):
    """Print the tests of `check_step` that fail; it makes lots of its own and calls the step."""
    stated = dict(row_shape=(6,), clip_norm=CLIP, noise_multiplier=SIGMA, expected_lot_size=LOT)
    report = check_step(step, **stated, **{"claims": ("finite", "bits"), **more})
    wrong = [each for each in report.findings if each.verdict == "violated"]
    for each in wrong:
        print(fill(f"{each.name}: {each.text}", 98))
    print(f"{len(wrong)} of {len(report.findings)} tests failed")


# %% tolerance=0.1
check(step)

# %% [markdown]
# The function `check` tells the tool what the step promises: a clip norm, a noise multiplier and an
# expected lot size. The tool makes lots of its own: an empty lot, random rows, from 1 to 192 copies
# of one row, and such copies up to a thousand times as large. It calls the step many times on each
# lot and takes the mean, so that the noise averages out. These are the tests:
#
# - *sensitivity*: 96 equal rows move the sum by at most 96 C, because each may move it by C; so do
#   lots of fewer rows and of more.
# - *divisor*: twice the rows move the release twice as far.
# - *noise*: it has the promised size, is Gaussian, and is new each time.
# - *directions*: no sum of all numbers, whatever their weights, is without noise.
# - *empty lot*: a lot of no row releases noise alone.
# - *independence of rows*: 96 copies add the same to the sum, whatever rows are beside them. The
#   difference must be 0.
# - *trained*: rows do move the sum, as they must if the step is to learn anything.
# - *finite*: rows of NaN or infinity move the sum by at most C each.
# - *bits*: the rounding of the numbers gives nothing away. Section 4 shows how it can.
#
# Not every step promises the last two. This one does: that is what `claims` says. A right step is
# accused in at most one of 10,000 reports.
#
# One fault may fail several tests. Read all messages, and look for the one that explains the
# others. In a message, `all` means all numbers of the release, `made rows` are random rows, `row 0`
# is the row that is copied, and `less` means minus.
#
# ## 1. Divided by the lot at hand
#
# Lots vary in size. Why not divide by the size that the lot really has?


# %% tolerance=0.1
def divided(rows):
    return with_noise(clipped_sum(gradients(rows))) / max(1, len(rows))


check(divided)

# %% [markdown]
# Read all messages. *divisor* names the fault: 192 copies should move the sum twice as far as
# 96 copies, so that nothing should be left after subtracting twice. The others follow from it.
# *noise* was measured on an empty lot (`few rows`). The step divides this lot by 1 and not by 16,
# and its noise is 16 times as large as promised. (More noise is no danger to Ann. But lots of more
# than 16 rows get less noise than promised.) *independence of rows* fails because each row counts
# less when more rows are beside it.
#
# A wrong divisor seems harmless, since the size is only a number. Let an attacker show that it is
# not. Take a smaller step, with an expected lot size of 10 and noise multiplier 1. Nine rows of the
# lot push the weights up with full length C. Ann, if she is there, pushes them down. In the right
# step, the release without her is 9/10, and with her 8/10. In the wrong one it is 9/9 without her,
# and 8/10 with her: twice as far, with hardly more noise. The attacker says "Ann" if the release is
# below a threshold, chosen so that without Ann they are wrong in one lot in ten:

# %% tolerance=0.05
figure, axes = plt.subplots(1, 2, figsize=(7, 2.6))
for axis, title, size in ((axes[0], "right", 10), (axes[1], "divided by the lot at hand", 9)):
    without = (9 + rng.normal(size=100_000)) / size  # nine rows
    with_ann = (8 + rng.normal(size=100_000)) / 10  # ten rows, one of them Ann's
    for values, name in ((with_ann, "with Ann"), (without, "without her")):
        axis.hist(values, np.linspace(0.3, 1.5, 60), alpha=0.6, label=name)
    found = np.mean(with_ann < np.quantile(without, 0.1))
    axis.set(title=f"{title}: they find {found:.0%}", xlabel="release", yticks=[])
    print(axis.get_title())
axes[0].legend()
figure.tight_layout()
cost = minidp.epsilon(noise_multiplier=1, sampling_probability=1, steps=1, delta=1e-5)
print(f"the proof allows {cost['meaning']['true_positive_rates']['0.1']:.1%}")

# %% [markdown]
# Where the proof allows 39%, the attacker finds Ann in about 72% of the lots. The proof is not
# wrong. It is about another program.
#
# ## 2. Batch normalisation
#
# Many networks subtract the mean of the lot from each feature and divide by the standard deviation.
# Then one row changes the gradients of *all* rows. Clipping limits what each row adds. It cannot
# limit what one row does to the others. (A row of NaN would spoil the means as well. Therefore this
# step claims only `bits`.)


# %% tolerance=0.1
def normalised(rows):
    x = rows[:, :5].astype(float)
    if len(rows):
        x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-3)
    return with_noise(clipped_sum(gradients(np.hstack([x, rows[:, 5:]])))) / LOT


check(normalised, claims=("bits",))

# %% [markdown]
# ## 3. Shuffled, and charged as Poisson
#
# Most programs shuffle the rows once per epoch and cut them into lots. Many then print the epsilon
# of Poisson sampling, where a coin is tossed for each row and each lot, as in lesson 2. With coins,
# nobody can be sure that Ann was in any lot. With shuffling, she is in exactly one lot per epoch,
# and all lots have the same size. (`check` now also gets the function that draws the lots. A new
# test, *sampler*, draws with it.)


# %% tolerance=0.1
def shuffled(rows, steps):
    """Lots as most programs draw them: `steps` arrays of numbers of rows."""
    while True:
        yield from rng.permutation(rows)[: rows // LOT * LOT].reshape(-1, LOT)


check(step, lots=shuffled, sampling_probability=LOT / 320, claims=("poisson", "bits"))
for sampler in ("poisson", "shuffle"):
    sizes = dict(dataset_size=320, lot_size=LOT, steps=200, sampler=sampler)
    cost = minidp.epsilon(noise_multiplier=SIGMA, delta=1e-4, **sizes)
    print(f"{sampler}: epsilon {cost.upper:.2f}")

# %% [markdown]
# ## 4. Noise in float32
#
# A float32 number has half the digits of a float64 number, and is faster. But a computer's numbers
# have gaps, and in float32 the gaps are wide. Which last bits a noisy sum can have then depends on
# the sum under the noise. A single release can tell two data sets apart, however large the noise is
# ([how](../../tools/README.md#attacks)).


# %% tolerance=0.1
def in_float32(rows):
    total = clipped_sum(gradients(rows)).astype("float32")
    noise = rng.standard_normal(total.shape, dtype="float32")
    return (total + np.float32(SIGMA * CLIP) * noise) / np.float32(LOT)


check(in_float32)

# %% [markdown]
# ## 5. Charged layer by layer
#
# The step has two layers: the first three numbers and the last two, each clipped to C and noised by
# itself (`parts` says so). Lesson 3 showed the mistake: both come from the same lot, but each is
# charged as if it had a lot of its own. The releases are right. The epsilon is not. A new test,
# *claim*, computes what the steps really cost.


# %% tolerance=0.1
def two_layers(rows):
    each = gradients(rows)
    return with_noise(np.append(clipped_sum(each[:, :3]), clipped_sum(each[:, 3:]))) / LOT


parts = {"first": (slice(0, 3), CLIP, SIGMA), "second": (slice(3, 5), CLIP, SIGMA)}
plan = dict(sampling_probability=0.05, delta=1e-4)
wrong = minidp.epsilon(noise_multiplier=SIGMA, steps=2 * 500, **plan)
claimed = wrong.upper
check(two_layers, parts=parts, steps=500, claimed_epsilon=claimed, **plan)

# %% [markdown]
# ## Your turn
#
# Somebody sends you this step. Read it first: what is wrong? Then run `check(theirs)`. How far can
# one row move the sum at most, and why is this the square root of 5 times as far as it may? Compare
# with what *sensitivity* says about 96 equal rows. Mend the step until no test fails.


# %%
def theirs(rows):
    each = np.clip(gradients(rows), -CLIP, CLIP)
    return with_noise(each.sum(axis=0)) / LOT


# %% [markdown]
# Next: [your own table](5_your_table.ipynb). To check a step of your own, in any library: [check
# your own step](../../minidp/audit/README.md#check-your-own-step).
