"""What the accountants that add up log moments share: orders, composition and conversion."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..util.validate import in_range
from .accountant import Accountant, Bound
from .conversion import tail_bound_delta, tail_bound_epsilon
from .events import NeighbouringRelation

FAR_ORDERS = (72, *(k << bits for bits in range(4, 8) for k in range(5, 9)))  # 72 .. 1024


class OrdersAccountant(Accountant):
    """Base of the accountants whose curve is the log moments alpha(lambda) at some orders.

    orders  at least one number, order = `least_order` + lambda, lambda in (0, 1024]; by default
            `default_orders`
    """

    least_order = 0
    default_orders: tuple[float, ...] = ()
    conversions = tail_bound_epsilon, tail_bound_delta  # from alpha, lambda and delta, or epsilon

    def __init__(
        self,
        relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE,
        orders: Iterable[float] | None = None,
    ):
        super().__init__(relation)
        chosen = self.default_orders if orders is None else orders
        self.orders = tuple(sorted({float(order) for order in chosen}))
        if not self.orders:
            raise ParameterError("expected orders to hold at least one order, got none")
        for order in self.orders:
            in_range(self.least_order, self.least_order + 1024, open_low=True, order=order)

        self.lambdas: NDArray = np.array(self.orders) - self.least_order  # (K,)

    def cost_curve(self, event, grid):
        """alpha(lambda) of one primitive event, (K,), rounded up; the grid is the orders."""
        raise NotImplementedError

    def epsilon_of(self, parts, delta):
        total = self.composed(parts, self.orders)
        epsilon = self.conversions[0](total, self.lambdas, delta)
        return Bound(None, epsilon, epsilon * (1 + 1e-14))

    def delta_of(self, parts, epsilon):
        total = self.composed(parts, self.orders)
        delta = self.conversions[1](total, self.lambdas, epsilon)
        return Bound(None, delta, delta)
