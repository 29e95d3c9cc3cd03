"""How much of a row's length each column has, and what public bounds may cost."""

import numpy as np
import pytest

import minidp
from minidp.fitting.columns import pieces_of
from minidp.fitting.mean import shrunk_by_column

GIVEN = {"epsilon": 1.0, "delta": 1e-5, "classes": [0, 1], "quiet": True}


def log_loss(model, x, y):
    return float(-np.log(model.predict_proba(x)[np.arange(len(y)), y]).mean())


def test_a_strong_category_is_learned_beside_many_numbers_that_are_looked_at():
    rng = np.random.default_rng(1)
    letters = rng.choice(list("abcd"), 5000, p=[0.1, 0.2, 0.3, 0.4])
    x = rng.normal(50, 3, (5000, 25))
    z = np.select([letters == "a", letters == "b", letters == "c"], [4, 1, -1], -2)
    z = z + 0.1 * (x[:, 0] - 50)
    y = (rng.random(5000) < 1 / (1 + np.exp(-z))).astype(int)
    table = {f"x{place}": column for place, column in enumerate(x.T)} | {"letter": letters}
    schema = {name: {"type": "number", "low": 0, "high": 100, "gaps": False} for name in table}
    schema["letter"] = {"type": "category", "values": list("abcd"), "gaps": False}
    train, held = ({name: cells[part] for name, cells in table.items()} for part in PARTS)
    looked, public = (
        minidp.fit(train, y[PARTS[0]], schema=schema, seed=1, scale=scale, **GIVEN)
        for scale in ("auto", "bounds")
    )
    found = [log_loss(model, held, y[PARTS[1]]) for model in (looked, public)]
    assert found[0] < found[1] + 0.005


PARTS = slice(2500), slice(2500, None)


@pytest.mark.parametrize("rows, columns", [(50, 6), (200, 20), (1000, 60), (2000, 250)])
def test_public_bounds_are_never_worse_than_none(rows, columns):
    gains = []
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(rows + 3000, columns))
        y = (rng.random(len(x)) < 1 / (1 + np.exp(-0.9 * x[:, :5].sum(axis=1)))).astype(int)
        losses = [
            log_loss(
                minidp.fit(x[:rows], y[:rows], bounds=b, seed=seed, **GIVEN), x[rows:], y[rows:]
            )
            for b in (None, (-5, 5))
        ]
        gains.append(losses[0] - losses[1])
    assert np.mean(gains) > -0.01


def test_limits_that_say_next_to_nothing_are_looked_within_as_if_there_were_none():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(6000, 4))
    y = (rng.random(6000) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(int)
    number = {"type": "number", "low": 0, "high": 2e9, "gaps": False}
    table = {f"x{place}": column + 1e9 for place, column in enumerate(x.T)}
    train, held = ({name: cells[part] for name, cells in table.items()} for part in PARTS)
    losses = [
        log_loss(minidp.fit(rows, y[PARTS[0]], seed=1, **GIVEN, **named), new, y[PARTS[1]])
        for rows, new, named in (
            (x[PARTS[0]], x[PARTS[1]], {}),
            (x[PARTS[0]] + 1e9, x[PARTS[1]] + 1e9, {"bounds": (0, 2e9)}),
            (train, held, {"schema": dict.fromkeys(table, number)}),
        )
    ]
    assert max(losses) < losses[0] + 0.01


def test_a_model_of_noise_becomes_the_shares_of_the_classes():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(4000, 8)), (rng.random(4000) < 0.3).astype(int)
    model = minidp.fit(x[:3000], y[:3000], bounds=(-5, 5), seed=1, **GIVEN)
    p = model.predict_proba(x[3000:])[:, 1]
    assert np.ptp(p) < 1e-6 and abs(p[0] - y[:3000].mean()) < 0.02
    assert all(term.noise for term in model.terms().values())
    assert model.feature_importances_.tolist() == [0.0] * 8


def test_pieces_need_rows_for_each_column():
    assert pieces_of(1000, 0.27, 5, looked=True)[0] == 3
    assert pieces_of(1000, 0.27, 60, looked=True)[0] == pieces_of(100, 0.27, 1, looked=True)[0] == 0


def test_released_weights_of_noise_are_shrunk_and_those_of_a_signal_stay():
    rng = np.random.default_rng(6)
    columns = np.repeat([0, 1], 50)
    signal = np.where(columns[:, None] == 0, [[-1.0, 1.0]], 0.0)
    noisy = signal + 0.05 * rng.standard_normal((100, 2))
    found, noise = shrunk_by_column(noisy, columns, 0.05, part=1)
    assert noise == [1]
    assert np.abs(found[columns == 0] - signal[columns == 0]).max() < 0.3
    assert np.abs(found[columns == 1]).max() < 0.05
    assert np.abs(found.sum(axis=1)).max() < 1e-12
