"""Make the files of tests/fixtures/0.1.0, which later versions must load, verify, predict from and
resume: `python -m tests.support.make_old_files FOLDER` in a checkout of commit 56e97636 that this
file was copied to.
"""

import pickle
import sys
from pathlib import Path

import numpy as np

from minidp import fit, nn
from minidp.run import save_model
from minidp.sklearn import PrivateClassifier
from tests.support import running

SCHEMA = {
    "age": {"type": "number", "low": 0, "high": 100, "gaps": True},
    "city": {"type": "category", "values": ["Bern", "Rome"]},
    "sick": {"type": "category", "values": ["no", "yes"], "role": "label"},
}


def table():
    """A dictionary of columns of 300 rows."""
    rng = np.random.default_rng(0)
    age, city = rng.integers(0, 100, 300).astype(float), rng.choice(["Bern", "Rome"], 300)
    age[::50] = np.nan
    return {"age": age, "city": city, "sick": np.where(age > 50, "yes", "no")}


def arrays():
    """x (300, 4) and y (300,)."""
    x = np.random.default_rng(1).uniform(-1, 1, (300, 4))
    return x, (x[:, 0] > 0) * 1


def table_settings(folder):
    """What the fit of the table was given."""
    given = {"epsilon": 2.0, "delta": 1e-4, "steps": 4, "schema": SCHEMA, "quiet": True}
    return given | {"folder": folder / "table", "ledger": folder / "shared.json"}


def array_settings(folder):
    """What the fit of the arrays was given."""
    given = {"epsilon": 2.0, "delta": 1e-4, "steps": 4, "bounds": (-1, 1), "quiet": True}
    return given | {"folder": folder / "arrays", "ledger": folder / "shared.json"}


def text_network():
    """Embedding, LSTM and a dense layer over sequences of five ids."""
    rng = np.random.default_rng(2)
    layers = [
        nn.Embedding(7, 3, rng=rng),
        nn.LSTM(3, 4, states="last", rng=rng),
        nn.Dense(4, 2, rng=rng),
    ]
    return nn.Sequential(layers, (5,))


def main(folder):
    """Write everything."""
    folder.mkdir(parents=True)
    tabled = fit(table(), **table_settings(folder))
    x, y = arrays()
    plain = fit(x, y, **array_settings(folder))
    estimator = PrivateClassifier(epsilon=2.0, delta=1e-4, steps=4, bounds=(-1, 1)).fit(x, y)
    (folder / "estimator.pickle").write_bytes(pickle.dumps(estimator))
    assert running.train(folder / "interrupted", stop=running.interrupt) is None
    for name in ("table", "arrays"):
        (folder / name / "columns.png").unlink()  # a picture, which nothing reads
    network, ids = text_network(), np.arange(15).reshape(3, 5) % 7
    save_model(folder / "text.npz", network)
    np.savez(
        folder / "expected.npz",
        table=tabled.predict_proba(table()),
        arrays=plain.predict_proba(x),
        estimator=estimator.predict_proba(x),
        text=network.predict(ids),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
