"""The curve that a model without hidden layers learned for each column, computed from the model
alone, so that it costs nothing.
"""

import math
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..backend import to_host
from ..errors import ParameterError
from ..run import plotting
from ..run.model import Model
from ..util.atomic import StrPath

VALUES = 200  # points of a column of numbers at which its curve is computed
ADDITIVE = (nn.Standardise, nn.Clamp, nn.Pieces, nn.Flatten)
MOST_PANELS, ACROSS = 30, 3
BINS = 10
FEWEST = 10  # rows of a point
GREY = "0.7"  # of a curve that noise may have made


@dataclass(frozen=True)
class Term:
    """The part of the answer that a column adds.

    values  (V,) numbers, dates, categories, or None of other values and gaps
    adds    (V,) added to the logit of the second of two classes, or to the number of a regression;
            (V, K) added to the logits of K classes. The mean over the values is subtracted
    noise   whether the noise of the training alone may have made it; known of classes only
    """

    values: NDArray
    adds: NDArray
    noise: bool = False


def terms(model: Model) -> dict[str, Term]:
    """{column: Term} of a model. Raises ParameterError unless its answer is a sum of terms of one
    column each.
    """
    if not is_additive(model):
        layers = ", ".join(layer.name or layer.kind for layer in model.network.layers)
        raise ParameterError(
            "terms: expected a model that adds up terms of one column each: without hidden layers, "
            f"and with scale 'bounds' or 'private'; this one has {layers}"
        )
    found = _of_schema(model) if model.schema is not None else _of_numbers(model)
    noise = model.about.get("noise") or ()
    return {
        name: Term(values, _centred(answers(model, x)), place in noise)
        for place, (name, values, x) in enumerate(found)
    }


def importances(model: Model) -> NDArray[np.float64]:
    """(D,) the standard deviation of each column's part over its values, as a share of the sum over
    the columns; 0 for a column that may be noise alone. Raises AttributeError if there are no
    terms.
    """
    if not is_additive(model):
        raise AttributeError(
            "feature_importances_: this model does not add up terms of one column each"
        )
    spreads = [0.0 if term.noise else term.adds.std(axis=0).sum() for term in terms(model).values()]
    total = sum(spreads)
    return np.array(spreads) / total if total else np.zeros(len(spreads))


def _of_schema(model):
    """Yield (column, values, a table with these values, in which all other columns are
    constant).
    """
    low, high = span(model)
    values, place = {}, 0
    for column in model.schema.inputs:
        values[column.name] = _values_of(column, low[place], high[place])
        place += column.width
    cells = {name: each.astype(object) for name, each in values.items()}
    for name, each in values.items():
        still = {other: np.repeat(cell[:1], len(each)) for other, cell in cells.items()}
        yield name, each, still | {name: cells[name]}


def _of_numbers(model):
    """The same for an array."""
    low, high = span(model)
    grid = np.linspace(low, high, VALUES)
    names = model.about.get("columns") or [f"x[{place}]" for place in range(len(low))]
    for place, name in enumerate(names):
        x = np.tile((low + high) / 2, (VALUES, 1))
        x[:, place] = grid[:, place]
        yield name, grid[:, place], x


def answers(model: Model, x: Any) -> NDArray[np.float64]:
    """(N,) logits of the second class minus those of the first, or numbers of a regression before
    they are clipped; (N, K) logits of K > 2 classes.
    """
    z = model.outputs(x)
    if model.classes is not None:
        return z[:, 1] - z[:, 0] if len(model.classes) == 2 else z
    low, high = model.target_bounds or (-1.0, 1.0)
    return low + (z[:, 0] + 1) / 2 * (high - low)


def linear(model: Model) -> tuple[NDArray, Any]:
    """(coef, intercept), so that x @ coef.T + intercept is `answers` within the limits of the
    columns; coef is (D,) or (K, D), in the columns' units. Raises AttributeError if the model is
    not linear.
    """
    pieces = any(isinstance(layer, nn.Pieces) for layer in model.network.layers)
    if pieces or model.schema is not None or not is_additive(model):
        raise AttributeError(
            "coef_ and intercept_: this model is not linear in its columns' numbers; "
            "model.terms() gives what each column adds"
        )
    low, high = span(model)
    middle, step = (low + high) / 2, (high - low) / 4
    found = answers(model, np.concatenate([middle[None], middle + np.diag(step)]))
    coef = ((found[1:] - found[0]).T / step).astype(np.float64)
    return coef, found[0] - coef @ middle


