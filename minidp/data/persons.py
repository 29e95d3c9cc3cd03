"""The rows of each person, for training that protects persons instead of rows."""

import re
import unicodedata
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DtypeError, RowsError
from ..units import Units, shared
from ..util.notices import say
from ..util.validate import count
from .arrays import ASIDE, OWNER, Inputs, known_values, one_axis
from .cells import GAPS

MOST_ROWS = 2**10  # sums of so many outer products per person are within the bound of `rounding`
NAMES = re.compile(  # of columns that say whose row each is
    r"(person|pat|patient|user|customer|client|member|student|pupil|employee|respondent"
    r"|participant|household|e-?mail)s?([ _-]?(id|no|nr|number|code|name|ref|address)\.?)?"
    r"|subject[ _-]?(no|nr|number|code)\.?|(.*[ _-])?id|unnamed: 0"
)
FEWEST_NAMES = 10  # fewest different names; a column with fewer is a category
# as many different texts, and rows of each at most, that may be persons whatever they are called
FEWEST_REPEATED, MOST_REPEATED = 100, 12
FRACTION = re.compile(r"[-+]?\d*[.,]\d+|\d+-\d+-\d+.*")  # or a date
NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")
# other ways to write a number: with an exponent, hexadecimal, or with groups of three digits
WRITTEN = re.compile(r"\+?\d+(\.\d*)?(e[+]?\d{1,2})?|0x[0-9a-f]{1,16}")
GROUPED = re.compile(r"\d{1,3}([,_' .]\d{3})+")
THOUSANDS = re.compile(r"[,_' .]")
DASHES = re.compile(r"(?<=\w)[-\u2010-\u2015\u2212](?=\w)")
LARGEST_NAME = 2**53  # from here on, different whole numbers may be equal as floats


def remark_names(table: dict[str, NDArray]) -> None:
    """Print a NOTICE if a column looks like the names of persons, and names repeat."""
    for name, cells in table.items():
        # persons have no numbers with fractions
        rows = Counter() if cells.dtype.kind == "f" else Counter(cells.tolist())
        called = NAMES.fullmatch(name.lower()) and FEWEST_NAMES < len(rows) < rows.total()
        if called or names_repeat(rows):
            say(
                f"NOTICE: the values of column {name} repeat. If it says whose row each is, this "
                "epsilon is for one row and not for a person: give --person and --rows-per-person "
                f"(person={name!r}, rows_per_person=). {ASIDE}"
            )


def names_repeat(rows: Counter[Any]) -> bool:
    """Whether cells {cell: how many rows} may be names of persons with a few rows each: many words
    or whole numbers, of which each is there about as often as the others.
    """
    each = rows.total() / max(len(rows), 1)
    if len(rows) < FEWEST_REPEATED or not 2 <= each <= MOST_REPEATED:
        return False
    alike = max(rows.values()) <= 3 * each and list(rows.values()).count(1) <= len(rows) / 5
    return alike and not any(FRACTION.fullmatch(str(cell)) for cell in rows)


class Persons(Units):
    r"""The rows of each person; at most k of them are used.

    person           (N,) name of each row's person, as whole numbers or texts
    rows_per_person  k, public, at most 1,024

    Shapes
        lot (B,)   rows (B, k) numbers of rows   used (B, k) bool   share (B, k) float64

    Forward
        [F1]  m_p = min(n_p, k)    n_p the number of rows of person p
        [F2]  rows_pj = the j-th row of person p, in the order of the data, for j < m_p; a place
              j >= m_p is empty and repeats their first row
        [F3]  share_pj = 1 / m_p where j < m_p, else 0    of empty places

    Source
        own derivation: which rows are used does not depend on their values, so that a person's
        contribution depends on their rows alone

    Guarantees
        Persons are numbered by their sorted names, in the order of `numpy.unique`. n_p is used only
        for m_p. `len` is the number of persons.

    Raises
        DtypeError      names that are neither whole numbers nor texts, or a mixture
        ShapeError      more than one axis
        RowsError       rows without a person: missing, not finite, or a text such as "" or "NA";
                        the same number in two spellings, such as "7" and "07"

    >>> persons = Persons(["ann", "bob", "ann", "ann"], rows_per_person=2)
    >>> len(persons), persons.slots([0, 1])[0].tolist()
    (2, [[0, 2], [1, 1]])
    """

    name = "person"

    def __init__(self, person: ArrayLike, rows_per_person: int):
        count(1, MOST_ROWS, rows_per_person=rows_per_person)
        names, number = np.unique(_names(person), return_inverse=True)
        _check_spellings(names)
        held = np.bincount(number, minlength=len(names))
        self.number, self.rows_per_unit = number, rows_per_person
        self.used = np.minimum(held, rows_per_person)  # [F1]
        self._order = np.argsort(number, kind="stable")
        self._first = np.cumsum(held) - held

    def __len__(self):
        return len(self.used)

    def slots(self, lot: NDArray | list[int]) -> tuple[NDArray, NDArray]:
        """(rows, share), (B, k) each, of the persons with these numbers."""
        used, place = self.used[lot][:, None], np.arange(self.rows_per_unit)
        place = np.where(place < used, place, 0) + self._first[lot][:, None]
        share = np.where(np.arange(self.rows_per_unit) < used, 1 / used, 0.0)  # [F3]
        return self._order[place], share  # [F2]


