"""Names of layers and networks in files."""

from typing import Any

from .. import nn


def class_name(cls: type) -> str:
    """A class's name in a file: nn.NAME for a class of minidp."""
    name = f"nn.{cls.__name__}"
    return name if minidp_class(name) is cls else cls.__name__


def minidp_class(name: Any) -> type | None:
    """The layer or network of minidp that a file calls nn.NAME; None for another name."""
    short = name.removeprefix("nn.") if isinstance(name, str) else ""
    if f"nn.{short}" != name or short not in nn.__all__ or short in ("Layer", "init"):
        return None
    found = getattr(nn, short)
    return found if issubclass(found, (nn.Layer, nn.Sequential)) else None