def span(model: Model) -> tuple[NDArray, NDArray]:
    """(low, high) (D,) within which the model's columns are not clamped."""
    mean, scale = 0.0, 1.0
    low, high = np.full((2, math.prod(model.network.input_shape)), [[-math.inf], [math.inf]])
    for layer in model.network.layers:
        if isinstance(layer, nn.Standardise):
            constants = [to_host(layer.constants[name]).ravel() for name in ("mean", "scale")]
            mean, scale = mean + scale * constants[0].astype(float), scale * constants[1]
        elif isinstance(layer, nn.Clamp):
            low = np.maximum(low, mean - scale * layer.limit)
            high = np.minimum(high, mean + scale * layer.limit)
        else:
            break
    return low, high


def draw_terms(found: dict[str, Term], classes: Any, path: StrPath) -> None:
    """Write a picture with a panel for each column; columns that add most come first."""
    most = sorted(found, key=lambda name: -np.ptp(found[name].adds, axis=0).max())[:MOST_PANELS]
    rows = -(-len(most) // ACROSS)
    figure, axes = plotting.new_figure(
        rows, min(len(most), ACROSS), title="What each column adds", panel=(3.6, 2.6)
    )
    for axis in axes[len(most) :]:
        axis.set_visible(False)
    what, handles = "to the number" if classes is None else "to the logit", []
    for axis, name in zip(axes, most):
        term = found[name]
        curves = term.adds[:, None] if term.adds.ndim == 1 else term.adds
        places = term.values
        if places.dtype == object:
            places = np.arange(len(term.values))
            every = -(-len(places) // 12)
            texts = ["other, a gap" if each is None else str(each)[:12] for each in term.values]
            axis.set_xticks(places[::every], texts[::every], rotation=60, ha="right", fontsize=6)
        elif places.dtype.kind == "M":
            axis.tick_params("x", rotation=60, labelsize=6)
        style = "o" if term.values.dtype == object else "-"
        handles = [
            axis.plot(places, curve, style, ms=4, color=GREY if term.noise else colour)[0]
            for curve, colour in zip(curves.T, cycle(plotting.COLOURS))
        ]
        axis.set(title=f"{name} (noise)" if term.noise else name)
    axes[0].set(ylabel=what)
    if classes is not None and len(classes) > 2:
        for handle, label in zip(handles, classes):
            handle.set_label(str(label))
        plotting.legend(figure, handles, 6)
    plotting.save(figure, path)


def draw_reliability(p: NDArray, right: NDArray, path: StrPath) -> None:
    """Write a picture of public rows: how often a class is right where the model says so.

    p      (N, K) probabilities
    right  (N,) numbers of the true classes, -1 for none
    """
    said, was = p.ravel(), (right[:, None] == np.arange(p.shape[1])).ravel()
    if p.shape[1] == 2:
        said, was = p[:, 1], right == 1
    bins = np.minimum((said * BINS).astype(int), BINS - 1)
    rows = np.bincount(bins, minlength=BINS)
    held = rows >= FEWEST  # so that no point shows a single person
    means = [np.bincount(bins, each, BINS)[held] / rows[held] for each in (said, was)]
    figure, (axis,) = plotting.new_figure(
        title="Probabilities of the model, and how often they came true", panel=(4.8, 4.6)
    )
    axis.plot([0, 1], [0, 1], color=plotting.BLACK, linewidth=0.8)
    axis.plot(*means, "o-", color=plotting.BLUE)
    for x, y, number in zip(*means, rows[held]):
        axis.annotate(f"{number:,}", (x, y), fontsize=6, xytext=(4, -8), textcoords="offset points")
    axis.set(
        xlabel="probability, mean of a tenth", ylabel="share of rows", xlim=(0, 1), ylim=(0, 1)
    )
    plotting.save(figure, path)


def is_additive(model: Model) -> bool:
    """True if the answer is a sum of terms of one column each, over ranges that are known."""
    *before, last = model.network.layers
    if model.schema is None and not np.isfinite(span(model)).all():
        return False
    return isinstance(last, nn.Dense) and all(isinstance(layer, ADDITIVE) for layer in before)


def _values_of(column, low, high):
    """Values of a schema's column within its bounds, or else between these ends; and None for a gap
    among categories.
    """
    if column.values:
        return np.array([*column.values, None][: column.width], dtype=object)
    found = np.linspace(*((low, high) if column.open else (column.low, column.high)), VALUES)
    return found if column.unit is None else np.rint(found).astype(int).astype(column.unit)


def _centred(adds):
    """Subtract the mean over the values, and for K classes also the mean over the classes."""
    adds = adds - adds.mean(axis=0)
    return adds if adds.ndim == 1 else adds - adds.mean(axis=1, keepdims=True)
