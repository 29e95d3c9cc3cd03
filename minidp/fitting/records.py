"""The entries of a fit in config.json and in the privacy statement."""

from dataclasses import asdict, fields
from typing import Any

from ..util.text import listed
from .outputs import Head
from .settings import Request, Settings

OF_LABEL = ("classes", "target_bounds")


def config_of(request: Request, data: Any, head: Head, network: Any) -> dict[str, Any]:
    """Entries of config.json in addition to the plan; a resumed run must have the same."""
    settings = request.settings
    recorded = [field.name for field in fields(Settings) if "recorded" in field.metadata]
    return {
        **{name: getattr(settings, name) for name in recorded},
        "scale": head.scale,
        "schema": head.schema,
        "bounds": None if head.bounds is None else [each.tolist() for each in head.bounds],
        "classes": None if data.labels is None else data.labels.tolist(),
        "target_bounds": data.target_bounds,
        "seed": request.seed,
        "person": data.person,
        "weighted": data.weight is not None,
        "shared_ledger": request.ledger is not None,
        "public": None if request.test is None else "test",
        "shapes": {".".join(key): array.shape for key, array in network.params.items()},
    }


def public_facts(request: Request) -> list[str]:
    """Lines for the statement on facts that the caller declared public."""
    settings = request.settings
    units = "rows" if settings.rows_per_person is None else "persons"
    names = [
        field.metadata["public"].format(units=units)
        for field in fields(Settings)
        if "public" in field.metadata
        and getattr(settings, field.name) is not None
        # the line on a schema includes its label
        and not (settings.schema and settings.schema.label and field.name in OF_LABEL)
    ]
    lines = [f"{name}, as the caller gave them" for name in names]
    if settings.schema is not None:
        line = "the schema; the owner says that it comes from public knowledge"
        if read := settings.schema.from_data:
            line += f", except for the columns {listed(read)}"
        lines.append(line)
    return lines


def choices_of(
    choice: Any, given: dict[str, Any], scaling: dict[str, str], request: Request
) -> dict[str, str]:
    """{what: how it was chosen} for the statement."""
    network = "the caller's"
    if request.settings.network is None:
        sizes = ", ".join(map(str, request.settings.hidden_sizes))
        network = f"hidden layers of {sizes}" if sizes else "no hidden layer"
    found = {"network": network, **scaling}
    rule = {name: value for name, value in asdict(choice).items() if name not in given}
    for who, values in (
        ("by the rule of minidp.fitting.defaults, from public numbers", rule),
        ("by the caller (a choice made by looking at the data is not covered)", given),
    ):
        if values:
            found[who] = ", ".join(
                f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in values.items()
            )
    if request.ledger is not None:
        found["among fits that share a ledger"] = (
            "this statement is for one fit by itself; that ledger has their sum, and choosing "
            "among them by scores on private rows is not covered"
        )
    return found
