"""Fields of a dataclass that are also flags of a command line; `commands.flags` reads them."""

import dataclasses
from typing import Any, get_args

from .validate import one_of
from .words import Named

REQUIRED = dataclasses.MISSING  # the default of a field that must be given


def option(default: Any, help: str | None = None, check: Any = None, **more: Any) -> Any:
    """A field of a dataclass of options.

    default    the value if nothing is given, or REQUIRED
    help       the help text of its flag; None for a field without a flag
    check      a function of `util.validate` that `Checked` calls on the value, unless it is None
    choices    the values allowed
    names      {what the command line calls a value: the value}, in place of choices
    metavar    what the help text calls the value
    also       second names of its flag, such as ("--epsilon",)
    positional  whether the command line has the value by itself, without a flag's name
    exclusive  of the fields with the same name here, only one flag may be given
    More keywords stand in the field's metadata, for whom they concern.
    """
    return dataclasses.field(default=default, metadata={"help": help, "check": check, **more})


class Checked(Named):
    """Base of a dataclass of options whose names and values are checked; where an integer belongs,
    1e4 is 10000, as in the shell. Raises ParameterError.
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]  # of its subclasses
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
