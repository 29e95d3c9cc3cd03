"""Forms and rules of experiments are those that the committed searches chose."""

import json

from common.results import RESULTS

import cifar_best
import cifar_transfer
import mnist_best
import mnist_learned
import pytest

SCRIPTS = {"mnist_best": mnist_best, "mnist_learned": mnist_learned, "cifar_best": cifar_best}
ALSO_TRIED = {"cifar_best": {"opponent": True, "mirrored": True}}  # parts of a form, now fixed


def committed(name):
    return json.loads((RESULTS / f"{name}_settings.json").read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_form_and_rule_are_those_that_the_committed_search_chose(name):
    form, rule = SCRIPTS[name].FORM | ALSO_TRIED.get(name, {}), SCRIPTS[name].RULE
    assert committed(name)["choice"] == {"form": form, "rule": {**rule, "power": 0.0}}


def test_taps_and_rule_are_those_that_the_committed_search_chose():
    found, more = committed("cifar_transfer"), {"cosines": None, "power": 0.0}
    assert found["choice"] == {**cifar_transfer.RULE, "taps": cifar_transfer.TAPS, **more}
    assert found["pretrained"]["classes"] == 100  # half of the public set's
