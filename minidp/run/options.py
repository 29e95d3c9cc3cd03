"""Fields of a dataclass that are also flags of a command line; `commands.flags` reads them."""

import dataclasses
from typing import Any, get_args

from ..util.validate import one_of
from ..util.words import Named

REQUIRED = dataclasses.MISSING  # default of a field that must be given


def option(default: Any, help: str | None = None, check: Any = None, **more: Any) -> Any:
    """A field of a dataclass of options.

    default    the value if nothing is given, or REQUIRED
    help       the help text of its flag; None for a field without a flag
    check      a function of `util.validate` that `Checked` calls on the value, unless it is None
    choices    the values allowed
    names      {name of a value on the command line: the value}, instead of choices
    metavar    name of the value in the help text
    also       further names of its flag, such as ("--epsilon",)
    positional  True if the value stands on the command line without a flag
    exclusive  a name; only one of the flags with the same name may be given Other keywords are kept
    in the field's metadata.
    """
    return dataclasses.field(default=default, metadata={"help": help, "check": check, **more})


class Checked(Named):
    """Base of a dataclass of options that checks names and values. An integer may be given as 1e4,
    as in the shell. Raises ParameterError.
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]  # in subclasses
            value = getattr(self, field.name)
            kinds = get_args(field.type) or (field.type,)
            if isinstance(value, float) and int in kinds and float not in kinds:
                if value.is_integer() and abs(value) < 2**53:
                    value = int(value)
                    object.__setattr__(self, field.name, value)
            if value is None:
                continue
            if check := field.metadata.get("check"):
                check(**{field.name: value})
            if choices := field.metadata.get("choices"):
                one_of(choices, **{field.name: value})
