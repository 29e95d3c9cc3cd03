"""Names of cards. A card keeps its name when its module moves, because reports, JSON files and
checks refer to it.
"""

CALLED = {  # {module, or function: the name that its cards keep}
    "certified.accountant": "privacy.pld.accountant",
    "certified.composition": "privacy.composition",
    "certified.gaussian": "privacy.gaussian",
    "certified.loss_kernels": "privacy.pld.loss_kernels",
    "examples": "data.examples",
    "fitting.column_look": "mechanism.columns",
    "fitting.mean": "mechanism.mean",
    "fitting.pieces": "nn.pieces",
    "layers.average_pool.AvgPool2D": "nn.pool.AvgPool2D",
    "layers.dropout": "nn.dropout",
    "layers.embedding": "nn.embedding",
    "layers.norm": "nn.norm",
    "layers.recurrent": "nn.recurrent",
    "layers.sequence_loss.SequenceCrossEntropy": "nn.loss.SequenceCrossEntropy",
    "layers.standardise.Standardise": "nn.reshape.Standardise",
    "run.attacker": "privacy.attacker",
    "run.search_cost": "privacy.search_cost",
    "run.tradeoff": "privacy.tradeoff",
    "units.shared": "data.persons.shared",
}


def card_name(module: str, qualname: str) -> str:
    """The name of the card of a class or function: card_name("minidp.layers.norm", "GroupNorm") is
    "nn.norm.GroupNorm".
    """
    module = module.removeprefix("minidp.")
    name = f"{module}.{qualname}"
    return CALLED.get(name, f"{CALLED.get(module, module)}.{qualname}")


def place_of(name: str) -> str:
    """The dotted path, below minidp, of the code of the card with this name."""
    for place, called in CALLED.items():
        if name == called or name.startswith(f"{called}."):
            return place + name.removeprefix(called)
    return name


def card_of(thing: type) -> str:
    """The name of the card of a class."""
    return card_name(thing.__module__, thing.__qualname__)
