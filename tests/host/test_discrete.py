"""Discrete Gaussian numbers: their law, its distance from the rounded Gaussian, and no branch on
what is drawn.
"""

import ast
import inspect
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidp.audit.checks.drawing import alias_weights
from minidp.errors import ParameterError
from minidp.host import discrete, drawing


@pytest.mark.parametrize("exponent", [32, 32.999, 33, 36, 36.001, 39.5, 42])
def test_the_distance_is_what_the_guarantee_needs(exponent):
    assert 2.0**-65 < discrete.total_variation(2.0**exponent) <= 2.0**-62.5


@given(std=st.floats(2.0**28, 2.0**42))
def test_plans_have_the_variance_and_are_smooth_and_small_enough(std):
    parts, scale, variance, cells = discrete.plan(std)
    assert variance * sum(scale ** (2 * j) for j in range(parts)) == Fraction(std) ** 2
    assert (
        variance >= 4 * scale**2
        and 4 * scale**2 > 0.95 * variance
        and 100 * variance < cells**2 <= 2**32
    )


def gaussian_masses(variance, places):
    """Of a discrete Gaussian at some places, not normalised; in mpmath."""
    half = mpmath.mpf(variance.denominator) / (2 * variance.numerator)
    return np.array([mpmath.exp(-half * x * x) for x in places])


@pytest.mark.parametrize("variance", [Fraction(9, 4), Fraction(4)])
def test_distances_are_within_their_bounds_where_all_values_can_be_listed(variance):
    """All values of X + 2 Y, X and Y from -20 to 20, from small tables."""

    def law(masses):
        return masses / masses.sum()

    def summed(one):
        doubled = np.zeros(81, object)
        doubled[::2] = one
        return np.convolve(one, doubled)

    def distance(one, other):
        return abs(one - other).sum() / 2

    plan, x = discrete.Plan(2, 2, variance, 16), np.arange(-20, 21)
    with mpmath.workdps(50):
        std = mpmath.sqrt(float(5 * variance))
        weights = np.array(alias_weights(discrete.alias_table(plan)) + 5 * [0])
        drawn = law(weights[abs(x)] * mpmath.mpf(1) / (1 + (x != 0)))
        whole = law(gaussian_masses(variance, x))
        cut = law(whole * (abs(x) < 16))
        gaussian = law(gaussian_masses(5 * variance, range(-60, 61)))
        rounded = np.diff([mpmath.ncdf((k - 0.5) / std) for k in range(-60, 62)])
        bounds = discrete.distances(float(std), plan)
        assert 2 * distance(drawn, cut) <= bounds[0]
        assert 2 * distance(cut, whole) <= bounds[1]
        assert distance(summed(whole), gaussian) <= bounds[2]
        assert distance(gaussian, rounded) <= bounds[3]
        assert distance(summed(drawn), rounded) <= sum(bounds)


@pytest.mark.parametrize("std", [2.0**27, 2.0**42.01, float("nan")])
def test_no_distance_is_claimed_where_none_is_proved(std):
    for function in (discrete.total_variation, discrete.table):
        with pytest.raises(ParameterError, match="expected std="):
            function(std)


def branches(source, drawn):
    """The conditions and bounds of loops that depend on what is drawn, beginning with the names
    `drawn`.
    """
    tree, size = ast.parse(re.sub(r"\w+\.(size|shape)", "public", source)), 0

    def names(node):
        return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}

    def written(target):  # of x[i], x
        parts = getattr(target, "elts", [])
        return {name for part in parts for name in written(part)} or names(
            getattr(target, "value", target)
        )

    while size < len(drawn):  # whatever is computed from it
        size = len(drawn)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AugAssign)) and names(node.value) & drawn:
                drawn = drawn.union(
                    *map(written, node.targets if isinstance(node, ast.Assign) else [node.target])
                )
    conditions = [
        getattr(node, "test", getattr(node, "iter", node))
        for node in ast.walk(tree)
        if isinstance(
            node, (ast.If, ast.IfExp, ast.While, ast.Assert, ast.For, ast.comprehension, ast.BoolOp)
        )
    ]
    return [ast.unparse(condition) for condition in conditions if names(condition) & drawn]


def test_no_branch_depends_on_what_is_drawn():
    kernel, definition = (
        inspect.getsource(each) for each in (drawing.add_integers.py_func, discrete.integers)
    )
    assert branches(kernel, {"x"}) == branches(definition, {"words"}) == []
    line = "value = other + (int64(cell) - other) * int64(u < thresholds[cell])"
    branching = kernel.replace(line, "value = cell if u < thresholds[cell] else other")
    assert branches(branching, {"x"}) == ["u < thresholds[cell]"]
