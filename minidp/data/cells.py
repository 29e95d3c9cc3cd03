"""Cells of a table as texts, numbers and days. No message shows a value of a row."""

import math
import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

# texts for a missing value, in pandas and in other programs
GAPS = ("", "?", ".", "-", "NA", "N/A", "n/a", "#N/A", "<NA>", "nan", "NaN", "null", "NULL", "None")
MISSING = ("None", "nan", "NaT", "<NA>")  # printed forms of objects for a missing value
TRUTH = {"true": "1", "false": "0"}
PLAIN = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|true|false", re.I)
CODE = re.compile(r"[-+]?0[0-9].*")  # a leading zero, as in a postal code
WRITTEN = re.compile(r"1(\D?)234(\D)5")  # 1234.5 with the separators of a table
CURRENCIES = "$€£¥"
SIGN = re.compile(rf"^([-+]?) ?[{CURRENCIES}] ?| ?[{CURRENCIES}%]$")  # of a currency, or percent
BEHIND = re.compile(r"(\d.*)-$")  # a minus
GROUPED = re.compile(r"[-+]?[1-9]\d?\d?(,\d{3})+")
# parts of 31 December 2015 as a table writes it, and what `strptime` calls them
DAY = {"2015": "%Y", "31": "%d", "12": "%m", "15": "%y", "Dec": "%b"}
TIME = re.compile(r"[T ]\d?\d:\d\d.*")


def text_in(cell: Any) -> str:
    """A cell as the text of a .csv file, without spaces around it; "" for an object that means a
    missing value.
    """
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = str(cell).strip()
    return "" if text in MISSING and not isinstance(cell, str) else text


def number_in(cell: Any) -> float:
    """A cell as a float; true and false are 1 and 0, and a gap is NaN. Raises ValueError for other
    texts, and for a leading zero.
    """
    text = text_in(cell)
    if CODE.fullmatch(text):
        raise ValueError("no number")
    return _float(text)


def _float(text):
    if "_" in text:  # Python reads 1_000
        raise ValueError("no number")
    return math.nan if text in GAPS else float(TRUTH.get(text.lower(), text))


def plain_number(cell: Any) -> float | None:
    """The number of a cell that is written as people and programs write numbers; None for any other
    cell.
    """
    text = text_in(cell)
    return number_in(text) if PLAIN.fullmatch(text) else None


def number_or_nan(text: str, written: str | None = None) -> float:
    """A text as a float; NaN if it is not a number. Leading zeros, a minus after the number, and a
    sign of percent or a currency are accepted.

    written: 1234.5 as the table writes it, such as "1.234,5"
    """
    text = BEHIND.sub(r"-\1", SIGN.sub(r"\1", text))
    if written is not None:
        separators = WRITTEN.fullmatch(written)
        if separators is None:
            return math.nan
        thousands, decimal = separators.groups()
        whole, _, rest = " ".join(text.split()).partition(decimal)  # any space is a space
        if thousands and thousands in whole:
            if not GROUPED.fullmatch(whole.replace(thousands, ",")):
                return math.nan
            whole = whole.replace(thousands, "")
        text = f"{whole}.{rest}"
    try:
        return _float(text)
    except ValueError:
        return math.nan


def day_in(text: str, written: str | None = None) -> float:
    """Days since 1970 of a text that is a date, with or without a time after it; NaN if the text is
    not a date.

    written: 31 December 2015 as the table writes it, such as "31.12.2015"; None: 2015-12-31
    """
    text = TIME.sub("", text)
    try:
        if written is None:
            found = date.fromisoformat(text)
        else:
            for part, code in DAY.items():
                written = written.replace(part, code)
            found = datetime.strptime(text, written).date()
    except ValueError:
        return math.nan
    return float(found.toordinal() - date(1970, 1, 1).toordinal())


def places_among(values: Iterable[Any], cells: Iterable[Any]) -> NDArray:
    """(N,) the place of each cell among the values, their number for others and gaps.

    A number is one value however it is written: 1, 1.0, "1", "1.0" and True are the same, where no
    two of the values are. A leading zero makes a text: 01067 is not 1067.
    """
    values = list(values)
    by_text = {text_in(value): place for place, value in enumerate(values)}
    numbers = [plain_number(value) for value in values]
    by_number: dict[float | None, int] = {
        number: place
        for place, number in enumerate(numbers)
        if number is not None and numbers.count(number) == 1
    }
    texts, known = [text_in(cell) for cell in cells], {}
    for text in set(texts):
        place = by_text.get(text)
        known[text] = by_number.get(plain_number(text), len(values)) if place is None else place
    return np.array([known[text] for text in texts], dtype=np.int64)
