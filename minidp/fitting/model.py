"""The result of `minidp.fit`: the model, its epsilon and its files."""

import math
import shutil
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.arrays import one_axis
from ..data.cells import places_among
from ..errors import ParameterError
from ..privacy.accountants import Bound, called
from ..privacy.ledger import Ledger
from ..ranks import current
from ..run.folder import FILES, LEDGER, MANIFEST, MODEL, STATEMENT
from ..run.model import Model
from ..run.model_file import load_model, write_model
from ..run.record import Record
from ..util.atomic import StrPath
from ..util.files import check_path
from ..util.notices import say
from ..util.text import lower_text, upper_text
from ..util.validate import same_batch
from .terms import (
    Term,
    answers,
    draw_reliability,
    draw_terms,
    importances,
    is_additive,
    linear,
    terms,
)

COLUMNS, RELIABILITY = "columns.png", "reliability.png"


class Spent(float):
    """Epsilon of a model: a float, the upper end of a certified interval. It prints as a sentence,
    and `bound` is the interval.
    """

    bound: Bound
    said: str

    @property
    def lower(self) -> float | None:
        """The lower end; None if unknown."""
        return self.bound.lower

    @property
    def upper(self) -> float:
        """The upper end, the same number."""
        return self.bound.upper

    def __repr__(self):
        return self.said


