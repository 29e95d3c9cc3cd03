"""scikit-learn's own classes of estimators that call `minidp.fit`. This module needs scikit-learn
1.6 or later; importing minidp does not load it.
"""

import math
import sys
import warnings
from dataclasses import dataclass, fields, make_dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning
    from sklearn.pipeline import Pipeline
    from sklearn.utils import get_tags
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "minidp.PrivateClassifier and PrivateRegressor need scikit-learn 1.6 or later: "
        "pip install 'minidp[sklearn]'"
    ) from error

from ..data.cells import places_among
from ..data.schema import Schema
from ..errors import ParameterError
from ..util.atomic import StrPath
from ..util.notices import tell
from ..util.text import upper_text
from ..util.words import Named, names_checked
from .fit import fit
from .settings import Settings

_spent: list[tuple[float, float]] = []  # (epsilon, delta) of the fits of this process


OTHERS = ("label", "classes", "target_bounds", "example_weight")  # not of both estimators
_Fields = make_dataclass(
    "_Fields",
    [(each.name, each.type, each.default) for each in fields(Settings) if each.name not in OTHERS],
    kw_only=True,
)


@dataclass(kw_only=True, repr=False, eq=False)
class _Private(Named, BaseEstimator, _Fields):  # type: ignore[misc, valid-type]
    """Base of both estimators; the parameters are those of `minidp.fit`."""

    epsilon: float = 1.0
    delta: float | None = None
    folder: StrPath | None = None
    ledger: StrPath | None = None
    random_state: Any = None
    quiet: bool = False

    @names_checked
    def fit(self, X: Any, y: Any, example_weight: Any = None, person: Any = None) -> Self:
        """Train on X (N, D) and y (N,), and spend epsilon on them; returns self, with the model in
        `fitted_`.

        example_weight: (N,) in [0, 1], each depending on its own row only. It is not called
        sample_weight, because in scikit-learn that may be above 1, and boosting computes it from
        all rows, which would void the guarantee. person: (N,) name of each row's person, instead of
        the parameter; cross-validation then splits it with the rows. Raises as `minidp.fit` does.
        """
        name = type(self).__name__
        label = None if self.schema is None else Schema.of(self.schema).label
        if label is not None and bool(label.values) != (self._label == "category"):
            raise ParameterError(
                f"{name} needs a {self._label} as the label, and {label.name} is none"
            )
        if y is None:
            raise ParameterError(f"{name} requires y to be passed, but the target y is None")
        if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: its one column is used",
                DataConversionWarning,
                stacklevel=2,
            )
        params = self.get_params(deep=False)
        params["seed"] = _seed(params.pop("random_state"))
        if not self.quiet and (steps := _steps_around()):
            tell(
                f"epsilon does not cover the other steps of this Pipeline, which learn from rows: "
                f"{', '.join(steps)}; scale= and bounds=, or schema=, are in it"
            )
        if label is None and params.get("target_bounds", 0) is None:
            params["target_bounds"] = (-math.inf, math.inf)
        if person is not None:
            params["person"] = person
        self.fitted_ = found = fit(X, self._targets(y), example_weight=example_weight, **params)
        self.epsilon_, self.delta_ = found.epsilon.upper, found.delta
        self.statement_, self.ledger_ = found.statement, found.ledger
        if not self._by_name:
            validate_data(self, X, skip_check_array=True)  # notes names and number of the features
        else:
            self.feature_names_in_ = np.asarray(found.about["columns"], dtype=object)
            self.n_features_in_ = len(self.feature_names_in_)
        if found.classes is not None:
            self.classes_ = _written_as(found.classes, np.asarray(y))
        self._count()
        return self

    def _count(self):
        """Print the epsilon of all fits of this process together, such as those of a search."""
        _spent.append((self.epsilon_, self.delta_))
        if not self.quiet and self.ledger is None:
            epsilon, delta = map(math.fsum, zip(*_spent))  # three times 1e-05 is 3e-05
            tell(
                f"fits in this process: {len(_spent)}, epsilon {upper_text(epsilon)} at delta "
                f"{upper_text(delta)} together if all are of the same rows, by adding up. Fits of "
                "other processes, as of a search with n_jobs, are not in this sum: ledger=FILE "
                "counts them, and has a smaller bound"
            )

    def predict(self, X: Any) -> NDArray:
        """(B,) labels, or numbers within `target_bounds`, for rows X (B, D); costs nothing.

        Raises ValueError for rows unlike those of `fit`, and for rows that are not finite; with
        `check=False` the latter only give a warning.
        """
        model, x = self._fitted(X)
        return model.predict(x)

    @property
    def coef_(self) -> NDArray:
        """`coef_` of the model in `fitted_`, whose terms() says more."""
        return self._of_model("coef_")

    @property
    def feature_importances_(self) -> NDArray:
        """As that of the model in `fitted_`."""
        return self._of_model("feature_importances_")

    @property
    def intercept_(self) -> Any:
        """As that of the model in `fitted_`."""
        return self._of_model("intercept_")

    def _of_model(self, name):
        if not hasattr(self, "fitted_"):
            raise AttributeError(f"{type(self).__name__} has {name} after fit")
        return getattr(self.fitted_, name)

    @property
    def _by_name(self):
        """True if columns of a table are found by their names, so that a table may have more
        columns.
        """
        return self.schema is not None or isinstance(self.person, str)

    def _fitted(self, X):
        """(the fitted model, X in the form that it takes)."""
        check_is_fitted(self, "fitted_")
        if self._by_name:
            return self.fitted_, X
        x = validate_data(self, X, reset=False, ensure_all_finite=self.check, accept_sparse=False)
        return self.fitted_, x

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None  # two fits then draw different noise
        return tags


