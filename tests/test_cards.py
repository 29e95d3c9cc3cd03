from pathlib import Path

from minidp.audit import checks
from tools import check_cards


def test_every_equation_has_its_code_and_its_check(capsys):
    code = check_cards.main(Path(__file__).resolve().parents[1], checks.load())
    assert code == 0, capsys.readouterr().out
