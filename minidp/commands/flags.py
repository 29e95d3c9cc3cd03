"""Shared code of all command lines: strict flags, flags from a dataclass, and user errors in one
line.

@dataclass(frozen=True)
class Config:
    lot_size: int = option(600, "examples per lot, on average")      # of minidp.run.options
    steps: int | None = option(None, "lots to process", exclusive="length")
    quiet: bool = option(False, "no progress bar")

config = parse(Config, description="...")          # --lot-size 300 --quiet
"""

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace, UnionType
from typing import Any, NoReturn, get_args

from ..errors import MinidpError
from ..ranks import SOLO, current
from ..util.notices import Steady
from ..util.words import WORDS


class Parser(argparse.ArgumentParser):
    """An argument parser that takes no abbreviations. Flags that it cannot read end it with one
    line and status 2.
    """

    def __init__(self, **named: Any):
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, formatter_class=formatter, **named)
        # of argparse: so that -1,1 and -1e-5 and -inf are values, not flags
        self._negative_number_matcher = re.compile(r"-([\d.]|inf)")

    def error(self, message: str) -> NoReturn:
        unknown = message.partition("unrecognized arguments: ")[2]
        for flag in re.findall(r"(?<!\S)--(\S+)", unknown):
            if said := WORDS.get(flag.replace("-", "_")):
                message += f"; --{flag}: " + _with_flags(said, r"\w+")
        print(f"error: {message}; --help lists the flags", file=sys.stderr)
        sys.exit(2)


class Once(argparse.Action):
    """A flag that may be given only once, even if it has two names."""

    def __call__(self, parser, namespace, values, option_string=None):
        if getattr(namespace, self.dest) != self.default:
            raise argparse.ArgumentError(self, "given twice; give it once")
        setattr(namespace, self.dest, values)


def number(text: str) -> float:
    """A flag's number: 4, 1e-5 or 1/60."""
    try:
        numerator, _, denominator = text.partition("/")
        return float(numerator) / float(denominator or 1)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(
            f"expected a number such as 4, 1e-5 or 1/60, got {text!r:.80}"
        ) from None


def whole_number(text: str) -> int:
    """A flag's integer: 10000, 10,000 or 1e4."""
    digits = text.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", text) else text
    with suppress(ValueError):
        return int(digits)
    with suppress(argparse.ArgumentTypeError):
        if (value := number(text)).is_integer():
            return int(value)
    raise argparse.ArgumentTypeError(
        f"expected a whole number such as 10000 or 1e4, got {text!r:.80}"
    )


def numbers(text: str) -> tuple[float, ...]:
    """A flag's numbers: 4,4."""
    return tuple(map(number, text.split(",")))


def whole_numbers(text: str) -> tuple[int, ...]:
    """A flag's integers: 64,32."""
    return tuple(map(whole_number, text.split(",")))


def pair(text: str) -> tuple[float, ...]:
    """A flag's LOW,HIGH."""
    found = numbers(text)
    if len(found) != 2:
        raise argparse.ArgumentTypeError(
            f"expected LOW,HIGH: two numbers, such as 0,255, got {text!r:.80}; for bounds of each "
            "input by itself use Python: minidp.fit(x, y, bounds=(low, high))"
        )
    return found


def texts(text: str) -> tuple[str, ...]:
    """A flag's A,B,C."""
    return tuple(name.strip() for name in text.split(","))


READERS = {
    int: whole_number,
    float: number,
    tuple[int, ...]: whole_numbers,
    tuple[float, ...]: numbers,
    tuple[str, ...]: texts,
    tuple[float, float]: pair,
    tuple[Any, Any]: pair,
}


def parse(config, argv=None, *, prog=None, description=None):
    """An instance of the dataclass `config`, with values of the command line in place of its
    defaults.

    Abbreviated or unknown flags and unreadable values print one line and exit with 2. Values that
    the dataclass refuses raise its error.
    """
    parser = Parser(prog=prog, description=description)
    add_flags(parser, config)
    given = vars(parser.parse_args(argv))
    return with_flags(given, lambda: config(**given))


