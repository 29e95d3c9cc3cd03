# %% [markdown]
# # 2. One step by hand
#
# Algorithm 1 of *Deep Learning with Differential Privacy* (Abadi et al. 2016) trains neural
# networks so that lesson 1's promise holds. In this lesson you write one of its steps in twenty
# lines of NumPy. Then minidp takes the same step with the same random numbers, and you account for
# every difference.
#
# The data are made up: 1,000 rows of 8 numbers, in 3 classes.

# %%
import matplotlib.pyplot as plt
import numpy as np

import minidp
from minidp import nn
from minidp.mechanism import Plan, PoissonSampler, Sanitizer, flat_group
from minidp.streams import Streams
from minidp.train import SGD, Trainer

rng = np.random.default_rng(2)
N, LOT, CLIP, SIGMA, RATE = 1000, 100, 2.5, 2.0, 0.5
x = rng.normal(size=(N, 8))
y = np.argmax(x[:, :3] + 0.5 * rng.normal(size=(N, 3)), axis=1)
W = rng.normal(size=(8, 3)) / 8

# %% [markdown]
# ## Draw a lot
#
# A step uses only some of the rows, the *lot*. Each row enters it with probability 100 / 1000,
# independently of all others. This is called *Poisson sampling*. The lot has 100 rows on average,
# but its size is random. That nobody knows who is in the lot is part of the protection, as lesson 3
# shows.
#
# We take minidp's random numbers, so that we can compare later. They follow from a seed, so that
# they can be drawn again. That is good for a lesson. It is fatal for a model that you publish:
# whoever knows the seed can draw the noise again and subtract it.

# %%
streams = Streams(seed=2)
(lot,) = PoissonSampler(LOT / N).lots(N, steps=1, stream=streams.sampling)
z = streams.noise(0).standard_normal(W.shape)
print(len(lot), "rows:", lot[:8], "...")

# %% [markdown]
# ## One gradient per row
#
# The model is `softmax(x @ W)`, and the loss is the cross-entropy. The gradient of *one* row with
# respect to W is the outer product of the row and the error: a matrix of 8 x 3 for each row.
# Ordinary training needs only their mean. We need each one, because each one must be limited.

# %%
scores = x[lot] @ W
chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
error = chance - np.eye(3)[y[lot]]
gradients = x[lot][:, :, None] * error[:, None, :]  # (lot, 8, 3)
norms = np.sqrt((gradients**2).sum(axis=(1, 2)))
print("norms from", norms.min().round(2), "to", norms.max().round(2))

# %% [markdown]
# ## Clip, add, add noise, divide
#
# - Each gradient longer than the *clip norm* C is scaled to length C. Its weight is C / norm.
# - The sum of the clipped gradients moves by at most C if a row comes or goes.
# - The noise has standard deviation `SIGMA * CLIP` in each number of the sum. SIGMA is the *noise
#   multiplier*.
# - The sum is divided by 100, the *expected* size of a lot, and not by the size of this lot: that
#   size depends on who is in the data. Lesson 4 shows what goes wrong otherwise.
#
# The result is the step's *release*: the promise covers an attacker who sees it.

# %%
weights = np.minimum(1, CLIP / norms)
total = (weights[:, None, None] * gradients).sum(axis=0)
noise = SIGMA * CLIP * z
released = (total + noise) / LOT
by_hand = W - RATE * released

# %% tolerance=0.001
figure, axes = plt.subplots(1, 3, figsize=(9, 2.6))
axes[0].hist(norms, 30)
axes[0].axvline(CLIP, color="C3")
axes[0].set(title="gradient norms; red: C", xlabel="norm", ylabel="rows")
axes[1].plot(norms, weights, ".")
axes[1].set(title="clip weights", xlabel="norm", ylim=(0, 1.1))
axes[2].bar(np.arange(24) - 0.2, total.ravel(), 0.4, label="clipped sum")
axes[2].bar(np.arange(24) + 0.2, noise.ravel(), 0.4, label="noise")
axes[2].set(title="24 numbers of the sum", xlabel="number")
axes[2].legend()
figure.tight_layout()
print(f"{np.mean(norms > CLIP):.0%} of the gradients were clipped")

