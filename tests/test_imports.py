from pathlib import Path

from tools import check_imports


def test_imports_point_downward(capsys):
    code = check_imports.main(Path(__file__).resolve().parents[1])
    assert code == 0, capsys.readouterr().out
