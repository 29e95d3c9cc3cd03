"""The pictures as their user runs them, on small settings."""

import json

from tools import attack_pictures


def test_pictures_and_figures_are_written_and_the_attacks_fail(tmp_path):
    attack_pictures.main(["--smoke", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "attacks.json").read_text())
    assert (
        (tmp_path / "attack_noise.png").stat().st_size
        > 5000
        < (tmp_path / "attack_sums.png").stat().st_size
    )
    shares = {
        name: [abs(a - b) for a, b in zip(*rows.values())]
        for name, rows in found["on_lattice"].items()
    }
    assert min(shares["before: float32"]) > 0.6 > 0.15 > max(shares["ordinary"] + shares["exact"])
    assert found["worst"]["before: float32"][-1] > 1.05 > found["charged"][-1]
    assert all(
        a <= b
        for name in ("ordinary", "exact")
        for a, b in zip(found["worst"][name], found["charged"])
    )
