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
# If you read that from the rows, you have released something about them. Therefore it is written
# down beforehand, from the public description of the data: the *schema*.

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
# One call trains. You choose epsilon. Delta follows lesson 1: far below one in the number of rows.
# Learning rate, lot size, clip norm, steps and noise follow from public numbers by a rule, so that
# choosing them costs nothing. Infinite epsilon trains the same model without clipping and noise. It
# is what you would have without privacy.
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
# Here epsilon 1 costs a third of a point, and epsilon 0.1 costs two points. Who pays?

# %% tolerance=0.05
figure, axis = plt.subplots(figsize=(5, 2.6))
for place, (epsilon, model) in enumerate(models.items()):
    found = model.per_class(*test)
    heights = [100 * each["accuracy"] for each in found.values()]
    axis.bar(np.arange(2) + 0.27 * place, heights, 0.25, label=f"epsilon {epsilon}")
    print(f"epsilon {epsilon}: {heights[0]:.0f}% and {heights[1]:.0f}% right")
axis.set_xticks([0.27, 1.27], ["at most 50K", "more than 50K"])
axis.set(ylabel="% right", ylim=(0, 130))
axis.legend(loc="upper center", ncols=3, fontsize="small")
figure.tight_layout()

# %% [markdown]
# At epsilon 0.1, the rarer class pays. Look at each group before you decide on an epsilon.
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
# None of these points is small print. Compute two of them. What is epsilon for a person who has
# five rows? And what is epsilon if you fit twice, look at both models, and release the better one?

# %% tolerance=0.01
for rows in (1, 5):
    found = minidp.epsilon(ledger=private.ledger, delta=DELTA, group_size=rows)
    print(f"a person with {rows} rows: epsilon {found['accountants'][found['quote']]['upper']:.2f}")

twice = Ledger(entries=2 * private.ledger.entries())
found = minidp.epsilon(ledger=twice, delta=DELTA)
print(f"two fits: epsilon {found['accountants'][found['quote']]['upper']:.2f}")

# %% [markdown]
# Where the statement says 1.00 for a row, it would have to say 6.16 for a person with five rows.
# This is the reason for `minidp.fit(..., person="name", rows_per_person=5)`, which protects a
# person with all of her rows. And two fits at epsilon 1 have epsilon 1.46 together. This is the
# reason for `minidp.fit(..., ledger="file")`, which adds up all fits on the same rows. What was
# fitted and thrown away counts as well.
#
# `private.report("folder")` writes the model, the statement, the ledger and a picture into a new
# folder, and `python -m minidp verify folder` computes every figure again.
#
# ## Your turn
#
# Your table has up to three rows of each person, and you want epsilon 1 for persons. You fit rows.
# Which epsilon for rows do you ask for? Try some values: fit, then `group_size=3` as above. Then
# compare with a third of 1.
#
# Next: [choosing well](6_choosing.ipynb).
