"""experiments/adult.py on a made-up file of its layout."""

import csv
import json

import adult
import numpy as np

from minidp.data.schema import Schema


def test_a_file_as_it_comes_is_trained_on_with_and_without_privacy(tmp_path):
    rng = np.random.default_rng(0)
    described, rows = adult.schema(), 400
    ages = rng.integers(17, 90, rows)
    columns = {name: np.full(rows, "?") for name in described} | {"age": ages}
    columns["sex"] = rng.choice([" Female", " Male"], rows)
    columns["income-per-year"] = np.where(ages > 50, ">50K", "<=50K")
    with open(tmp_path / "adult.csv", "w", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values())])
    found = tmp_path / "found.json"
    adult.main(["--data-dir", str(tmp_path), "--smoke", "--json", str(found)])
    rows = json.loads(found.read_text())["figures"]
    assert rows["epsilon inf"]["auroc"] > 0.9 and rows["epsilon 1"]["runs"][0]["epsilon"] <= 1


def test_the_schema_encodes_what_the_description_lists():
    described = Schema.of(adult.schema())
    assert len(described.inputs) == 12 and not described.from_data
    assert sum(each.width for each in described.inputs) == 2 * 5 + 83 + 7
