"""The accountants that a run is read by, and how their figures are written."""
from minidp.privacy.catalogue import all_bounds

ACCOUNTANTS = ("moments", "renyi", "loss_distribution", "gaussian_clt", "advanced", "basic")


def every_epsilon(ledger, delta):
    """{name: {lower, estimate, upper, kind, note}}; null where an accountant has no theorem for an event."""
    return {name: {**bound.to_json(), "kind": kind, "note": note}
            for name, (bound, kind, note) in all_bounds(ledger, ACCOUNTANTS, delta=delta).items()}
