"""What the rest of the package gives to the files that carry the guarantee, loaded at first use.

`minidp/__init__.py` lists it. Those files import nothing of it, so that they can be read alone.
"""

from typing import Any


def load(name: str) -> Any:
    """What is called `name`; `minidp/__init__.py` puts its own function here."""
    raise AttributeError(name)


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(name)
    return value
