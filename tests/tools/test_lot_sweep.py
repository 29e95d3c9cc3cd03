"""The sweep over lots: that its steps go through batches, and what it writes."""
import json

import pytest

from minidp.train import Trainer
from tools import lot_sweep


def test_a_lot_goes_through_in_batches_of_the_given_size(monkeypatch):
    seen = []
    monkeypatch.setattr(Trainer, "step", lambda self, x, y, lot, step, streams: seen.append((self.batch_size, len(lot))))
    row = lot_sweep.measure(40, 7, 2)
    assert [batch for batch, _ in seen] == [7, 7] and all(10 < size < 90 for _, size in seen)
    assert row["lot"] == 40 and row["seconds"] >= 0 and row["cpu_seconds"] >= 0 and row["process_mib"] > 10


def test_writes_a_row_for_every_lot(tmp_path, capsys):
    path = tmp_path / "lots.json"
    assert lot_sweep.main(["--lots", "4", "8", "--batch", "4", "--repeats", "1", "--json", str(path)]) == 0
    result = json.loads(path.read_text())
    assert [row["lot"] for row in result["rows"]] == [4, 8] and all(row["cpu_seconds"] > 0 for row in result["rows"])
    assert result["command"] == "python tools/lot_sweep.py --lots 4 8 --batch 4 --repeats 1"
    assert "lot      4" in capsys.readouterr().out


@pytest.mark.parametrize("flags, message", [(["--lots", "0"], "at least 1"), (["--json", "no/such/x"], "no such folder")])
def test_bad_flags_are_refused(flags, message, capsys):
    with pytest.raises(SystemExit):
        lot_sweep.main(flags)
    assert message in capsys.readouterr().err
