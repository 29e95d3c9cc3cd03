"""The record for the registry of deployments: its schema accepts it, and an edit is noticed."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import minidp
from minidp import nn
from minidp.__main__ import main
from minidp.errors import DataError, ParameterError
from minidp.run import registry
from minidp.run.verify import verify
from minidp.util.files import read_json
from tests.support.sealed import edit, failed

yaml = pytest.importorskip("yaml")
OWNER = {
    **{key: f"{key}: 2 | 'a' \n #b" for key in registry.OWNER},
    **{key: ["An authority", "Ü"] for key in registry.LISTS},
    "sector": "Healthcare",
}
X = np.random.default_rng(0).normal(size=(60, 4)).astype("float32")
Y = X[:, 0] > 0
KINDS = {
    "fit": {},
    "owner": {"about": OWNER, "validation": (X + 1, Y)},
    "attack": {"attack": {"fpr": 0.01, "tpr": 0.05}, "epsilon": None},
    "persons": {"person": np.arange(60) // 2, "rows_per_person": 2},
    "regression": {"target_bounds": (0, 1), "scale": "private"},
    "not private": {"epsilon": np.inf},
}


@pytest.fixture(scope="session")
def results(finished):
    """{kind of run: the dictionary of result.json}, the main job among them."""
    made = {"main": read_json(finished / "result.json")}
    common = {"epsilon": 2.0, "steps": 2, "seed": 1, "quiet": True}
    for kind, more in KINDS.items():
        y = Y.astype(float) if "target_bounds" in more else Y
        made[kind] = minidp.fit(X, y, **{**common, **more}).result
    rng = np.random.default_rng(1)
    layers = [nn.Conv2D(1, 2, 3, rng=rng), nn.ReLU(), nn.Flatten(), nn.Dense(32, 2, rng=rng)]
    network = nn.Sequential(layers, (4, 4, 1))
    made["cnn"] = minidp.fit(
        X.repeat(4, 1).reshape(60, 4, 4, 1), Y, network=network, **common
    ).result
    return made


@pytest.fixture(params=["main", "cnn", *KINDS])
def result(request, results):
    return results[request.param]


@pytest.fixture
def written(result, tmp_path):
    path = tmp_path / "record.yaml"
    path.write_text("\n".join(registry.as_yaml(registry.record(result))), encoding="utf-8")
    return path


@pytest.mark.registry
def test_the_registrys_schema_accepts_the_record_of_each_kind_of_run(written):
    schema = Path(os.environ.get("MINIDP_DATA", "."), "registry", "deployments-schema.yaml")
    if not schema.is_file():
        pytest.skip("set MINIDP_DATA to a folder that holds registry/deployments-schema.yaml")
    validate = pytest.importorskip("jsonschema").validate
    validate(yaml.safe_load(written.read_text("utf-8")), yaml.safe_load(schema.read_text("utf-8")))


def test_the_text_reads_back_as_the_record_and_as_what_the_run_says(written, result):
    assert yaml.safe_load(written.read_text("utf-8")) == registry.record(result)
    assert list(registry.differences(result, written)) == []


def test_an_edit_of_any_number_is_noticed(written, result):
    text = written.read_text("utf-8")
    lines = text[: text.index("deployment:")].count("\n")
    for found in re.finditer(r"\d+", text):
        edited = f"{text[: found.start()]}{int(found[0]) + 1}{text[found.end() :]}"
        written.write_text(edited, encoding="utf-8")
        try:
            assert list(registry.differences(result, written)), found
        except DataError:
            assert text[: found.start()].count("\n") < lines


def test_what_nobody_stated_says_so_and_sets_the_tier(results):
    bare, told = (registry.record(results[kind]) for kind in ("fit", "owner"))
    assert (bare["tier"], told["tier"], registry.missing(told)) == (1, 3, [])
    assert bare["deployment"]["basic"]["data_curators"] == [registry.NOT_STATED]
    assert "actors" not in bare["deployment"]["deployment_model"]


def test_what_is_not_private_has_no_epsilon(results, tmp_path):
    found = registry.record(results["not private"])
    assert "privacy_parameters" not in found["deployment"]["privacy_loss"]
    found["deployment"]["privacy_loss"]["privacy_parameters"] = {"epsilon": 1.0}
    (tmp_path / "a").write_text("\n".join(registry.as_yaml(found)))
    assert list(registry.differences(results["not private"], tmp_path / "a"))


def test_the_owner_may_add_what_nobody_stated_and_sees_who_said_what(results, tmp_path):
    path = tmp_path / "a"
    found = registry.record(results["fit"])
    found["deployment"]["basic"]["intended_use"] = "Triage"
    found["status"] = "Pending"
    path.write_text("\n".join(registry.as_yaml(found)))
    assert list(registry.differences(results["fit"], path)) == []
    unit = registry.record(results["owner"])["deployment"]["privacy_loss"]["privacy_unit"]
    assert unit.startswith("One row of the training data. The owner says: unit: 2")


def test_the_owner_is_asked_once(tmp_path):
    path = tmp_path / "about.toml"
    with pytest.raises(DataError, match="no such file"):
        registry.as_about(tmp_path / "about")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match="answer the questions"):
        registry.as_about(path)
    assert registry.as_about(path) == {}
    path.write_text(path.read_text().replace('unit = ""', 'unit = "a visit"'))
    assert registry.as_about(path) == {"unit": "a visit"}


@pytest.mark.parametrize(
    "given", [{"unti": "a"}, {"authors": "me"}, {"authors": [1]}, {"sector": "Sea"}]
)
def test_words_that_answer_no_question_are_refused(given):
    with pytest.raises(ParameterError, match="about: expected"):
        registry.as_about(given)


def test_a_run_for_a_risk_is_verified(tmp_path):
    asked = {"attack": {"fpr": 0.01, "tpr": 0.05}, "steps": 2, "folder": tmp_path / "run"}
    minidp.fit(X, Y, **asked, classes=[False, True], quiet=True)
    assert not failed(tmp_path / "run")
    answer = verify(tmp_path / "run").findings[-1].answer
    assert "asked for: the true positive rate is at most 0.05 at" in answer and "inf" not in answer
    edit(tmp_path / "run", "result.json", {"settings attack tpr": 0.04})
    assert "more than was asked for" in failed(tmp_path / "run")


def test_the_command_writes_and_compares_the_record(run, capsys):
    path = str(run / "record.yaml")
    assert main(["verify", str(run), "--registry", path]) == 0
    assert "not stated, see --about" in capsys.readouterr().out
    assert main(["verify", str(run), "--registry", path, "--check"]) == 0
    Path(path).write_text(Path(path).read_text().replace("tier: 1", "tier: 3"))
    assert main(["verify", str(run), "--registry", path, "--check"]) == 1
    assert "tier is 3 and should be 1" in capsys.readouterr().out
    assert main(["verify", str(run), "--registry", path]) == 2
    assert main(["verify", str(run), "--check"]) == 2


@pytest.mark.parametrize(
    "text, words",
    [(None, "no such file"), ("", "empty"), ("[1]", "not a record"), ("a: [", "not a record")],
)
def test_a_file_that_is_no_record_is_refused(results, tmp_path, text, words):
    if text is not None:
        (tmp_path / "a").write_text(text)
    with pytest.raises(DataError, match=words):
        list(registry.differences(results["fit"], tmp_path / "a"))


def test_a_record_says_first_that_a_run_is_not_for_release(result, results):
    mechanism = registry.record(result)["deployment"]["implementation"]["mechanisms"]
    expected = "Not for release: " if result["reproducible"] else "Gaussian noise"
    if result is results["not private"]:
        expected = "Not private: "
    assert mechanism.startswith(expected)
