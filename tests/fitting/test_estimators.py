"""PrivateClassifier and PrivateRegressor in scikit-learn: its own checks, its tools, one ledger for
all clones.
"""

import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import AdaBoostClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

import minidp
from minidp import PrivateClassifier, PrivateRegressor
from minidp.errors import ParameterError
from minidp.privacy import Ledger
from tests.support import fitting
from tests.support.scripts import ROOT

problem = partial(fitting.problem, rows=600, columns=4)
WITHOUT_PANDAS = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_regressor_data_not_an_array",
}


def classifier(**named):
    return PrivateClassifier(
        **{"epsilon": 4.0, "delta": 1e-4, "steps": 10, "random_state": 1, "quiet": True} | named
    )


@pytest.mark.parametrize(
    "make", [PrivateClassifier, partial(PrivateRegressor, target_bounds=(-3, 3))]
)
def test_scikit_learns_checks_pass(make):
    found = check_estimator(make(random_state=0, quiet=True), on_skip=None)
    skipped = {row["check_name"] for row in found if row["status"] == "skipped"}
    assert len(found) > 45 and skipped <= WITHOUT_PANDAS
    assert make().__sklearn_tags__().non_deterministic  # two fits draw different noise


def test_steps_of_a_pipeline_that_learn_from_rows_are_named(capsys):
    x, y = problem()
    steps = MinMaxScaler(), FunctionTransformer(), classifier(quiet=False)
    make_pipeline(*steps).fit(x, y)
    said = capsys.readouterr()
    assert "steps of this Pipeline, which learn from rows: MinMaxScaler;" in said.out + said.err
    make_pipeline(*steps[1:]).fit(x, y)
    said = capsys.readouterr()
    assert "Pipeline" not in said.out + said.err


def test_logarithms_importances_and_a_generator_as_random_state():
    x, y = problem(rows=3000)
    given = {"steps": None, "bounds": (-5, 5), "random_state": np.random.RandomState(1)}
    model = classifier(**given).fit(x, y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(x)), model.predict_proba(x))
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_.shape == (4,)
    chosen = SelectFromModel(classifier(**given)).fit(x, y).get_support()
    assert chosen.any() and not chosen.all()


def test_without_scikit_learn_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    for name in ("minidp.sklearn", "minidp.fitting.estimators"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=r"need scikit-learn 1.6 or later: pip install 'minidp\["):
        minidp.PrivateClassifier


def test_a_pipeline_passes_weights_on_and_boosting_is_refused():
    x, y = problem()
    model = make_pipeline(FunctionTransformer(lambda x: x / 4), classifier())
    weight = np.where(y == "cow", 0.0, 1.0)
    weighted = model.fit(x, y, privateclassifier__example_weight=weight)[-1]
    assert "multiplied by its weight" in weighted.fitted_.statement
    assert (weighted.predict(x) == "cow").mean() < 0.05 and "steps=10" in repr(weighted)
    # boosting would weight a row by what the others are
    with pytest.raises(ValueError, match="sample_weight"):
        AdaBoostClassifier(classifier()).fit(x, y)


def test_columns_of_text_go_through_a_pipeline_and_a_search_says_what_it_cost(capsys):
    x, y = problem()
    table = np.column_stack([x.astype(object), np.where(x[:, 0] > 0, "left", "right")])
    encode = ColumnTransformer(
        [("text", OneHotEncoder(sparse_output=False), [4])], remainder=MinMaxScaler((-1, 1))
    )
    model = make_pipeline(encode, classifier(quiet=False, epsilon=1.0, scale="none"))
    search = GridSearchCV(model, {"privateclassifier__steps": [5, 50]}, cv=2)
    found = search.fit(table, y).best_estimator_[-1]
    said = [line for line in capsys.readouterr().out.splitlines() if "fits in this" in line]
    assert "of other processes, as of a search with n_jobs, are not" in said[-1] and len(said) == 5
    assert found.score(encode.fit_transform(table), y) > 0.5
    assert clone(found).get_params() == found.get_params() and not hasattr(clone(found), "fitted_")
    assert (found.epsilon_, found.delta_) == (found.fitted_.epsilon.upper, 1e-4)
    assert found.ledger_.sha256() == found.fitted_.ledger.sha256()


