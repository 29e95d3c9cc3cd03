"""A draft of a schema from a table's rows, which its owner corrects by public knowledge. Draft and
lines are only for the owner, because they show values of rows.
"""

import math
import re
from collections import Counter
from shlex import quote
from typing import Any

from numpy.typing import NDArray

from ..util.text import listed
from .cells import CODE, CURRENCIES, GAPS, plain_number, text_in
from .kinds import KINDS
from .persons import NAMES, names_repeat
from .tables import picked

MOST_CATEGORIES = 64  # categories of a column with more texts are left to fill in
SOME = 200  # texts that show in which format most are
EIGHT_DIGITS = re.compile(r"(19|20)\d{6}")  # of a date
FOR_GAPS = (-9999, -999, -99, 999, 9999)  # numbers that may stand for a gap
MOST_GAPS = 10  # different texts that are taken for gaps among numbers or dates
FEWEST_ROWS = 10  # rows that hold a text which a draft may quote, because a file may be published
MOST_NUMBERED = 10  # classes that are numbers: a label of more is a number to predict
READ = {name: kind for name, kind in KINDS.items() if kind.formats}


def draft(table: dict[str, NDArray], label: str) -> tuple[dict[str, Any], list[str]]:
    """(a schema's JSON, lines): a line for each column says how it was read, and what to write
    otherwise.

    Types, formats, categories and texts for gaps are read from the rows; the draft marks these
    entries by "from". Replace each null by public knowledge. The draft quotes no text that fewer
    than FEWEST_ROWS rows hold; the lines, which are kept in no file, may do so.
    """
    picked(table, [label])
    entries, lines = {}, []
    for name, cells in table.items():
        texts = [text_in(cell) for cell in cells.tolist()]
        found, says = _drafted(name, texts, name == label)
        if gaps := sum(text in (*GAPS, *(found.get("gaps") or ())) for text in texts):
            says += f"; {gaps} of {len(texts)} are empty or gaps"
        if name == label:
            found, says = found | {"role": "label"}, f"the label: {says}"
        entries[name] = found | {"from": "data"}
        lines.append(f"{name}: {says}")
    return entries, lines


def _drafted(name, cells, label):
    """(entry of a column, text on how it was read)."""
    known = [text for text in cells if text not in GAPS]
    texts = sorted(set(known))
    count = len(texts)
    if not texts:
        return {"type": "ignore"}, "ignored, because it is empty"
    if not label and count > MOST_NUMBERED and NAMES.fullmatch(name.lower()):
        return {"type": "ignore"}, _of_names(name, count, len(known))
    kind, formats = _kind(texts)
    if not label and set(map(plain_number, texts)) == {0, 1}:
        return {"type": "number", "low": 0, "high": 1}, "true or false, as the numbers 1 and 0"
    if (
        not label
        and kind == "number"
        and all(EIGHT_DIGITS.fullmatch(text) and _read("date", text) for text in texts)
    ):
        kind, formats = "date", [None]
    if label and (kind != "number" or count <= MOST_NUMBERED):
        kind = None
    if kind:
        found, says = _measured(kind, formats, texts)
        if kind == "number" and names_repeat(Counter(known)):
            says += f"; if it says whose row each is, {_apart(name)}"
        return found, says
    odd = _mostly(texts)
    rows = Counter(known)
    if count <= MOST_CATEGORIES:
        return _category(rows, cells, None if label or count <= MOST_NUMBERED else odd)
    if odd:
        return _mixed(rows, *odd)
    if count == len(known) and not label:
        return {"type": "ignore"}, (
            f"ignored, because its {count} texts are all different; for a category write "
            '"type": "category" and "values", the ones that matter'
        )
    says = f'a category of {count} texts, too many to list: fill in "values", the ones that matter'
    if not label:
        says += '; all others are *other*. Or write "type": "ignore"'
        if names_repeat(rows):
            says += f". If it says whose row each is, {_apart(name)}"
    return {"type": "category", "values": None}, says


def _mixed(rows, kind, others):
    """(entry of a column of numbers or dates with some other texts, text on how it was read)."""
    shown = listed([repr(text)[:40] for text in others[:MOST_GAPS]])
    more = ", ..." if len(others) > MOST_GAPS else ""
    kept = sorted(set(rows).difference(others))
    kind_of_kept, formats = _kind(kept)
    readable = any(_read(kind, text) for text in others)  # in another format
    if kind_of_kept and len(others) <= MOST_GAPS and not readable:
        found, says = _measured(kind_of_kept, formats, kept)
        if all(rows[text] >= FEWEST_ROWS for text in others):
            return found | {"gaps": others}, f"{says}; gaps are {shown}"
        return found | {"gaps": None}, (
            f"{says}; {shown} may be gaps, and fewer than {FEWEST_ROWS} rows hold some of "
            'them: fill in "gaps" with those that are publicly known'
        )
    return {"type": "ignore"}, (
        f"ignored, because most of its {len(rows)} texts are {kind}s, but not {shown}{more}: list "
        f'what stands for a gap in "gaps", correct other cells, and write a {kind}'
    )


