"""The scikit-learn classes, under the name by which people import and pickle them."""

from .fitting.estimators import PrivateClassifier, PrivateRegressor

__all__ = ["PrivateClassifier", "PrivateRegressor"]