class Fitted(Model):
    """A private model with its statement; made by `minidp.fit`.

    result     dictionary of result.json: settings, epsilon by every accountant, choices
    record     the same as a `run.record.Record`, whose attributes are the keys
    folder     folder of the run's files
    statement  text of the privacy statement, as in privacy.md

    A pickle holds the model, result, statement and ledger, but not the folder's key or checkpoint.
    """

    def __init__(
        self, folder: StrPath, result: dict[str, Any], layers: dict[str, type] | None = None
    ) -> None:
        model = load_model(Path(folder) / MODEL, layers)
        super().__init__(
            model.network, model.classes, model.target_bounds, model.about, model.ledger_sha256
        )
        self.folder, self.result = Path(folder), result
        self.record = Record.from_json(result)
        self.statement = (self.folder / STATEMENT).read_text(encoding="utf-8")
        self._ledger = Ledger.load(self.folder / LEDGER)

    @property
    def epsilon(self) -> Spent:
        """Epsilon to quote, at `delta`: the smallest certified upper end of all accountants;
        infinite for a model that is not private.
        """
        record, bound = self.record, Bound(math.inf, math.inf, math.inf)
        said = "Epsilon is infinite: treat the model like the training data."
        if record.quoted is not None:
            found = record.epsilon[record.quoted]
            bound = Bound(found.lower, found.estimate, found.upper)
            said = (
                f"Epsilon is at most {upper_text(bound.upper)} at delta {record.delta:g}, for each "
                f"{self._whom}; it is certified by {called(record.quoted)}."
            )
        spent = Spent(bound.upper)
        spent.bound, spent.said = bound, said
        return spent

    @property
    def _whom(self):
        """The unit that the guarantee protects."""
        return "row by itself" if self.record.unit == "row" else "person with all of their rows"

    @property
    def delta(self) -> float:
        """delta of the guarantee."""
        return self.record.delta

    @property
    def ledger(self) -> Ledger:
        """Every event that touched the data."""
        return self._ledger.copy()

    def score(self, x: Any, y: ArrayLike) -> float:
        """Accuracy on labels y (N,), or R2 on the targets of a regression; NaN without rows. Scores
        on training data are not private.
        """
        right, predicted = self._answers(x, y)
        if self.classes is not None:
            return float((predicted == right).mean()) if len(right) else math.nan
        spread = ((right - right.mean()) ** 2).sum() if len(right) else 0
        return float(1 - ((right - predicted) ** 2).sum() / spread) if spread else math.nan

    def per_class(self, *_: Any) -> None:
        """Gone: raises ParameterError with what to call."""
        raise ParameterError(
            "per_class is gone; sklearn.metrics.classification_report(y, model.predict(x)) has its "
            "figures"
        )

    def _answers(self, x, y):
        """(y as an array, predictions for x)."""
        y, predicted = one_axis(y), self.predict(x)
        same_batch("score", x=predicted, y=y)
        if self.classes is not None and self.classes.dtype.kind != y.dtype.kind:
            names = np.append(self.classes.astype(object), None)
            y = names[places_among(self.classes.tolist(), y.tolist())]
        return y, predicted

    def save(self, path: StrPath) -> None:
        """Write the model as a single file for `minidp.load_model` and `minidp predict`."""
        current().of_first(lambda: write_model(path, self))

    def terms(self) -> dict[str, Term]:
        """{column: Term}: the part of the answer that each column's values add
        (`fitting.terms.Term`), computed from the model alone. Raises ParameterError if the answer
        is not a sum of such parts: with hidden layers, or if rows are divided by their length.
        """
        return terms(self)

    def decision_function(self, x: Any) -> NDArray[np.float64]:
        """(N,) logits of the second class minus those of the first; (N, K) logits of K > 2 classes;
        for a regression (N,) numbers before they are clipped.
        """
        return answers(self, x)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """(D,) or (K, D), in the columns' units: `decision_function` is x @ coef_.T + intercept_
        within the columns' limits. Raises AttributeError if the model is not linear.
        """
        return linear(self)[0]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """(D,) the importance of each column of `terms`, as shares of 1. Raises AttributeError
        where the model has no terms.
        """
        return importances(self)

    @property
    def intercept_(self) -> Any:
        """A number, or (K,), as `coef_`."""
        return linear(self)[1]

    def report(self, folder: StrPath, test: tuple[Any, ArrayLike] | None = None) -> Path:
        """Copy the run's files (statement, ledger, result, picture, model) into a new folder;
        `minidp verify` checks it. If the model has `terms`, columns.png shows them. With public
        rows, test=(x, y), reliability.png shows how often probabilities came true.

        The folder's key is not copied: whoever has it and the checkpoint could test a guess about
        the training data.
        """
        check_path(folder=folder)
        return current().of_first(lambda: self._reported(Path(folder), test))

    def _reported(self, folder, test):
        copied = self._copied(folder)
        if test is None or self.classes is None:
            self.draw(copied)
            return copied
        x, y = test
        self.draw(copied, x, places_among(self.classes.tolist(), one_axis(y).tolist()))
        return copied

    def draw(self, folder: Path, x: Any = None, places: NDArray | None = None) -> None:
        """Write columns.png, if the model has `terms`, and reliability.png for public rows x with
        these numbers of classes. A failure prints a NOTICE.
        """
        try:
            if is_additive(self):
                draw_terms(self.terms(), self.classes, folder / COLUMNS)
            if places is not None and self.classes is not None:
                draw_reliability(self.predict_proba(x), places, folder / RELIABILITY)
        except Exception as error:  # from the drawing library, or a full disk
            say(f"NOTICE: {folder}: the pictures of the model could not be drawn ({error})")

    def _copied(self, folder):
        if not (self.folder / MANIFEST).is_file():
            raise ParameterError(
                f"{self.folder}: the run's files are gone: they end with the process and the "
                "object that fit returned; call report on that one, or give fit a folder"
            )
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ParameterError(f"{folder} is there and not empty; name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*FILES, MANIFEST):
            shutil.copy(self.folder / name, folder / name)
        return folder

    def _facts(self):
        """(name, text) of the most important facts."""
        record, bound, group = self.record, self.epsilon, self.record.group
        settings, upper, unit = record.settings, upper_text(bound.upper), record.unit
        if record.quoted is None:
            yield "epsilon", "infinite: treat the model like the training data"
        else:
            yield "epsilon", f"{upper} at delta {self.delta:g}, for each {self._whom}"
            if group:
                yield f"for {group.size} {unit}s", f"epsilon {upper_text(group.epsilon)}"
            low, by = lower_text(bound.lower), called(record.quoted)
            yield "certified", f"epsilon is between {low} and {upper} (accountant {by})"
        yield (
            "trained",
            f"{record.steps} steps, each on about {settings.expected_lot_size:g} of "
            f"{settings.dataset_size} {unit}s; {self._noise()}",
        )
        if record.choices.get("scale") == "unit-norm":
            yield (
                "scale",
                (
                    "rows in unit norm, so that only their direction counts, because there are no "
                    "bounds and no private look: give bounds=(low, high), or a schema"
                ),
            )
        if record.disclosed:
            yield "disclosed", "; ".join(record.disclosed)
        if record.reproducible:
            yield "seeded", "not to be released"
        if record.test_accuracy is not None:
            yield "test", f"accuracy {record.test_accuracy:.2%}"
        if record.test is not None:
            loss, constant = record.test.loss, record.test.constant_loss
            yield "test", f"log loss {loss:.4f}; a constant answer has {constant:.4f}"
        if record.test_r2 is not None:
            yield "test", f"R2 {record.test_r2:.2%}"

    def _noise(self):
        """The noise multiplier of the noise, and the charged one if rounding makes it smaller."""
        (group,) = self.record.settings.clip_groups
        drawn, factor = group.noise_multiplier, group.sensitivity_factor
        if drawn == 0 or factor == 1:
            return f"noise multiplier {drawn:.4g}"
        return (
            f"noise multiplier {drawn:.4g}, charged as {lower_text(drawn / factor)} because sums "
            "are rounded"
        )

    def __repr__(self):
        facts = [(self._kind, self._gives), *self._facts()]
        return "\n".join(
            fill(f"{name:<13} {text}", 80, subsequent_indent=" " * 14) for name, text in facts
        )

    @property
    def _kind(self):
        return "private model" if self.epsilon.upper < math.inf else "not private:"

    @property
    def _gives(self):
        if self.classes is None:
            return "numbers from {:g} to {:g}".format(*self.target_bounds)
        more = ", ..." if len(self.classes) > 20 else ""
        return f"{len(self.classes)} classes: {', '.join(map(str, self.classes[:20]))}{more}"
