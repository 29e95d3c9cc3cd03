"""`minidp.Settings`: one list of fields, which `fit`, the flags and config.json follow."""

import argparse
from dataclasses import fields
from inspect import signature

import numpy as np
import pytest

import minidp
from minidp import PrivateClassifier, PrivateRegressor, Settings
from minidp.commands.flags import add_flags
from minidp.commands.training import TrainCommand
from minidp.errors import ParameterError

FIELDS = {field.name: field for field in fields(Settings)}
# of the others, config.json and result.json hold what became of them: shapes and the plan
RECORDED = set("classes target_bounds scale bounds schema check group_size dtype".split())
ELSEWHERE = set("hidden network dataset_size example_weight device ledger_limit".split())
ELSEWHERE |= {"person", "rows_per_person", "source", "label"}
PLANNED = {"lot_size", "steps", "clip_norm", "learning_rate"}


def test_fit_has_every_field_as_a_parameter():
    shown, settings = signature(minidp.fit).parameters, signature(Settings).parameters
    assert list(shown.values())[-len(FIELDS) :] == list(settings.values())


def test_the_estimators_have_every_parameter_of_fit():
    fit = dict(signature(minidp.fit).parameters)
    for name in ("x", "y", "label", "test", "settings", "example_weight"):
        del fit[name]
    for each, other in ((PrivateClassifier, "target_bounds"), (PrivateRegressor, "classes")):
        found = signature(each).parameters
        assert found.keys() == fit.keys() - {"seed", other} | {"random_state"}
        shared = found.keys() & fit.keys() - {"epsilon"}
        assert all(found[name].default is fit[name].default for name in shared)


def test_every_field_is_documented_with_its_default():
    for name, field in FIELDS.items():
        default = f'"{field.default}"' if isinstance(field.default, str) else field.default
        lines = map(str.strip, Settings.__doc__.splitlines())  # Python 3.13 strips the indent
        (line,) = [line for line in lines if line.startswith(f"{name}: ")]
        assert line.endswith(f", default {default}")


def test_every_field_is_a_flag_or_an_array():
    parser = argparse.ArgumentParser()
    add_flags(parser, TrainCommand)
    flags = {action.dest for action in parser._actions}
    of_python = {"network", "example_weight", "source"}
    assert FIELDS.keys() - flags == of_python


def test_a_resumed_run_notices_every_field():
    marked = {name for name, field in FIELDS.items() if field.metadata.get("recorded")}
    assert marked == RECORDED and FIELDS.keys() == RECORDED | ELSEWHERE | PLANNED


@pytest.mark.parametrize(
    "named, words",
    [
        ({"hiden": 8}, "no parameter 'hiden'; did you mean hidden?"),
        ({"zzz": 1}, "there are x, y, epsilon, delta,"),
        (
            {"settings": Settings(steps=3), "steps": 3},
            "steps given both by settings= and by its name",
        ),
        ({"settings": {"steps": 3}}, "expected settings to be a minidp.Settings, got dict"),
    ],
)
def test_settings_are_refused_before_anything_else(named, words):
    with pytest.raises(ParameterError, match=words.replace("?", r"\?")):
        minidp.fit(None, None, epsilon=1, **named)


def test_a_setting_goes_by_its_name_beside_others_in_settings():
    x, y = np.eye(20)[:, :3] + 0.5, np.arange(20) % 2
    model = minidp.fit(
        x, y, epsilon=1, delta=1e-3, quiet=True, settings=Settings(steps=4), group_size=2
    )
    assert (model.result["steps"], model.result["group"]["size"]) == (4, 2)


def test_whole_floats_are_integers_as_in_the_shell():
    assert repr(Settings(steps=1e4, hidden=8.0).steps) == "10000"
    with pytest.raises(ParameterError, match="steps=1.5 to be an integer"):
        Settings(steps=1.5)
    planned = {"noise_multiplier": 4, "sampling_probability": 0.01, "delta": 1e-5}
    assert minidp.epsilon(steps=1e4, **planned) == minidp.epsilon(steps=10_000, **planned)
