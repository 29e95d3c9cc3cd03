"""`minidp.fit` with the methods of scikit-learn, which is not imported."""
from __future__ import annotations

import sys
import warnings
from copy import deepcopy
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .backend import Backend
from .data.own import Inputs, rows_not_finite
from .errors import ParameterError, RowsError, ShapeError
from .fitted import Fitted
from .fitting import fit


class _Private:
    """What both estimators share; the parameters are those of `minidp.fit`."""

    check: bool
    network: Any
    seed: int | None
    fitted_: Fitted
    n_features_in_: int
    feature_names_in_: NDArray

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: each.default for name, each in signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """{name: value} of the constructor's parameters, as they were given."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by their names; returns self. Raises ParameterError for a name that is none."""
        names = list(self._defaults())
        if unknown := [name for name in params if name not in names]:
            raise ParameterError(f"{type(self).__name__} has no parameter {unknown[0]!r}; its parameters are "
                                 f"{', '.join(names)}")
        vars(self).update(params)
        return self

    def __repr__(self):
        given = (f"{name}={getattr(self, name)!r:.80}" for name, value in self._defaults().items()
                 if repr(getattr(self, name)) != repr(value))
        return f"{type(self).__name__}({', '.join(given)})"

    def fit(self, X: Any, y: Any, example_weight: Any = None) -> Self:
        """Train on X (N, D) and y (N,), and spend epsilon on them; returns self, with the model in `fitted_`.

        example_weight: (N,) in [0, 1], each depending on its own row only. It is not called sample_weight, because in
        scikit-learn that may be above 1, and boosting computes it from all rows, which would void the guarantee.
        Raises as `minidp.fit` does.
        """
        name = type(self).__name__
        if y is None:
            raise ParameterError(f"{name} requires y to be passed, but the target y is None")
        if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
            warnings.warn("A column-vector y was passed when a 1d array was expected: its one column is used",
                          _of_sklearn("DataConversionWarning", UserWarning), stacklevel=2)
        params = self.get_params() | {"network": deepcopy(self.network)}  # a parameter stays as it was given
        self.fitted_ = fit(X, y, example_weight=example_weight, **params)
        self.n_features_in_ = self.fitted_.network.input_shape[0]
        vars(self).pop("feature_names_in_", None)
        if (names := _column_names(X)) is not None:
            self.feature_names_in_ = names
        return self

    def predict(self, X: Any) -> NDArray:
        """(B,) labels, or numbers within `target_bounds`, for rows X (B, D); costs nothing.

        Raises ShapeError and DtypeError for rows unlike those of `fit`; RowsError, with `check`, for rows that are not
        finite.
        """
        return self._fitted("predict").predict(self._rows(X))

    def score(self, X: Any, y: Any) -> float:
        """Accuracy, or R2 of a regression, on rows X (B, D) and y (B,): not private, epsilon does not cover it.

        It is an exact figure of these rows. A score on private rows, such as a fold of a cross-validation, stays with
        their owner, and so does whatever is chosen by it.
        """
        return self._fitted("score").score(self._rows(X), y)

    def _fitted(self, method):
        if not hasattr(self, "fitted_"):
            raise _of_sklearn("NotFittedError", ParameterError)(
                f"This {type(self).__name__} instance is not fitted yet: call fit before {method}")
        return self.fitted_

    def _rows(self, X):
        """X as the fitted model takes it."""
        name, names, known = type(self).__name__, _column_names(X), getattr(self, "feature_names_in_", None)
        inputs = Inputs(X, Backend.numpy())
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ParameterError("The feature names should match those that were passed during fit, in the same order: "
                                 f"{', '.join(known)}")
        if inputs.shape[1] != self.n_features_in_:
            raise ShapeError(f"X has {inputs.shape[1]} features, but {name} is expecting {self.n_features_in_} features "
                             "as input")
        if self.check and (bad := rows_not_finite(inputs)):
            raise RowsError(f"X: {bad} of {inputs.shape[0]} rows hold a number that is not finite (NaN, inf)")
        return inputs

    def _tags(self, **own):
        """What scikit-learn asks of an estimator; only scikit-learn calls it."""
        from sklearn.utils import Tags, TargetTags

        # without a seed two fits draw different noise
        return Tags(target_tags=TargetTags(required=True), non_deterministic=self.seed is None, **own)


