"""What the owner is told of rows that are equal."""

import re

import numpy as np
import pytest

import minidp
from minidp.privacy import group_epsilon
from minidp.privacy.accountants import make


def test_copies_of_rows_are_told_to_the_owner_with_the_epsilon_of_their_group(tmp_path, capsys):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 3))
    y = np.arange(400) < 40
    x = np.vstack([x, *[x[:40]] * 6])
    y = np.concatenate([y, *[y[:40]] * 6])
    given = {"epsilon": 1.0, "steps": 20, "seed": 1}
    model = minidp.fit(x, y, folder=tmp_path / "run", **given)
    said = capsys.readouterr().err
    group = group_epsilon(make("renyi"), model.ledger, model.delta, 7).upper
    assert "280 of 640 rows are equal to others, up to 7 to each other" in said
    stated = float(re.search(r"7 rows together have ([\d.]+);", said)[1])
    assert stated == pytest.approx(group, rel=0.01) and stated > 4 * model.epsilon.upper
    assert not any(b"280" in each.read_bytes() for each in (tmp_path / "run").glob("*.md"))
    minidp.fit(x, y, person=np.arange(640), rows_per_person=1, **given)
    minidp.fit(x[:400], y[:400], **given)
    assert "equal to others" not in capsys.readouterr().err


@pytest.mark.parametrize("share, said", [(1.0, True), (0.6, True), (0.3, False)])
def test_a_test_set_of_training_rows_in_another_order_is_told_to_the_owner(share, said, capsys):
    rng = np.random.default_rng(4)
    x, more = rng.normal(size=(200, 3)), rng.normal(size=(100, 3))
    test = np.vstack([x[::-1][: int(100 * share)], more[: 100 - int(100 * share)]])
    minidp.fit(x, x[:, 0] > 0, test=(test, test[:, 0] > 0), epsilon=1.0, steps=5)
    assert ("rows of test are equal to training rows" in capsys.readouterr().err) == said


@pytest.mark.parametrize("columns", [4, 18])
def test_equal_answers_of_other_persons_are_no_copies(columns, capsys):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (4000, 1)).repeat(columns, axis=1).astype(float)
    x[:, :2] = rng.integers(0, 2, (4000, 2))
    y = (x[:, 0].astype(int) ^ (rng.random(4000) < 0.2)).astype(int)
    test = (x[2000:], y[2000:])
    minidp.fit(x[:2000], y[:2000], bounds=(0, 1), classes=[0, 1], epsilon=1.0, test=test, steps=5)
    assert "equal to" not in capsys.readouterr().err
