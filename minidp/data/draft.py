"""A draft of a schema from a table's rows, for its owner to correct by public knowledge."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .schema import day_in, number_or_nan, plain_number
from .tables import GAPS, picked, text_in

MOST_CATEGORIES = 64  # a column of more texts is left out
MOST_NUMBERED = 10  # classes that are numbers: a label of more is a number to predict


def draft(table: dict[str, NDArray], label: str) -> dict[str, Any]:
    """A schema's JSON with types and categories read from the rows, which it says; bounds are null,
    for you to fill in from public knowledge.
    """
    picked(table, [label])
    return {name: _drafted(cells, name == label) for name, cells in table.items()}


def _drafted(cells, label):
    texts = sorted({text_in(cell) for cell in cells.tolist()}.difference(GAPS))
    few = 0 < len(texts) <= MOST_CATEGORIES
    readers = {"number": number_or_nan, "date": day_in}
    fits = [
        kind
        for kind, read in readers.items()
        if texts and not np.isnan([read(text) for text in texts]).any()
    ]
    found: dict[str, Any] = {"type": "ignore"}
    if label and fits == ["number"] and len(texts) > MOST_NUMBERED:
        found = {"type": "number", "low": None, "high": None}
    elif few and (label or not fits):
        found = {"type": "category", "values": texts}
    elif fits:
        found = {"type": fits[0], "low": None, "high": None}
    if label:
        found["role"] = "label"
    return found | {"from": "data"}


def in_words(table: dict[str, NDArray], drafted: dict[str, Any]) -> Iterator[str]:
    """Yield what a draft takes each column for, and what to write instead."""
    for name, entry in drafted.items():
        texts = {text_in(cell) for cell in table[name].tolist()}.difference(GAPS)
        kind, label = entry["type"], "the label: " if entry.get("role") == "label" else ""
        says = f"a {kind}; fill in low and high"
        if kind == "category":
            says = f"a category of {len(texts)} values"
            if all(plain_number(text) is not None for text in texts):
                says += '; for a number write "type": "number", "low" and "high"'
        elif kind == "ignore":
            says = (
                f"ignored, because it has {len(texts)} different texts; for a category write "
                '"type": "category" and "values", the ones that matter'
            )
            if not texts:
                says = "ignored, because it is empty"
            elif sum(plain_number(text) is not None for text in texts) > len(texts) / 2:
                says += "; most are numbers: correct the others, and write a number"
        yield f"{name}: {label}{says}"
