"""The columns of the pages' tables: title, and the format of a row's value."""


def columns(text):
    """[(title, template)] of a table's columns, a line each."""
    return [tuple(line.split(": ", 1)) for line in text.strip().splitlines()]


CNN = columns("""
setting: {config.setting}: sigma {SIGMA:g}, {epochs:.0f} epochs, \
rate {settings.learning_rate:g}, C {C:g}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
published: {published}
loss_distribution: {epsilon.loss_distribution.upper:upper}
renyi: {epsilon.renyi.upper:upper}
moments: {epsilon.moments.upper:upper}
gaussian_clt: {epsilon.gaussian_clt.upper:upper}
""")
CIFAR = columns("""
run: {name:run}
epsilon, delta 1e-5: {SPENT:upper}
sigma, of the mean: {SIGMA:.3g}, {settings.mean_noise_multiplier:.3g?none}
C: {C:.3g}
lots of: {settings.expected_lot_size:,}
lots: {steps:,}
trained: {config.train_layers:?one layer, on fixed features}
network, on the public classes: {pretrained.test_accuracy:.1%}
test accuracy, mean (range): {test_accuracy:spread}
over ten views: {test_accuracy_over_views:spread}
seeds: {seed:count}
the paper: {paper}
""")
BEST = columns("""
epsilon, delta 1e-5: {epsilon.loss_distribution.upper:upper}
sigma, of the mean: {SIGMA:.3g}, {settings.mean_noise_multiplier:.3g}
lots of: {settings.expected_lot_size:,}
lots: {steps:,}
rate, C: {settings.learning_rate:.3g}, {C:.3g}
test accuracy, mean (range): {test_accuracy:spread}
seeds: {seed:count}
published: {published}
""")
LEARNED = [
    *BEST[:-3],
    ("without other data, mean (range)", "{test_accuracy:spread}"),
    ("with learned features, mean (range)", "{learned}"),
    ("networks before training", "{before:.2%}"),
    *BEST[-2:],
]
BEST_OF_ALL = [BEST[0], *BEST[-3:], ("with features learned from synthetic digits", "{beside:.2%}")]
EARLIER = columns("""
file: [{stem}](results/{stem}.json)
made by: `{command}`
last commit: {last_commit}
""")
SWEEPS = columns("""
figure: {figure}
command: `{command}`
runs' time, minutes: {seconds_of_all_runs:minutes}
seeds: {seeds:items}
device: {device:listed}
ours: [picture](results/{stem}.png), [numbers](results/{stem}.json)
""")
LEVELS = columns("""
stopped by: {how}
noise (sigma, sigma_pca): {key} ({sigma}, {sigma_pca})
epsilon, delta 1e-5: {epsilon:upper}
lots: {steps:,}
test accuracy: {self:spread}
training (not private): {train_accuracy_not_private:.2%}
seeds: {seeds}
""")
PANELS = columns("""
panel: {panel}
value: {value}
lots: {steps:,}
epochs: {epochs:.4g?0}
test accuracy: {self:spread}
seeds: {seeds}
""")
TUNED = [("lots of", "{x:,}"), ("rate", "{learning_rate.final:g}"), *PANELS[2:]]
LEDGERS = columns("""
(sigma, sigma_pca): ({sigma}, {sigma_pca})
lots: {lots:,}
reported: {reported_epsilon:g?none}
2016 ledger, a comparison: {ledger_2016:.3f}
joint rule, moments: {joint_moments:upper}
joint rule, loss distribution: {joint_loss_distribution.upper:upper}
flat clipping, moments: {flat_moments:upper}
accuracy reported: {reported_accuracy:.0%?none}
today at the reported epsilon: {today.accuracy_at_reported_epsilon:.2%?none}
least epsilon seen today with that accuracy: {today.epsilon_of_reported_accuracy:g?none}
""")
CLAIMS = columns("""
published (sigma, epochs): ({sigma}, {epochs})
claimed epsilon: {claim:upper}
sigma by moments (certified epsilon): {accountants.moments.noise_multiplier:.4f} \
({accountants.moments.worth.upper:upper})
by CLT (certified epsilon): {accountants.gaussian_clt.noise_multiplier:.4f} \
({accountants.gaussian_clt.worth.upper:upper})
by loss distribution (certified epsilon): {accountants.loss_distribution.noise_multiplier:.4f} \
({accountants.loss_distribution.worth.upper:upper})
""")
OWN = columns("""
data: {about}
rows: {rows:,}
accuracy, or R2 (standard deviation): {score}
without privacy: {without_privacy:.3f?}
epsilon: {epsilon:upper}
delta: {delta:g}
""")
SAMPLERS = columns("""
`--sampler`: `{sampler}`
lots: {lots}
neighbours: {neighbours}
epsilon at most: {loss_distribution.upper:upper}
""")
STEPS = columns("""
workload: {workload}
gradients: {contender}
step, ms: {step_ms:ms}
to floor: {to.floor:.2f}
to PyTorch, not private: {to.torch:.2f}
""")
AGAINST = [
    *STEPS,
    ("to JAX, not private", "{to.jax:.2f}"),
    ("to Opacus, ghost clipping", "{to.opacus-ghost:.2f}"),
]
TRAINED = columns("""
optimizer: {optimizer:optimizer}
noise by: {by}
lots: {steps:,}
test accuracy: {self:spread}
seeds: {seeds}
""")
PERSONS = columns("""
trained on: {key}
AUROC, five splits by person: {mean:.4f}
standard error: {standard_error:.4f}
""")
ADULT = columns("""
model: {key}
accuracy, five splits: {accuracy:.2%}
AUROC: {auroc:.4f}
seconds a fit: {seconds:.1f}
""")
NAMES = columns("""
epsilon: {key}
lstm: {network.mean:.3f}
bigrams: {bigrams.mean:.3f}
trigrams: {trigrams.mean:.3f}
different names made: {different:,.0f}
of which trained on: {in_training_set:,.0f}
by chance: {by_chance:,.0f}
seeds: {seeds}
""")