class Means:
    r"""The mean of each unit's used rows, as one vector; computed for the units of a slice.

    Shapes
        x (N, ...), D numbers a row   means (B, D)

    Forward
        [F1]  unit_bi = sum_r share_br x_bri    over places that are not empty

    Source
        own derivation: a mean of vectors is no longer than the longest of them
    """

    def __init__(self, inputs: Inputs, units: Units, lot: NDArray):
        self.inputs, self.units, self.lot = inputs, units, lot
        self.shape = len(lot), int(np.prod(inputs.shape[1:]))

    def __getitem__(self, span: slice) -> NDArray:
        rows, share = self.units.slots(self.lot[span])
        x = self.inputs.take(rows.ravel())
        x = shared(x.reshape((x.shape[0], self.shape[1])), share)
        return x.reshape((*rows.shape, self.shape[1])).sum(axis=1)  # [F1]


def _names(person):
    """The names as an array that `numpy.unique` sorts. No message shows one of them."""
    names = one_axis(person, "person")
    found, _ = known_values(names, "person")
    if found.dtype.kind == "U":
        found = np.char.strip(found)
        missing = np.isin(found, GAPS)
    else:
        missing = ~np.isfinite(found)
    if bad := len(names) - len(found) + int(np.count_nonzero(missing)):
        raise RowsError(
            f"person: {bad} of {len(names)} rows have no person; name one for each row, or drop "
            f"those rows. {OWNER}"
        )
    whole = found.dtype.kind in "biuU"
    if not whole and not ((found == np.floor(found)) & (np.abs(found) < LARGEST_NAME)).all():
        raise DtypeError(
            "person: expected whole numbers below 2^53 or texts, got other floating-point numbers: "
            "two persons could have the same one"
        )
    return found


def _check_spellings(names):
    """Refuse two texts for the same number, because one person would count as two. Tell the owner
    of texts that differ only in case or Unicode form.
    """
    if names.dtype.kind != "U":
        return
    names = names.tolist()
    numbers = [Decimal(name) for name in names if NUMBER.fullmatch(name)]
    if twice := len(numbers) - len(set(numbers)):
        raise RowsError(
            f"person: {twice} of {len(names)} names are a number that another name is too, as 7, "
            f"7.0 and 07 are: write each person in one way. {OWNER}"
        )
    if less := len(names) - len(set(map(as_read, names))):
        say(
            f"NOTICE: person: {less} of {len(names)} names differ from another in case, Unicode "
            "form, blanks, hyphens or the way a number is written alone, and count as other "
            "persons. This line is for the owner of the data, and is in no file"
        )


def as_read(name: str) -> str | Decimal:
    """A name as a reader sees it: ignoring case, invisible characters, and kinds of blanks and
    hyphens; a number in any spelling is that number.
    """
    shown = unicodedata.normalize("NFKC", name).casefold()
    shown = "".join(each for each in shown if unicodedata.category(each) != "Cf")
    shown = " ".join(DASHES.sub(" ", shown).split())
    plain = THOUSANDS.sub("", shown) if GROUPED.fullmatch(shown) else shown.replace(",", ".")
    plain = plain.replace("_", "")
    if WRITTEN.fullmatch(plain):
        return Decimal(int(plain, 16)) if plain.startswith("0x") else Decimal(plain)
    return shown


def as_one(name: str) -> str | Decimal:
    """The form in which `Persons` compares names: a text without outer blanks, or a plain
    number.
    """
    name = name.strip()
    return Decimal(name) if NUMBER.fullmatch(name) else name