def _category(rows, cells, odd):
    """(entry of a category, text on how it was read). rows: {text: number of rows}; odd: result of
    `_mostly`, if the column may be a number or a date.
    """
    says = f"a category of {len(rows)} values"
    values = [text for text in sorted(rows) if rows[text] >= FEWEST_ROWS]
    if rare := len(rows) - len(values):
        says += (
            f"; {rare} of them, which fewer than {FEWEST_ROWS} rows hold, are not quoted: add to "
            '"values" those that are publicly known'
        )
    if all(plain_number(text) is not None for text in rows):
        says += '; for a number write "type": "number", "low" and "high"'
    elif odd:
        says += (
            f'; for a {odd[0]} write "type": "{odd[0]}", "low", "high", and "gaps", a list of the '
            "texts that stand for a missing one"
        )
    if gaps := sorted(set(cells).intersection(GAPS) - {""}):
        says += f'; {listed(gaps)} is *other*, unless "values" lists it'
    return {"type": "category", "values": values or None}, says


def _of_names(name, count, rows):
    if count == rows:
        return 'ignored, because it names each row; for a number write "type": "number"'
    return (
        f"ignored, because it says whose row each is: {count} persons have {rows} rows. "
        f"{_protects(name)}"
    )


def _apart(name):
    return f'write "type": "ignore": {_protects(name)}'


def _protects(name):
    return (
        f"`train --person {quote(name)} --rows-per-person K` protects each person with all of "
        "their rows"
    )


def _kind(texts):
    """("number", "date" or None; formats in which all texts can be read, with different
    results).
    """
    for kind, each in READ.items():
        found = {}
        if kind == "number" and any(map(CODE.fullmatch, texts)):
            continue
        for written in each.formats:
            values = []
            for text in texts:
                values.append(each.read(text, written))
                if math.isnan(values[-1]):
                    break
            else:
                found.setdefault(tuple(values), written)
        if found:
            return kind, list(found.values())
    return None, []


def _read(kind, text):
    """True if a text is a number or a date in some format."""
    return any(not math.isnan(READ[kind].read(text, written)) for written in READ[kind].formats)


def _mostly(texts):
    """("number" or "date", texts that are not), if most texts are numbers or dates; otherwise
    None.
    """
    some = texts[:: -(-len(texts) // SOME)]
    for kind, each in READ.items():
        read = each.read
        known = {
            written: sum(not math.isnan(read(text, written)) for text in some)
            for written in each.formats
        }
        written = max(known, key=lambda written: known[written])
        if 2 * known[written] > len(some):
            others = [text for text in texts if math.isnan(read(text, written))]
            return (kind, others) if others else None  # codes with leading zeros
    return None


def _measured(kind, formats, texts):
    """(entry of a number or a date, text on how it was read)."""
    entry, first = {"type": kind, "low": None, "high": None}, formats[0]
    says = f"a {kind} ({len(texts)} different); fill in low and high"
    if kind == "number" and len(texts) <= MOST_NUMBERED:
        says += '; if they are codes, write "type": "category" and "values"'
    if kind == "number":
        values = [READ[kind].read(text, first) for text in texts]
        for value in {min(values), max(values)}.intersection(FOR_GAPS):
            says += f"; if {value:g} stands for a gap, make these cells empty"
    if len(signs := set(CURRENCIES).intersection("".join(texts))) > 1:
        says += f"; {listed(sorted(signs))} count as one unit"
    if any(text.endswith("%") for text in texts):
        says += "; 12% is the number 12"
    choices = " or ".join(f'"{each}"' for each in formats if each)
    if first is None and choices:
        says += f'; if 1.234 stands for 1234, write "format": {choices}'
    elif len(formats) > 1:
        entry["format"] = None
        says += f'; it may be read in several ways: fill in "format", {choices}'
    elif first is not None:
        entry["format"] = first
        says += f"; written like {first}"
        if kind == "date" and "2015" not in first:
            says += ", where 00 to 68 are the years from 2000 on"
    return entry, says
