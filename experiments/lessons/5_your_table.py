# %% [markdown]
# # 5. Your own table
#
# You have a table about people, and must hand over a model with a statement of what it discloses.
# Here the table has the columns of *Adult*, a part of the US census of 1994: age, work, education,
# and whether somebody earns more than 50,000 dollars a year. The rows are made up, so that you need
# no download. One line, marked below, takes the real ones instead.
#
# ## The schema
#
# A model needs numbers. Somebody must say how a text becomes a number and which range an age has.
# If you read that from the rows, the model gives away something about them that epsilon does not
# count. Therefore it is written down beforehand, from the public description of the data. This is
# the *schema*.

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown

import minidp
from minidp.privacy import Ledger

sys.path.append("..")  # the folder of the experiments, with the schema of Adult
import adult

described = adult.schema()
for name in ("age", "hours-per-week", "workclass", "fnlwgt"):
    print(name, described[name])


# %%
def made_up(rows):
    """({column: values}, labels): every column independent, and a rule for the income."""
    rng = np.random.default_rng(5)
    table = {}
    for name, column in described.items():
        if column["type"] == "number":
            table[name] = rng.integers(column["low"], column["high"] + 1, rows)
        else:
            table[name] = rng.choice(column.get("values", ["?"]), rows)
    married = table["marital-status"] == "Married-civ-spouse"
    score = table["education-num"] / 4 + table["age"] / 30 + 2 * married + rng.normal(size=rows)
    return table, np.where(score > 5.3, ">50K", "<=50K")


# %%
# for Adult itself: table, label, _ = adult.load("FOLDER OF adult.csv")
table, label = made_up(12_000)
N, DELTA = 8000, 1e-5


def part(rows):
    return {name: values[rows] for name, values in table.items()}, label[rows]


train, test = part(slice(0, N)), part(slice(N, None))
print(f"{np.mean(label == '<=50K'):.1%} earn at most 50,000 dollars")

# %% [markdown]
# ## With privacy and without
#
# One call trains. You choose epsilon. You also choose delta, far below 1 divided by the number of
# rows, as in lesson 1. minidp chooses learning rate, lot size, clip norm, steps and noise by a rule
# that looks only at public numbers, such as the number of rows. Therefore these choices use up no
# epsilon. With infinite epsilon, minidp trains the same model without clipping and noise, so that
# you can see what privacy costs. That model is not protected at all. (The first fit may take a
# minute, because minidp compiles its fastest parts.)
#
# The seed makes this page reproducible. Leave it out before you release anything: whoever knows the
# seed can draw the noise again and subtract it.

# %% tolerance=0.02
models = {}
for epsilon in (0.1, 1.0, np.inf):
    models[epsilon] = minidp.fit(
        *train,
        epsilon=epsilon,
        delta=DELTA,
        schema=described,
        classes=["<=50K", ">50K"],
        dataset_size=N,
        seed=1,
        quiet=True,
    )
    print(f"epsilon {epsilon}: {models[epsilon].score(*test):.1%} right")

# %% [markdown]
# Here epsilon 1 costs nothing that these test rows could show, and epsilon 0.1 costs almost three
# percentage points. For whom is the model worse?

# %% tolerance=0.05
figure, axis = plt.subplots(figsize=(5, 2.6))
for place, (epsilon, model) in enumerate(models.items()):
    said, right = model.predict(test[0]), np.asarray(test[1])
    heights = [100 * np.mean(said[right == label] == label) for label in model.classes]
    axis.bar(np.arange(2) + 0.27 * place, heights, 0.25, label=f"epsilon {epsilon}")
    print(f"epsilon {epsilon}: {heights[0]:.0f}% and {heights[1]:.0f}% right")
axis.set_xticks([0.27, 1.27], ["at most 50K", "more than 50K"])
axis.set(ylabel="% right", ylim=(0, 130))
axis.legend(loc="upper center", ncols=3, fontsize="small")
figure.tight_layout()

# %% [markdown]
# At epsilon 0.1, the model is worse for the rarer class. The total hides that. Look at each group
# before you decide on an epsilon.
#
# ## The statement, line by line
#
# Every fit writes a statement for those who get the model. It begins with what is promised.

# %% tolerance=0.001
private = models[1.0]
sections = dict(each.split("\n", 1) for each in private.statement.split("\n## ")[1:])
Markdown(sections["In short"])

# %% [markdown]
# - *The bold sentence* is the guarantee: epsilon, delta, and whom they protect. "Added or removed"
#   says which two worlds are compared. Here it is the table with one row and without it.
# - *What this means* is lesson 1 in one sentence: how often an attacker is right who knows all
#   other rows.
# - *Who is protected*: one row. If a person has five rows, all five together are protected much
#   less.
# - *What is not covered* is as important as the rest. The next section has the list.

# %%
Markdown(sections["What is not covered"])

# %% [markdown]
# Take these points seriously. You can compute the first one, and what it means to have several
# rows. What is epsilon for a person who has five rows (`group_size=5`)? And what is epsilon if you
# fit twice, look at both models, and release the better one? Every model has a *ledger*, the list
# of all noisy steps from which epsilon is computed. For two fits, put both lists together.

# %% tolerance=0.01
for rows in (1, 5):
    found = minidp.epsilon(ledger=private.ledger, delta=DELTA, group_size=rows)
    print(f"a person with {rows} rows: epsilon {found.upper:.2f}")

twice = Ledger(entries=2 * private.ledger.entries())
found = minidp.epsilon(ledger=twice, delta=DELTA)
print(f"two fits: epsilon {found.upper:.2f}")

# %% [markdown]
# The statement says 1.00 for a row. It would have to say 6.16 for a person with five rows. To
# protect a person with all of their rows, use `minidp.fit(..., person="name", rows_per_person=5)`.
# And two fits at epsilon 1 have epsilon 1.46 together. To add up all fits on the same rows, use
# `minidp.fit(..., ledger="file")`. A fit that you throw away counts as well, because you saw it.
#
# `private.report("folder")` writes the model, the statement, the ledger and a picture into a new
# folder, and `python -m minidp verify folder` computes every figure again.
#
# ## Your turn
#
# Your table has up to three rows of each person, and you want epsilon 1 for persons. But you fit
# without `person=`, so that the epsilon you ask for is that of a row. Which one must you ask for?
# Try some values: fit, then compute epsilon with `group_size=3` as above. Is it more or less than a
# third of 1?
#
# Next: [choosing well](6_choosing.ipynb).