def add_flags(parser, config):
    """Add the flags of the fields of a dataclass that have a help text.

    A field noise_multiplier becomes --noise-multiplier. A bool is a switch: --quiet if its default
    is False, --no-quiet if it is True. A field of type `T | None` is read as T, and None if it is
    not given.
    """
    # imported here because it loads much that `minidp --help` does not need
    from dataclasses import MISSING, fields

    groups = {}
    for field in fields(config):
        if field.metadata.get("help") is None:
            continue
        name = field.metadata.get("exclusive")
        if name and name not in groups:
            groups[name] = parser.add_mutually_exclusive_group()
        _add_flag(groups[name] if name else parser, field, field.default is MISSING)


def _named(names, text):
    """The flag's value that is named `text`, from names {name: value}."""
    if text not in (*names, *names.values()):
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(names)}, got {text!r:.80}")
    return names.get(text, text)


def _add_flag(parser, field, required):
    about = field.metadata
    help = about["help"].replace("%", "%%")
    flag = field.name.replace("_", "-")
    if field.type is bool:
        flag = f"no-{flag}" if field.default else flag
        action = "store_false" if field.default else "store_true"
        parser.add_argument(f"--{flag}", dest=field.name, action=action, help=help)
        return
    if about.get("positional"):
        kind = None if required else "?"
        parser.add_argument(field.name, nargs=kind, metavar=about["metavar"], help=help)
        return
    default = None if required else field.default
    if default not in (None, ()) and "(default: " not in help:
        help += f" (default: {default})"
    kind = get_args(field.type)[0] if isinstance(field.type, UnionType) else field.type
    read, metavar = READERS.get(kind, str), about.get("metavar")
    if names := about.get("names"):
        read, metavar = partial(_named, names), f"{{{','.join(names)}}}"
    parser.add_argument(
        f"--{flag}",
        *about.get("also", ()),
        action=Once if "also" in about else "store",
        type=read,
        default=default,
        required=required,
        choices=about.get("choices"),
        metavar=metavar,
        help=help,
    )


def with_flags(names, function):
    """Call `function`; its errors name flags instead of Python's arguments: --lot-size 0 instead of
    lot_size=0.
    """
    try:
        return function()
    except MinidpError as error:
        text = str(error).replace("=(low, high)", "=LOW,HIGH")
        if "target_epsilon" in names:
            text = re.sub(r"\bepsilon=", "target_epsilon=", text)
        raise type(error)(_with_flags(text, "|".join(names))) from error


def _with_flags(text, names):
    """The text in which flags replace the arguments of these names."""
    return re.sub(rf"\b({names})=(?=(.?))", _as_flag, text)


def _as_flag(found):
    name, after = found.groups()
    return f"--{name.replace('_', '-')}{'' if after in ' ,;:)' else ' '}"


@contextmanager
def user_errors() -> Iterator[SimpleNamespace]:
    """Context manager for command lines: report user errors on one line and exit with status 2.

    User errors are minidp's own, those of the operating system (a path that cannot be read or
    written, a full disk), and missing or incompatible libraries. Any other exception is a fault of
    the program and keeps its traceback. On several ranks only rank 0 prints. An interrupt exits
    with 130 and prints one line, which says what was saved if the block sets `saved` of the yielded
    object.
    """
    note = SimpleNamespace(saved="")
    ranks = SOLO
    try:
        ranks = current()
        with ranks.one_voice():
            yield note
        return
    except (MinidpError, OSError, MemoryError) as error:
        line, status = error_line(error), 2
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "minidp":
            raise
        line, status = error_line(error), 2
    except KeyboardInterrupt as error:
        line, status = (
            str(error) or (f"\ninterrupted; {note.saved}" if note.saved else "interrupted"),
            130,
        )
    ranks.failing(line)
    with ranks.one_voice():
        print(line, file=Steady(sys.stderr))
    sys.exit(status)


def error_line(error: BaseException) -> str:
    """An error as one line for a command line, without the operating system's error number."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        library = error.name.partition(".")[0]
        package = {"sklearn": "scikit-learn"}.get(library, library)
        text = f"{library} is not installed: pip install {package}, or install minidp again"
    notes = getattr(error, "__notes__", ())
    return f"error: {' '.join('; '.join([text, *notes]).split())}"
