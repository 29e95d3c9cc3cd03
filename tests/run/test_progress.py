"""What is seen of a run while it trains."""
import io

import pytest
from tqdm import tqdm

from minidp.run.progress import BAR, shown


@pytest.mark.parametrize("lots", [20, 10_331, 1_000_000])
@pytest.mark.parametrize("accuracy", [None, 1.0])
def test_epsilon_is_seen_whole_in_a_bar_of_80_columns(lots, accuracy):
    with tqdm(total=lots, initial=lots // 2, bar_format=BAR, ncols=80, file=io.StringIO()) as bar:
        bar.set_postfix_str(shown({"epsilon": 0.50247925, "test_accuracy": accuracy}))
        text = str(bar)
    assert len(text) <= 80 and "epsilon 0.5025" in text and ("test 100.00%" in text) == (accuracy is not None)
    assert f"{lots // 2}/{lots} lots" in text


def test_epsilon_in_the_bar_is_rounded_up():
    assert shown({"epsilon": 2.000001, "test_accuracy": None}) == "epsilon 2.001"
    assert shown({"epsilon": "inf", "test_accuracy": None}) == "epsilon infinite"
