"""Estimators for scikit-learn that call `minidp.fit`. scikit-learn itself is not imported."""

import sys
import warnings
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..backend import Backend
from ..data.arrays import Inputs, columns_of, rows_not_finite
from ..errors import ParameterError, RowsError, ShapeError
from ..exact.arithmetic import ORDINARY
from .fit import fit


@dataclass(kw_only=True, repr=False, eq=False)
class _Private:
    """Base of both estimators; the parameters are those of `minidp.fit`."""

    epsilon: float = 1.0
    delta: float | None = None
    scale: str = "auto"
    bounds: Any = None
    hidden: tuple[int, ...] | int = ()
    network: Any = None
    dataset_size: int | None = None
    group_size: int = 1
    person: Any = None
    rows_per_person: int | None = None
    subgroups: Any = None
    validation: tuple[Any, Any] | None = None
    sampler: str = "poisson"
    lot_size: int | None = None
    steps: int | None = None
    clip_norm: float | None = None
    learning_rate: float | None = None
    folder: Any = None
    ledger: Any = None
    check: bool = True
    arithmetic: str = ORDINARY
    seed: int | None = None
    device: str = "cpu"
    quiet: bool = False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """{name: value} of the constructor's parameters, as they were given."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by their names; returns self. Raises ParameterError for a name that is
        none.
        """
        known = self.get_params()
        if unknown := params.keys() - known:
            raise ParameterError(
                f"{type(self).__name__} has no parameter {min(unknown)!r}; its parameters are "
                f"{', '.join(known)}"
            )
        vars(self).update(params)
        return self

    def __repr__(self):
        given = [
            f"{field.name}={getattr(self, field.name)!r:.80}"
            for field in fields(self)
            if repr(getattr(self, field.name)) != repr(field.default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def fit(self, X: Any, y: Any, example_weight: Any = None) -> Self:
        """Train on X (N, D) and y (N,), and spend epsilon on them; returns self, with the model in
        `fitted_`.

        example_weight: (N,) in [0, 1], each depending on its own row only. It is not called
        sample_weight, because in scikit-learn that may be above 1, and boosting computes it from
        all rows, which would void the guarantee. Raises as `minidp.fit` does, and ParameterError
        for a regression without target_bounds.
        """
        name = type(self).__name__
        if getattr(self, "target_bounds", ()) is None:
            raise ParameterError(
                f"{name} needs target_bounds=(low, high), public; targets are clipped to them"
            )
        if y is None:
            raise ParameterError(f"{name} requires y to be passed, but the target y is None")
        if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: its one column is used",
                _of_sklearn("DataConversionWarning", UserWarning),
                stacklevel=2,
            )
        self.fitted_ = found = fit(X, y, example_weight=example_weight, **self.get_params())
        self.n_features_in_ = found.network.input_shape[0]
        vars(self).pop("feature_names_in_", None)
        if found.classes is not None:
            self.classes_ = found.classes
        if found.about["columns"] is not None:
            self.feature_names_in_ = np.asarray(found.about["columns"])
        return self

    def predict(self, X: Any) -> NDArray:
        """(B,) labels, or numbers within `target_bounds`, for rows X (B, D); costs nothing.

        Raises ShapeError and DtypeError for rows unlike those of `fit`. For rows that are not
        finite it raises RowsError with `check`, and warns without.
        """
        return self._fitted("predict").predict(self._rows(X))

    def score(self, X: Any, y: Any) -> float:
        """Accuracy, or R2 of a regression, on rows X (B, D) and y (B,): an exact figure that
        epsilon does not cover.

        A score on private rows, such as a fold's, must stay with their owner, and so must any
        choice that it decides.
        """
        return self._fitted("score").score(self._rows(X), y)

    def _fitted(self, method):
        if not hasattr(self, "fitted_"):
            raise _of_sklearn("NotFittedError", ParameterError)(
                f"This {type(self).__name__} instance is not fitted yet: call fit before {method}"
            )
        return self.fitted_

    def _rows(self, X):
        """X as the fitted model takes it."""
        inputs = Inputs(X, Backend.numpy())
        names, known = columns_of(X), self.fitted_.about["columns"]
        if names and known and names != known:
            raise ParameterError(
                "The feature names should match those that were passed during fit, in the same "
                f"order: {', '.join(known)}"
            )
        if inputs.shape[1] != self.n_features_in_:
            raise ShapeError(
                f"X has {inputs.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        if self.check and (bad := rows_not_finite(inputs)):
            raise RowsError(
                f"X: {bad} of {inputs.shape[0]} rows hold a number that is not finite (NaN, inf)"
            )
        return inputs

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        regression = hasattr(self, "target_bounds")
        return Tags(
            estimator_type="regressor" if regression else "classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=None if regression else ClassifierTags(),
            regressor_tags=RegressorTags() if regression else None,
            non_deterministic=self.seed is None,  # two fits then draw different noise
        )


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateClassifier(_Private):
    """Classifier for scikit-learn (1.6 or later) that is differentially private for each training
    row.

    The parameters are those of `minidp.fit`; `seed` is scikit-learn's random_state, and `folder` is
    for a single fit. Epsilon does not cover steps of a Pipeline that learn from the data, such as
    StandardScaler: use `scale` and `bounds` instead. No step may repeat rows, as bagging with
    bootstrap does, because epsilon is for one row of the arrays that `fit` gets.

    fitted_   the `minidp.fitting.fitted.Fitted`: statement, epsilon, report(folder)
    classes_  (K,) labels, in the order of predict_proba; feature_names_in_ (D,) where `fit` had a
              data frame

    Every fit spends epsilon: cross-validation once per fold, GridSearchCV once per fold and
    candidate and once more. If `ledger` is the path of a file, all clones and processes charge it
    before their noise, and print the sum. Scores on the folds are not private, and no epsilon
    covers a choice that they decide.

    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0); x = rng.normal(size=(3000, 5)); y = x[:, 0] + x[:, 1] > 0
    >>> model = PrivateClassifier(epsilon=1.0, delta=1e-5, seed=1, quiet=True)
    >>> cross_val_score(model, x, y, cv=3).mean() > 0.8  # not private, and three times epsilon 1
    np.True_
    """

    classes: Any = None

    def predict_proba(self, X: Any) -> NDArray:
        """(B, K) probabilities for rows X (B, D), in the order of `classes_`. Raises as `predict`
        does.
        """
        return self._fitted("predict_proba").predict_proba(self._rows(X))


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateRegressor(_Private):
    """Regression for scikit-learn (1.6 or later) that is differentially private for each training
    row.

    target_bounds, (low, high), must be given: they are public, and targets are clipped to them.
    Everything else is as in `PrivateClassifier`: parameters, attributes (but classes_) and what
    cross-validation costs.

    >>> rng = np.random.default_rng(0); x = rng.uniform(size=(4000, 2)); y = 3 * x[:, 0] - x[:, 1]
    >>> model = PrivateRegressor(target_bounds=(-1, 3), bounds=(0, 1), epsilon=2.0, seed=1,
    ...                          quiet=True).fit(x, y)
    >>> model.predict(x[:3]).shape, model.score(x, y) > 0.8, model.fitted_.epsilon.upper <= 2.0
    ((3,), True, True)
    """

    target_bounds: tuple[float, float] | None = None


def _of_sklearn(name, otherwise):
    """A class of sklearn.exceptions if that module is loaded, else `otherwise`."""
    return getattr(sys.modules.get("sklearn.exceptions"), name, otherwise)
