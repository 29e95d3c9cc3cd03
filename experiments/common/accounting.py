"""The accountants by the names that flags and results use."""
from minidp import privacy
from minidp.errors import UnsupportedEventError
from minidp.privacy import Bound

CLASSES = {
    "moments": "MomentsAccountant",
    "renyi": "RenyiAccountant",
    "loss_distribution": "LossDistributionAccountant",
    "gaussian_clt": "GaussianAccountant",
    "advanced": "AdvancedAccountant",
    "basic": "BasicAccountant",
}
ACCOUNTANTS = {name: cls for name, cls in CLASSES.items() if cls in privacy.__all__}
UNKNOWN = Bound(None, None, None)


def make_accountant(name, relation):
    """The accountant of that name under a neighbouring relation."""
    return getattr(privacy, ACCOUNTANTS[name])(relation)


def every_epsilon(ledger, delta):
    """{name: {lower, estimate, upper, kind}} by every accountant; null where one has no theorem for an event."""
    found = {}
    for name in ACCOUNTANTS:
        accountant = make_accountant(name, ledger.relation)
        try:
            bound = accountant.epsilon(ledger, delta)
        except UnsupportedEventError:
            bound = UNKNOWN
        found[name] = {**bound.to_json(), "kind": accountant.kind}
    return found
