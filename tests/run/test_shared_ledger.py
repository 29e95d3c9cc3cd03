"""A shared ledger: one lock for all names of the file, and refusals before anything is written."""

import pytest

from minidp.errors import ParameterError
from minidp.privacy import Gaussian, Ledger
from minidp.run import shared_ledger as shared
from minidp.run.folder import CONFIG


@pytest.fixture
def charges():
    ledger = Ledger()
    ledger.append(Gaussian(4.0))
    return ledger


def test_a_file_with_hard_links_is_refused_and_stays_as_it_was(tmp_path, charges):
    path = tmp_path / "ledger.json"
    shared.charge_shared(path, charges)
    (tmp_path / "other.json").hardlink_to(path)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=r"2 names \(hard links\).*symbolic links"):
        shared.charge_shared(path, charges)
    assert path.read_bytes() == before and path.samefile(tmp_path / "other.json")


def test_a_link_to_the_ledger_of_a_run_is_refused(tmp_path, charges):
    (tmp_path / CONFIG).touch()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "shared.json"
    link.symlink_to(tmp_path / "ledger.json")
    with pytest.raises(ParameterError, match="is the folder of a run"):
        shared.charge_shared(link, charges)