# %% [markdown]
# On the right, the noise is smaller than the largest sums, but it is not small. One row can add a
# vector of length 2.5 at most, spread over all 24 numbers, and the noise has standard deviation 5
# in each of them. A single row drowns in the noise. What many rows agree on does not, and the step
# learns it.
#
# ## The same step by minidp
#
# The parts have the same names: a sampler, a sanitizer (which clips, adds and adds noise), and a
# plan, which knows how much epsilon the step uses up. The first time, this cell may take a minute,
# because minidp compiles its fastest parts for your computer and keeps them.

# %% tolerance=0.02
network = nn.Sequential([nn.Dense(8, 3, bias=False, dtype="float64", name="dense")], (8,))
network.params["dense", "W"][...] = W
sanitizer = Sanitizer(flat_group(network.params, clip_norm=CLIP, noise_multiplier=SIGMA))
plan = Plan(PoissonSampler(LOT / N), sanitizer, steps=1, expected_lot_size=LOT)
trainer = Trainer(network, nn.SoftmaxCrossEntropy(), SGD(RATE), plan)
trainer.train(x, y, Streams(seed=2))
by_minidp = network.params["dense", "W"]
print(f"largest difference: {np.abs(by_minidp - by_hand).max():.12f}")

# %% [markdown]
# The two agree in seven decimals. The difference has two reasons, and both are deliberate.
#
# 1. **A margin in the clip weight.** Computers round. A gradient that was scaled to length C may
#    come out a little longer than C, and then the promise is broken a little. minidp treats each
#    norm as larger by a factor of 1 + 2^-20, so that C is not exceeded after rounding either.
# 2. **A grid.** The last bits of a floating-point sum can tell which numbers were added. Therefore
#    minidp rounds the noisy sum to multiples of a power of two, at least 2^20 times as fine as the
#    noise. This grid is *public*: it does not depend on the data.
#
# Do both by hand, one after the other:

# %% tolerance=0.02
weights = 1 / np.maximum(1, norms * (1 + 2**-20) / CLIP)
total = (weights[:, None, None] * gradients).sum(axis=0)
with_margin = W - RATE * (total + noise) / LOT
print(f"with the margin:  {np.abs(by_minidp - with_margin).max():.12f}")

grid = 2.0 ** (np.floor(np.log2(SIGMA * CLIP)) - 20)
with_grid = W - RATE * np.rint((total + noise) / grid) * grid / LOT
print(f"and the grid:     {np.abs(by_minidp - with_grid).max():.12f}")

# %% [markdown]
# No difference is left. You have written a step of private training. Here C is 2.5, so that one
# row, such as Ann's in lesson 1, adds a vector of length 2.5 at most, and the noise in each number
# is 5. The proof uses nothing else about her row. Everything else in a library makes the step fast,
# or counts how much epsilon the steps use up. The cell also prints how often any attack can find
# Ann at most, if it accepts 1% false alarms:

# %% tolerance=0.001
for steps in (1, 100, 1000):
    cost = minidp.epsilon(
        noise_multiplier=SIGMA, sampling_probability=LOT / N, steps=steps, delta=1e-4
    )
    epsilon = cost.upper
    found = cost["meaning"]["true_positive_rates"]["0.01"]
    print(f"{steps:5} steps: epsilon {epsilon:.3f}, no attack finds more than {found:.1%}")

# %% [markdown]
# A blind guess with 1% false alarms finds Ann in 1% of the trainings. After one step, no attack
# does much better. After 1,000 steps an attack may find her in a quarter of the trainings, and
# e^epsilon is about 1,450. Each step uses up some epsilon.
#
# ## Your turn
#
# Put one more row into the lot by hand: the row `x = 100 * np.ones(8)` of class 0. By how much does
# the clipped sum move, as a length (`np.linalg.norm`)? By how much would the sum move without
# clipping? Which standard deviation of the noise would hide the second move as well as the present
# one hides the first?
#
# Next: [where epsilon comes from](3_epsilon.ipynb).
