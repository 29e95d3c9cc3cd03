"""CUDA sources, each the twin of a definition, and the options to compile them with."""
from importlib.resources import files

from ..host import chacha


def source(name: str) -> str:
    """The text of a kernel's file."""
    return (files(__name__) / name).read_text()


def chacha_options(real: str) -> tuple[str, ...]:
    """Options for chacha.cu and arrays of "float" or "double": the kernel's name add_normals_REAL, and the constants."""
    series = {name: getattr(chacha, name) for name in ("LOG", "SIN", "COS")}
    defined = {"NAME": f"add_normals_{real}", "REAL": real, "ROUNDS": chacha.ROUNDS, "SPLIT": f"{chacha.SPLIT}LL",
               "LN2": repr(chacha.LN2), **{f"CELL_{n}": repr(2.0**-n) for n in (32, 63, 64)},
               **{name: ",".join(map(repr, values)) for name, values in series.items()},
               **{f"{name}_TERMS": len(values) for name, values in series.items()}}
    return ("--fmad=false", *(f"-D{name}={value}" for name, value in defined.items()))
