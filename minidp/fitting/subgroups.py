"""Figures of a model by subgroups of its public test table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.tables import table_of, text_in
from ..errors import ParameterError
from ..run import Run
from ..train import evaluate

MOST_VALUES = 50  # of a column


def subgroups_of(test: Any, names: Sequence[str] | str | None) -> dict[str, NDArray]:
    """{column: the value of each test row, as text} of the named columns of the test table.

    Raises ParameterError without a test table, or for columns that it lacks or that have more than
    MOST_VALUES values.
    """
    if names is None:
        return {}
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = None if test is None else table_of(test[0])
    found = {}
    for name in names:
        if table is None or name not in table:
            raise ParameterError(
                f"subgroups: expected test=, whose public table has a column {name!r}"
            )
        values = np.array([text_in(value) for value in table[name].tolist()])
        if (different := len(set(values.tolist()))) > MOST_VALUES:
            raise ParameterError(
                f"subgroups: expected a column of at most {MOST_VALUES} values, got {name!r} with "
                f"{different}; make a column of ranges from it, to be left out of the inputs"
            )
        found[name] = values
    return found


def figures_of(run: Run, subgroups: dict[str, NDArray], *test: Any) -> dict[str, Any]:
    """{"subgroups": {column: {value: {"examples", "accuracy"}}}}, or "r2" of a regression, of the
    run's network on the test rows (x, y); {} without subgroups.
    """
    found: dict[str, Any] = {}
    for name, values in subgroups.items():
        found[name] = {}
        for value in sorted(set(values.tolist())):
            rows = np.flatnonzero(values == value)
            part = (array.take(rows, axis=0) for array in test)
            figures = evaluate(run.network, run.loss, *part)
            of = "accuracy" if figures.r2 is None else "r2"
            found[name][value] = {"examples": len(rows), of: getattr(figures, of)}
    return {"subgroups": found} if found else {}