def test_persons_go_through_a_pipeline_a_table_and_cross_validation():
    (x, y), person = problem(), np.arange(600) // 3
    model = classifier(rows_per_person=3, steps=60)
    pipeline = make_pipeline(FunctionTransformer(lambda x: x / 4), model)
    found = pipeline.fit(x, y, privateclassifier__person=person)[-1].fitted_.result
    assert found["unit"] == "person" and found["settings"]["dataset_size"] == 200
    scores = cross_val_score(
        model, x, y, groups=person, cv=GroupKFold(3), params={"person": person}, error_score="raise"
    )
    assert scores.min() > 0.5
    table = {**dict(zip("abcd", x.T)), "who": person}
    frame = pytest.importorskip("pandas").DataFrame(table)
    by_order = classifier(steps=2).fit(frame[["a", "b", "c", "d"]], y)
    assert by_order.feature_names_in_.tolist() == list("abcd")
    by_name = model.set_params(person="who").fit(frame, y)
    assert by_name.feature_names_in_.tolist() == list("abcd")
    expected = by_name.fitted_.predict(x)
    for rows in (frame, frame[["d", "c", "b", "a"]]):
        assert (by_name.predict(rows) == expected).all()


def test_an_estimator_takes_a_table_with_its_schema():
    x, y = problem()
    table = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}
    schema = {name: {"type": "number", "low": -4, "high": 4} for name in table}
    model = classifier(schema=schema, steps=100).fit(table, y)
    assert isinstance(model, BaseEstimator) and model.feature_names_in_.tolist() == list("abc")
    assert model.n_features_in_ == 3 and model.score(table, y) > 0.6
    label = {"y": {"type": "category", "values": [0, 1], "role": "label"}}
    with pytest.raises(ParameterError, match="needs a number as the label, and y is none"):
        PrivateRegressor(schema=schema | label).fit(table, x[:, 3])
    schema["y"] = schema["a"] | {"role": "label"}
    with pytest.raises(ParameterError, match="needs a category as the label, and y is none"):
        classifier(schema=schema).fit(table, y)
    model = PrivateRegressor(schema=schema, steps=2, quiet=True).fit(table, x[:, 3])
    low, high = model.fitted_.target_bounds
    assert -4 <= low < -1 and 1 < high <= 4


def test_no_charge_is_lost_between_processes_whatever_name_they_use(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "ledger.json")
    script = (
        "import sys; from minidp.privacy import Gaussian, Ledger\n"
        "from minidp.run.shared_ledger import charge_shared\n"
        "ledger = Ledger(); ledger.append(Gaussian(float(sys.argv[2]))); "
        "print(flush=True); input()\nfor _ in range(50): charge_shared(sys.argv[1], ledger)"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / name), noise],
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=-1,
            stdout=-1,
        )
        for name, noise in [("ledger.json", "7"), ("link.json", "8")]
    ]
    assert [process.stdout.readline() for process in running] == ["\n", "\n"]
    for process in running:  # both at once
        print(file=process.stdin, flush=True)
    assert [process.communicate(timeout=60)[0] for process in running] == ["", ""]
    assert Ledger.load(tmp_path / "ledger.json").count_of("step") == 100


def test_a_grid_search_in_processes_charges_every_candidate_and_says_what_is_not_covered(tmp_path):
    (x, y), path = problem(), tmp_path / "ledger.json"
    model = classifier(ledger=path, random_state=None)
    search = GridSearchCV(model, {"clip_norm": [0.1, 1.0]}, cv=2, n_jobs=2)
    found = search.fit(x, y).best_estimator_.fitted_
    get_reusable_executor().shutdown(wait=True)
    assert set(search.best_params_) == {"clip_norm"}
    assert Ledger.load(path).count_of("step") == 10 * (2 * 2 + 1)
    assert "choosing among them by scores on private rows" in found.statement


def test_rows_are_checked_unless_that_is_off():
    x, y = problem()
    x[5, 1] = np.nan
    model = classifier().fit(x[6:], y[6:])
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(x)
    unchecked = classifier(check=False).fit(x, y)
    with pytest.warns(UserWarning, match="1 of 600 rows hold a number that is not finite"):
        assert unchecked.predict(x).shape == (600,)


def test_an_estimator_says_which_labels_it_needs():
    x, y = problem()
    with pytest.raises(ParameterError, match="too few for a private look at the target"):
        PrivateRegressor(epsilon=0.1).fit(x[:50], x[:50, 0])
    model = classifier(steps=2).fit(x, np.unique(y, return_inverse=True)[1] * 1.0)
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ParameterError, match="continuous"):
        classifier().fit(x, x[:, 0])


def test_a_pickled_model_holds_no_key_and_needs_no_folder(tmp_path):
    x, y = problem()
    model = classifier(random_state=None).fit(x, y)
    folder, expected, held = model.fitted_.folder, model.predict_proba(x), pickle.dumps(model)
    key = (folder / "folder.key").read_bytes().strip()
    assert len(key) == 64 and key not in held and bytes.fromhex(key.decode()) not in held
    del model
    back = pickle.loads(held)
    assert not folder.exists() and (back.predict_proba(x) == expected).all()
    assert back.epsilon_ <= 4.0 and back.fitted_.ledger.count_of("step") == 10
    with pytest.raises(ParameterError, match="files are gone"):
        back.fitted_.report(tmp_path / "report")
