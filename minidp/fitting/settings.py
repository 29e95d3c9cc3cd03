"""Settings of `minidp.fit`, except data, budget and files. The keywords of `fit`, the flags of
`minidp train` and entries of config.json follow from these fields.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Any

from numpy.typing import ArrayLike

from .. import nn
from ..errors import ParameterError
from ..run.options import Checked, option
from ..util import words
from ..util.atomic import StrPath
from ..util.files import check_path
from ..util.validate import count, flag, positive, positive_finite
from ..util.words import P, R

SCALES = ("auto", "unit-norm", "bounds", "private", "none")
POSITIVE = partial(count, 1)
RULE = "(default: by a rule in N, epsilon, delta and the number of parameters)"


@dataclass(frozen=True, kw_only=True)
class Settings(Checked):
    """Settings of `minidp.fit`; each may also be given to `fit` by its own name.

    label: str, default None
        Column of a table to predict, instead of y; default: the column that `schema` marks.
    classes: array (K,) or list, default None
        Public list of classes. None: those in y, and the statement says that they were disclosed.
        Floating-point labels are then refused, unless they are at most ten whole numbers, because
        they may be targets of a regression.
    target_bounds: (low, high), default None
        Public bounds of a regression's targets, which are clipped to them; they may be loose, or
        (-inf, inf), because a private look finds where targets lie. None: classification.
    scale: str, default "auto"
        "unit-norm": each row is divided by its length. If you name it, rows count as images or
        texts, whose length says nothing, and get the rates of images. "bounds": each feature mapped
        to [-1, 1] by `bounds` or the schema, and clipped to it. "private": by a private look at the
        columns, noisy histograms that give the centre, the spread and the pieces of each. "none":
        unchanged. "auto": "bounds" if there are any, with a look too where it costs little, else
        "private" for rows of at most 200 numbers, if there are enough of them, and "unit-norm" for
        others ("none" for your own network). A look takes at most a fifth of the budget (mu^2), of
        a regression a third. In a classification the rows' noisy mean is then subtracted, for a
        tenth; of a table the noisy shares of the classes come with it, at which the bias starts.
    bounds: (low, high), default None
        Public bounds of the features, numbers or arrays of a row's shape.
    schema: dict or path, default None
        Public description of a table's columns (`data.tables`), instead of `bounds`. x is then a
        data frame or a dict of columns, with texts, gaps and dates. It may include the label, with
        y=None. A number beyond its bounds is clamped, an unknown category is *other*.
    hidden: tuple of int, or int, default ()
        Sizes of hidden layers. (): logistic, or linear, regression.
    network: nn.Sequential, default None
        Your own network for inputs of this shape, with one logit per class, or one number. It is
        copied. Its inputs are only scaled as `scale` says. None: layers of `hidden` units.
    dataset_size: int, default None
        Public N for the sampling: the number of rows, or with `person` of persons. None: the true
        number, and the statement says that it was disclosed. Lots and the default delta follow from
        N. If N is too small, lots are larger and delta is weaker than planned; if it is too large,
        lots are smaller and the model is worse. Epsilon at that delta holds for any N.
    person: str or array (N,), default None
        Protect persons instead of rows: the column of x, or an array, with the name of each row's
        person, as whole numbers or texts (spaces around texts are cut). It is not an input. Rows
        without a person are refused before any charge. Lots consist of persons, and a person's
        gradient is the mean over their rows.
    rows_per_person: int, default None
        Public k: the first k rows of a person, in the order of the data, are used. Give it together
        with `person`.
    lot_size: int, default None
        L, rows per step, on average. If this or one of the next three is None, `defaults.choose`
        finds it from N, epsilon, delta and the number of parameters alone.
    steps: int, default None
        T, the number of steps.
    clip_norm: float, default None
        C, the bound on the norm of each row's (or person's) gradient.
    learning_rate: float, default None
        eta, the length of a step in units of the gradient.
    example_weight: array (N,), default None
        Weights in [0, 1], each depending on its own row only; with `person` one for each person, in
        the order of their names. None: all 1.
    check: bool, default True
        Refuse rows that are not finite and labels of no class before any charge, with a message for
        the data's owner. False: train nevertheless; such rows contribute nothing.
    device: str, default "cpu"
        "cpu", "gpu", "gpu:N" (the GPU of that number) or "auto" (a GPU if there is one).
    dtype: str, default "float32"
        "float32" or "float64", the number type of the weights. In float64 a row's gradient does not
        depend on the other rows of its batch. The run tries this on this machine, and the statement
        has the result. Float64 takes several times as long.
    source: str, default None
        Name of the data in the statement, such as that of their file.
    group_size: int, default 1
        k: the statement also gives the epsilon of k rows of one person together, or with `person`
        of k persons. It is an additional figure: the epsilon that you ask for remains that of one
        row, or person.
    ledger_limit: float, default None
        Largest epsilon, at this fit's delta, that the shared `ledger` may reach; a fit that would
        exceed it is refused before its charge.

    Raises ParameterError for a value out of its range.

    >>> Settings(hidden=(64,)).steps is None
    True
    """

    label: str | None = option(
        None,
        "column of a table to predict (default: the one that --schema marks); all "
        "others are inputs",
        metavar="COLUMN",
    )
    classes: ArrayLike | None = option(
        None,
        "public list of classes (default: those found in the data, which discloses them)",
        metavar="A,B,...",
        public="classes",
        recorded=True,
    )
    target_bounds: tuple[float, float] | None = option(
        None,
        "public bounds of a regression, which clip its targets",
        metavar="LOW,HIGH",
        public="target bounds",
        recorded=True,
    )
    scale: str = option(
        "auto",
        "rows divided by their length, public --bounds, a private look at the columns that is "
        "charged, or nothing (default: bounds if they are given, else private if there are enough "
        "rows for it, and unit-norm if not)",
        choices=SCALES,
        recorded=True,
    )
    bounds: tuple[Any, Any] | None = option(
        None,
        "public bounds of all inputs, such as 0,255",
        metavar="LOW,HIGH",
        public="bounds of the features",
        recorded=True,
    )
    schema: Any = option(
        None,
        "JSON file that describes the columns of a .csv table, from public knowledge: numbers "
        "beyond their bounds are clamped, unknown categories are one more, gaps have an indicator; "
        "`minidp schema` writes a draft",
        metavar="FILE",
        recorded=True,
    )
    hidden: tuple[int, ...] | int = option(
        (),
        "sizes of hidden layers, such as 64,32 (default: none, which is logistic or linear "
        "regression)",
        metavar="SIZE,...",
    )
    network: nn.Sequential | None = option(None, public="layers and initial weights of the network")
    dataset_size: int | None = option(
        None,
        "public number of rows, or of persons. About right will do: a number that is too small "
        "makes lots and the default delta too large (default: counted, which discloses it)",
        POSITIVE,
        metavar="N",
        public="the number of {units}",
    )
    person: Any = option(
        None,
        "column of a .csv file with each row's person: protect persons instead of rows; rows "
        "without one are refused",
        metavar="COLUMN",
    )
    rows_per_person: int | None = option(
        None, "with --person: number of rows that are used of each person", POSITIVE, metavar="K"
    )
    lot_size: int | None = option(None, f"rows per step, on average {RULE}", POSITIVE, metavar="L")
    steps: int | None = option(None, f"number of steps {RULE}", POSITIVE, metavar="T")
    clip_norm: float | None = option(
        None, f"bound on the norm of each row's gradient {RULE}", positive_finite, metavar="C"
    )
    learning_rate: float | None = option(
        None, f"length of a step in units of the gradient {RULE}", positive_finite, metavar="RATE"
    )
    example_weight: ArrayLike | None = None
    check: bool = option(
        True,
        "ignore rows that are not finite and unknown labels, instead of stopping",
        flag,
        recorded=True,
    )
    device: str = option("cpu", "where to compute: cpu, gpu, gpu:N or auto")
    dtype: str = option(
        "float32",
        "number type of the weights; float64 is slower, and then a row's gradient does not depend "
        "on the other rows of its batch, as far as a trial on this machine shows",
        choices=("float32", "float64"),
        recorded=True,
    )
    source: str | None = None
    group_size: int = option(
        1,
        "the statement also gives the epsilon of K rows of one person together, or with --person "
        "of K persons; the target stays that of one",
        POSITIVE,
        metavar="K",
        recorded=True,
    )
    ledger_limit: float | None = option(
        None,
        "largest epsilon that the shared --ledger may reach; a fit beyond it is refused",
        positive_finite,
        metavar="EPSILON",
    )

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """The sizes of hidden layers as a tuple, from one number or several."""
        sizes = tuple(self.hidden) if isinstance(self.hidden, (tuple, list)) else (self.hidden,)
        for size in sizes:
            count(1, hidden=size)
        return sizes

    @property
    def given(self) -> dict[str, Any]:
        """{name: value} of the fields that differ from their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) is not field.default
        }


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of `fit` except the rows, checked against each other; the fields are its
    parameters.
    """

    epsilon: float
    delta: float | None
    folder: StrPath | None
    ledger: StrPath | None
    test: Any
    seed: int | None
    quiet: bool
    settings: Settings

    def __post_init__(self) -> None:
        flag(quiet=self.quiet)
        positive(epsilon=self.epsilon)
        check_path(folder=self.folder, ledger=self.ledger)
        if self.settings.ledger_limit is not None and self.ledger is None:
            raise ParameterError(
                "expected ledger_limit= together with ledger=FILE, which it limits"
            )
        if self.epsilon == math.inf and self.ledger is not None:
            raise ParameterError(
                "expected no ledger= with epsilon=inf: what is not private has no place in a "
                "ledger that private fits share"
            )
        test = self.test
        if test is not None and not (isinstance(test, (tuple, list)) and len(test) == 2):
            raise ParameterError("expected test to be a pair (x, y)")


def names_checked(fit: Callable[P, R]) -> Callable[P, R]:
    """Decorator of `fit`: show the fields as parameters. Raise ParameterError for an unknown
    keyword, for `settings` of another class, and for a field that is given both by its name and in
    `settings`.
    """
    shown = signature(fit)
    own = [each for each in shown.parameters.values() if each.kind != Parameter.VAR_KEYWORD]
    every = [*own, *signature(Settings).parameters.values()]
    fit.__signature__ = shown.replace(parameters=every)  # type: ignore[attr-defined]
    fit.__annotations__ |= Settings.__annotations__
    by_name = words.names_checked(fit)

    @wraps(fit)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        settings = named.get("settings")
        if settings is not None and not isinstance(settings, Settings):
            raise ParameterError(
                f"expected settings to be a minidp.Settings, got {type(settings).__name__}"
            )
        for name in named:
            if settings is not None and name in settings.given:
                raise ParameterError(f"fit: {name} given both by settings= and by its name")
        return by_name(*args, **named)

    return checked
