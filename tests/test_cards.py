from pathlib import Path

from tools import check_cards


def test_every_equation_has_its_code_and_its_test(capsys):
    code = check_cards.main(Path(__file__).resolve().parents[1])
    assert code == 0, capsys.readouterr().out
