"""Gram matrices and quadratic forms, in sums whose chains of roundings are short and known."""
RUN = 512  # squares of an explicit gradient that are added in its own dtype; the rounding bound [N2] of grads counts on it
GRAM_RUN, GRAM_RUNS = 32, 8  # least number of columns of a float64 Gram product per run; most runs
GRAM_RUN_SINGLE = 512  # in float32, where speed counts for more than the last digit


def gram(factor):
    """(B, T, T) from (B, T, N): the inner products of the rows, a run of columns at a time."""
    total, run = None, _gram_run(factor.shape[2], factor)
    for start in range(0, factor.shape[2], run):
        columns = factor[:, :, start : start + run]
        products = columns @ columns.transpose(0, 2, 1)
        if total is None:
            total = products
        else:
            total += products
    return total


def _gram_run(n, array):
    return max(GRAM_RUN_SINGLE if array.itemsize == 4 else GRAM_RUN, -(-n // GRAM_RUNS))


def gram_chain(n, array):
    """Roundings of a sum of n products in `gram`, the longest chain of them."""
    run = _gram_run(n, array)
    return min(n, run) + (n - 1) // run


def sum_in_pairs(terms):
    """(B,) sums over the last axis of (B, N), which is used up: the second half onto the first, again and again."""
    n = terms.shape[1]
    while n > 1:
        half = (n + 1) // 2
        terms[:, : n - half] += terms[:, half:n]
        n = half
    return terms[:, 0].copy()


def pair_levels(n):
    """Additions that a number goes through where n are summed by `sum_in_pairs`."""
    return (n - 1).bit_length()


def quadratic(v, matrix):
    """(B,) of sum_tu v_t matrix_tu v_u."""
    return (v * (matrix @ v[:, :, None])[:, :, 0]).sum(axis=1)