def _seed(random_state):
    """The seed that an integer, None or a generator of NumPy stands for."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return random_state


def _steps_around():
    """The classes of the steps that learn from rows, of a Pipeline that calls `fit`."""
    frame = sys._getframe(2)
    while frame is not None:
        around = frame.f_locals.get("self")
        if isinstance(around, Pipeline):
            others = [step for _, step in around.steps[:-1] if hasattr(step, "fit")]
            return [type(step).__name__ for step in others if get_tags(step).requires_fit]
        frame = frame.f_back
    return []


def _written_as(classes, y):
    """The classes as y writes them, such as 0 for "0", if y writes each class in only one way."""
    if y.ndim != 1 or y.dtype.kind in (classes.dtype.kind, "O"):
        return classes
    values = np.unique(y)
    found = places_among(classes.tolist(), values.tolist())
    if sorted(found.tolist()) != list(range(len(classes))):
        return classes
    return values[np.argsort(found)]


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateClassifier(ClassifierMixin, _Private):
    """Classifier for scikit-learn (1.6 or later) that is differentially private for each training
    row, or for each person with all of their rows (`person` and `rows_per_person`).

    The parameters are those of `minidp.fit`; `random_state` is its seed (a seeded model must not be
    released), and `folder` is for a single fit. Epsilon does not cover steps of a Pipeline that
    learn from the data, such as StandardScaler or OneHotEncoder: use `scale` and `bounds`, or
    `schema`, instead. No step may repeat rows, as bagging with bootstrap does, because epsilon is
    for one row of the arrays that `fit` gets; or, with `person`, for all rows of one name there.

    epsilon_, delta_   the cost of the fit; statement_ and ledger_ have the details
    fitted_            the `minidp.fitting.model.Fitted`, which has report(folder)
    classes_           (K,) labels, in the order of predict_proba
    feature_names_in_  (D,) names of the columns, if `fit` had a data frame

    Every fit spends epsilon: cross-validation once per fold, GridSearchCV once per fold and
    candidate and once more. If `ledger` is the path of a file, all clones and processes charge it
    before they draw noise, and print the sum. Scores on the folds are not private, and no epsilon
    covers a choice by them.

    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0); x = rng.normal(size=(3000, 5)); y = x[:, 0] + x[:, 1] > 0
    >>> model = PrivateClassifier(epsilon=1.0, delta=1e-5, random_state=1, quiet=True)
    >>> cross_val_score(model, x, y, cv=3).mean() > 0.8  # not private, and three times epsilon 1
    np.True_
    """

    classes: Any = None
    _label = "category"

    def _targets(self, y):
        """Labels, with whole floating-point numbers as integers, because this is a classifier."""
        found = np.asarray(y)
        if self.classes is not None or found.dtype.kind != "f" or not np.isfinite(found).all():
            return y
        return found.astype(np.int64) if (found == np.floor(found)).all() else y

    def predict(self, X: Any) -> NDArray:
        """(B,) labels as they were given to `fit`, for rows X (B, D). Raises as the base class
        does.
        """
        found, names = super().predict(X), np.asarray(self.fitted_.classes)
        if names.dtype == self.classes_.dtype:
            return found
        places = places_among(names.tolist(), found.tolist())
        if (places < len(names)).all():
            return self.classes_[places]
        labels = np.array([*self.classes_.tolist(), None], dtype=object)
        return labels[places]

    def predict_proba(self, X: Any) -> NDArray:
        """(B, K) probabilities for rows X (B, D), in the order of `classes_`. Raises as `predict`
        does.
        """
        model, x = self._fitted(X)
        return model.predict_proba(x)

    def predict_log_proba(self, X: Any) -> NDArray:
        """Their logarithms."""
        return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> NDArray:
        """(B,) logits of the second class minus those of the first, or (B, K) logits of K > 2
        classes. Raises as `predict` does.
        """
        model, x = self._fitted(X)
        return model.decision_function(x)


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateRegressor(RegressorMixin, _Private):
    """Regression for scikit-learn (1.6 or later) that is differentially private for each training
    row, or for each person with all of their rows (`person` and `rows_per_person`).

    target_bounds, (low, high), are public; without them a private look finds where targets lie.
    Everything else is as in `PrivateClassifier`: parameters, attributes (but classes_) and what
    cross-validation costs.

    >>> rng = np.random.default_rng(0); x = rng.uniform(size=(4000, 2)); y = 3 * x[:, 0] - x[:, 1]
    >>> model = PrivateRegressor(target_bounds=(-1, 3), bounds=(0, 1), epsilon=2.0, random_state=1,
    ...                          quiet=True).fit(x, y)
    >>> model.predict(x[:3]).shape, model.score(x, y) > 0.8, model.fitted_.epsilon.upper <= 2.0
    ((3,), True, True)
    """

    target_bounds: tuple[float, float] | None = None
    _label = "number"

    def _targets(self, y):
        return y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with noise, few rows teach little
        return tags
