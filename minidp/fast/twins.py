"""What this ring offers to `compiled`: each twin by the name of its definition, with the dtypes
that it takes.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from ..compiled import Twins

Names = Mapping[tuple[str, tuple[str, ...]], str]
SINGLE, DOUBLE = ("float32",), ("float64",)
ON_THE_HOST: Names = {  # (module, dtypes): names
    ("elementwise", SINGLE): "relu relu_gradient softmax_cross_entropy",
    ("kernels", SINGLE): "row_norms gram_norms add_weighted add_blocks",
    ("images", SINGLE): "short_runs fold pool pool_gradient",
    ("products", SINGLE): "add_products",
    ("drawing", ("uint64",)): "words choose",
    ("drawing", SINGLE + DOUBLE): "add_normals",
}
ON_A_DEVICE: Names = {
    ("device", SINGLE): (
        "relu relu_gradient softmax_cross_entropy add_bias gather patches fold_image pool "
        "pool_gradient_image row_norms weigh add_weighted add_all"
    ),
    ("device", DOUBLE): "add_normals release",  # noise is added to float64 alone
}
JOINED: Names = {  # array code for a device, which asks for each kernel itself
    ("at_once", SINGLE): "add_at_once",
    ("flat", SINGLE + DOUBLE): "flattened",
    ("products", SINGLE): "add_products",
}


def _offered(names: Names, get: Callable[..., Any]) -> Twins:
    """{name: (dtypes, function that gives the twin)}."""
    return {
        name: (dtypes, partial(get, module, name))
        for (module, dtypes), listed in names.items()
        for name in listed.split()
    }


def _of_device(module, name):
    return getattr(import_module(f".{module}", __package__), name)


def _of_host(module, name):
    """The twin; None if nothing is compiled."""
    from ..host import jit  # here, because it loads Numba

    return None if jit.OFF else _of_device(module, name)


HOST = _offered(ON_THE_HOST, _of_host)
KERNELS = _offered(ON_A_DEVICE, _of_device)
DEVICE = {**KERNELS, **_offered(JOINED, _of_device)}


def without(left_out: Collection[str]) -> Twins:
    """The twins to offer on a device, without those whose kernels are not right there."""
    return {name: twin for name, twin in DEVICE.items() if name not in left_out}