class PrivateClassifier(_Private):
    """Classifier that is differentially private for each training row, with scikit-learn's methods (1.6 or later).

    The parameters are those of `minidp.fit`; `seed` is what scikit-learn calls random_state, and `folder` is for a
    single fit. The steps of a Pipeline before this one must not learn from the data, as StandardScaler does: no epsilon
    covers them. Scale by `scale` and `bounds` instead. Nor may anything repeat rows, as bagging with bootstrap does:
    epsilon is for one row of what `fit` is given.

    fitted_            the `minidp.fitted.Fitted`: statement, epsilon, report(folder)
    classes_           (K,) labels, in the order of predict_proba
    n_features_in_     D; feature_names_in_ (D,) where `fit` had a data frame with text as names

    Every fit spends epsilon: cross-validation once per fold, GridSearchCV once per fold and candidate and once more to
    refit. `ledger`, the path of a file, is charged by all clones and worker processes before their noise, and the sum
    is printed. Scores on the folds are not private, and no epsilon covers what is chosen by them.

    >>> import tempfile; from sklearn.model_selection import cross_val_score
    >>> from minidp.privacy import Ledger; from minidp.privacy.catalogue import make
    >>> rng = np.random.default_rng(0); x = rng.normal(size=(3000, 5)); y = x[:, 0] + x[:, 1] > 0
    >>> path = f"{tempfile.mkdtemp()}/ledger.json"
    >>> model = PrivateClassifier(epsilon=1.0, delta=1e-5, ledger=path, seed=1, quiet=True)
    >>> scores = cross_val_score(model, x, y, cv=3)                  # not private
    >>> 1.5 < make("loss_distribution").epsilon(Ledger.load(path), 1e-5).upper < 3.0      # of three fits together
    True
    """

    classes_: Any

    def __init__(self, *, epsilon: float = 1.0, delta: float | None = None, classes: Any = None, scale: str = "auto",
                 bounds: Any = None, hidden: tuple[int, ...] | int = (), network: Any = None,
                 dataset_size: int | None = None, group_size: int = 1, validation: tuple[Any, Any] | None = None,
                 lot_size: int | None = None, steps: int | None = None, clip_norm: float | None = None,
                 learning_rate: float | None = None, folder: Any = None, ledger: Any = None, check: bool = True,
                 seed: int | None = None, device: str = "cpu", quiet: bool = False):
        vars(self).update({name: value for name, value in locals().items() if name != "self"})

    def fit(self, X: Any, y: Any, example_weight: Any = None) -> Self:
        super().fit(X, y, example_weight)
        self.classes_ = self.fitted_.classes
        return self

    def predict_proba(self, X: Any) -> NDArray:
        """(B, K) probabilities for rows X (B, D), in the order of `classes_`. Raises as `predict` does."""
        return self._fitted("predict_proba").predict_proba(self._rows(X))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        return self._tags(estimator_type="classifier", classifier_tags=ClassifierTags())


class PrivateRegressor(_Private):
    """Regression that is differentially private for each training row, with scikit-learn's methods (1.6 or later).

    target_bounds, (low, high), must be given: they are public, and targets are clipped to them. Everything else is as
    in `PrivateClassifier`: parameters, attributes (but classes_) and what cross-validation costs.

    >>> rng = np.random.default_rng(0); x = rng.uniform(size=(4000, 2)); y = 3 * x[:, 0] - x[:, 1]
    >>> model = PrivateRegressor(target_bounds=(-1, 3), bounds=(0, 1), epsilon=2.0, seed=1, quiet=True).fit(x, y)
    >>> model.predict(x[:3]).shape, model.score(x, y) > 0.8, model.fitted_.epsilon.upper <= 2.0
    ((3,), True, True)
    """

    target_bounds: tuple[float, float] | None

    def __init__(self, *, target_bounds: tuple[float, float] | None = None, epsilon: float = 1.0,
                 delta: float | None = None, scale: str = "auto", bounds: Any = None,
                 hidden: tuple[int, ...] | int = (), network: Any = None, dataset_size: int | None = None,
                 group_size: int = 1,
                 validation: tuple[Any, Any] | None = None, lot_size: int | None = None, steps: int | None = None,
                 clip_norm: float | None = None, learning_rate: float | None = None, folder: Any = None,
                 ledger: Any = None, check: bool = True, seed: int | None = None, device: str = "cpu",
                 quiet: bool = False):
        vars(self).update({name: value for name, value in locals().items() if name != "self"})

    def fit(self, X: Any, y: Any, example_weight: Any = None) -> Self:
        if self.target_bounds is None:
            raise ParameterError("PrivateRegressor needs target_bounds=(low, high), which are public; targets are "
                                 "clipped to them")
        return super().fit(X, y, example_weight)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags

        return self._tags(estimator_type="regressor", regressor_tags=RegressorTags())


def _of_sklearn(name, otherwise):
    """A class of sklearn.exceptions, where somebody has imported it."""
    return getattr(sys.modules.get("sklearn.exceptions"), name, otherwise)


def _column_names(X):
    """(D,) names of a data frame's columns, if all are text."""
    names = list(getattr(X, "columns", ()))
    return np.array(names, dtype=object) if names and all(isinstance(name, str) for name in names) else None
