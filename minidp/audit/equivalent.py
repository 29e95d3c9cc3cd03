"""Mutants that no measurement can tell from the original, by name, each with its reason."""
_GUARD = "a guard of the last bits: without it the bound is below the truth by less than any check resolves"
_INFERRED = "reshape takes a negative number of examples as one to infer, which is the same number"
_TWICE = "both factors change their sign, and so their product does not"
_TRUE = "one bit, of which only is asked whether it is 0"

EQUIVALENT = {
    "nn.norm.GroupNorm [F1] sign 1": _INFERRED,
    "nn.norm.LayerNorm [F1] sign 1": _INFERRED,
    "grads.Outer [V1] sign 1": _TWICE,
    "grads.OuterSum [V1] sign 1": _TWICE,
    "host.drawing.choose [F1] sign 1": _TRUE,
    "host.drawing.choose [F1] scale 1": _TRUE,
    "host.drawing.choose [F2] drop 2": "0 - s is -s modulo 2^64",
    "mechanism.pca.PrivatePCA [F4] sign 1": "a direction's sign is arbitrary, as the card says",
    "mechanism.rounding.products [F2] drop 3": _GUARD,
    "privacy.moments.MomentsAccountant [M2] drop 1": _GUARD,
    "privacy.moments.MomentsAccountant [M4] drop 1": _GUARD,
    "privacy.composition.BasicAccountant [C1] drop 1": _GUARD,
    "privacy.renyi.RenyiAccountant [M2] drop 3": _GUARD,
    "privacy.renyi.RenyiAccountant [M3] drop 1": _GUARD,
    "privacy.group_privacy.group_epsilon [C2] scale 1": "the bisection asks for the sign alone",
}
