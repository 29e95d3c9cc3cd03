"""experiments/names_lstm.py on made-up names."""

import json

from common import names

import names_lstm
import numpy as np
import pytest

from minidp.errors import DataError
from minidp.streams import Streams


@pytest.fixture
def folder(tmp_path, rng):
    """A file of the list's layout."""
    made = ["".join(rng.choice(list("abcde"), size)) for size in rng.integers(2, 14, 300)]
    lines = [
        f"{name.upper():14} 0.1  0.2  {place}\n"
        for place, name in enumerate(dict.fromkeys(made), 1)
    ]
    (tmp_path / names.FILE).write_text("".join(lines))
    return tmp_path


def test_bits_of_a_network_and_tables(folder, tmp_path, capsys):
    found = tmp_path / "found.json"
    flags = f"--smoke --seed 0 --target-epsilon 2,inf --data-dir {folder} --json {found}"
    names_lstm.main(flags.split())
    one, other = json.loads(found.read_text())["runs"]
    assert one["epsilon"] <= 2 and other["epsilon"] is None
    assert capsys.readouterr().out.count("epsilon 2 (at") == 1
    assert 1 < one["bits"] < 6 and one["tables"]["bigrams"] > other["tables"]["bigrams"]


def test_a_table_counts_ngrams_and_a_name_counts_at_most_4():
    symbols = names.encode(["ab", "ab", "b" * 13])
    counts = names.table(symbols, 2, np.inf, 1e-6, Streams(0))
    begin, end = names.SYMBOLS, names.END
    assert [counts[place] for place in ((begin, 0), (0, 1), (1, 0))] == [2, 2, 0]
    long = 1 / np.sqrt(12**2 + 2)  # of norm 12.1, clipped to 4
    assert counts[1, end] == pytest.approx(2 + 4 * long) and counts[1, 1] == pytest.approx(
        48 * long
    )


def test_without_surnames_the_package_is_named(tmp_path):
    with pytest.raises(DataError, match="dist.all.last is neither.*pip install names"):
        names.load(str(tmp_path))
