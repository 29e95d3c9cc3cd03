"""The searches for settings: what they choose, and which files they open."""

import json
from types import SimpleNamespace

from common.results import RESULTS

import cifar_best
import cifar_transfer
import mnist_best
import mnist_learned
import numpy as np
import pytest
import settings

from features.pretraining import CLASSES, even_classes
from features.stand_ins import MEMBERS, Colours
from minidp.data import load_cifar10, load_mnist
from minidp.data.cifar import FILES as COLOURS
from minidp.data.mnist import FILES
from minidp.errors import DataError

SCRIPTS = {
    "mnist_best": mnist_best,
    "mnist_learned": mnist_learned,
    "cifar_best": cifar_best,
    "cifar_transfer": cifar_transfer,
}


def committed(name):
    return json.loads((RESULTS / f"{name}_settings.json").read_text())


@pytest.mark.parametrize("name", ["mnist_best", "mnist_learned", "cifar_best"])
def test_form_and_rule_are_those_that_the_committed_search_chose(name):
    form, rule = SCRIPTS[name].FORM, SCRIPTS[name].RULE
    assert committed(name)["choice"] == {"form": form, "rule": {**rule, "power": 0.0}}


def test_taps_and_rule_are_those_that_the_committed_search_chose():
    found, more = committed("cifar_transfer"), {"cosines": None, "power": 0.0}
    assert found["choice"] == {**cifar_transfer.RULE, "taps": cifar_transfer.TAPS, **more}
    assert found["pretrained"]["classes"] == CLASSES // 2


@pytest.mark.parametrize("name", ["mnist_best", "cifar_best", "cifar_transfer"])
def test_the_rule_is_the_one_of_least_regret_in_the_committed_tables(name):
    problem = settings.PROBLEMS[name]
    compared = sum(len(epsilons) for _, epsilons in problem.last)
    last = committed(name)["tried"][-compared:]
    assert [one["epsilon"] for one in last] == [
        each for _, epsilons in problem.last for each in epsilons
    ]
    best = settings.rules(last, *problem.wide)[0]
    assert all(best[key] == SCRIPTS[name].RULE[key] for key in settings.CHOSEN)


@pytest.mark.parametrize(
    "name", ["mnist_best", pytest.param("mnist_learned", marks=pytest.mark.slow), "cifar_best"]
)
def test_choosing_opens_no_file_of_the_private_set(name, tmp_path, monkeypatch, opened, public_set):
    colours = name.startswith("cifar")
    files = COLOURS if colours else [f"{file}.gz" for file in FILES]
    for file in files:
        (tmp_path / file).write_bytes(b"none")
    monkeypatch.setenv("MINIDP_DATA", str(tmp_path))

    def opened_private():
        return [each for each in opened if any(file in each for file in files)]

    opened.clear()
    path = str(tmp_path / "found.json")
    choice = settings.search(name, settings.Config(path, str(public_set(CLASSES)), smoke=True))
    assert any("found.json" in each for each in opened) and not opened_private()
    with pytest.raises(DataError):
        (load_cifar10 if colours else load_mnist)()
    assert opened_private()
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["choice"] == choice
    assert [*choice["form"]] == [*SCRIPTS[name].FORM] and [*choice["rule"]] == [*SCRIPTS[name].RULE]
    assert all(0 <= value <= 1 for one in found["tried"] for value in np.ravel(one["accuracies"]))


def test_odd_classes_are_grouped_and_even_ones_left_to_learn_from(public_set):
    assert sorted(MEMBERS.flat) == list(range(1, CLASSES, 2)) and MEMBERS.shape == (10, 10)
    path = public_set(CLASSES)
    stand_in = Colours(SimpleNamespace(public_data=path))
    x, y, tested, wanted = stand_in.load(0, 10, 200, 100)
    assert x.shape == (200, 32, 32, 3) and tested.shape == (100, 32, 32, 3)
    for images, labels in ((x, y), (tested, wanted)):
        assert all(image[0, 0, 0] in MEMBERS[label] for image, label in zip(images, labels))
    even = even_classes(path)
    assert (even.classes, even.nominal_size) == (100, 200)
    for images, labels in ((even.x_train, even.y_train), (even.x_test, even.y_test)):
        np.testing.assert_array_equal(images[:, 0, 0, 0], 2 * labels)


def test_a_public_set_of_other_classes_is_refused(public_set):
    with pytest.raises(DataError, match="expected a public set of 200 classes, got 100"):
        even_classes(public_set(100))
