"""Causal attention: each position looks at itself and at those before it."""

from functools import partial
from math import sqrt

from numpy.typing import DTypeLike

from ..backend import namespace_of
from ..errors import ParameterError
from ..exact.arithmetic import in_pairs
from ..exact.elementwise import exp
from ..util.validate import count
from .dense import affine_grads
from .init import Initializer, Rng, truncated_normal
from .layer import Drawn, Remembered

BEHIND = -1e30  # a score whose exponential is 0, in float32 too


class CausalAttention(Drawn):
    r"""Scaled dot products of several heads over the positions up to each one's own.

    Shapes
        x, y (B, T, M)   W (M, 3 M), c (3 M,) of queries, keys and values   V (M, M), b (M,) of the
        output   D = M / heads numbers of a head, neighbours among the M

    Forward
        [F1]  y_bto = sum_m a_btm V_mo + b_o, a_btm = sum_u p_bmtu z_bu(2 M + m),
              p_bmtu = [u <= t] exp(s_bmtu) / sum_r [r <= t] exp(s_bmtr),
              s_bmtu = sum_n [floor(n / D) = floor(m / D)] z_bt(n) z_bu(M + n) / sqrt(D),
              z_btk = sum_i x_bti W_ik + c_k

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bti = sum_k dz_btk W_ik,
              dz_btk = dq_btk where k < M, else dk_bt(k - M) where k < 2 M, else dv_bt(k - 2 M),
              dv_bum = sum_t p_bmtu da_btm, da_btm = sum_o dy_bto V_mo,
              dq_btm = sum_u e_bmtu z_bu(M + m) / sqrt(D), dk_bum = sum_t e_bmtu z_bt(m) / sqrt(D),
              e_bmtu = p_bmtu (g_bmtu - sum_r p_bmtr g_bmtr),
              g_bmtu = sum_n [floor(n / D) = floor(m / D)] da_btn z_bu(2 M + n)
        [P1]  dW_bik = sum_t x_bti dz_btk    factors OuterSum(a = x, d = dz)
        [P2]  dc_bk  = sum_t dz_btk
        [P3]  dV_bmo = sum_t a_btm dy_bto    factors OuterSum(a = a, d = dy)
        [P4]  db_bo  = sum_t dy_bto

    Source
        [F1]  Vaswani et al. 2017, arXiv:1706.03762, section 3.2
        [P1]  Li et al. 2021, arXiv:2110.05679, section 4

    Raises
        ShapeError       x is not (B, T, M)
        ParameterError   heads do not divide the width
    """

    kind = "attention"

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        rng: Rng = None,
        init: Initializer = truncated_normal,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ):
        """width M, heads dividing M; rng for `init(rng, shape, dtype)` of W and V: `Streams().init`
        or a NumPy generator, by default a new one; c and b start at zero.
        """
        count(1, width=width, heads=heads)
        if width % heads:
            raise ParameterError(f"expected heads={heads} to divide width={width}")
        shapes = {"W": (width, 3 * width), "c": (3 * width,), "V": (width, width), "b": (width,)}
        super().__init__(name, rng, init, dtype, **shapes)
        self.width, self.heads, self.input_shape = width, heads, ("T", width)

    def compute_y(self, x, rng):
        """(y, (x, a, dz as a function of dy)); in between (B heads, T, D), and (.., T, T)."""
        xp, positions = namespace_of(x), x.shape[1]
        z = self.matmul(x, self.params["W"]) + self.params["c"]  # [F1]
        q, k, v = (self._split(z, part) for part in range(3))
        q = q / x.dtype.type(sqrt(q.shape[2]))  # [F1]
        scores = self.products(_turned(q), _turned(k))  # [F1]
        before = xp.arange(positions) <= xp.arange(positions)[:, None]
        scores = xp.where(before, scores, x.dtype.type(BEHIND))  # [F1]
        s = exp(scores - scores.max(axis=2, keepdims=True))
        p = s / in_pairs(s, 2, keepdims=True)  # [F1]
        a = self._joined(self.products(_turned(p), v))  # [F1]
        y = self.matmul(a, self.params["V"]) + self.params["b"]  # [F1]
        return y, (x, a, Remembered(partial(self._dz, q, k, v, p)))

    def _dz(self, q, k, v, p, dy):
        """dz (B, T, 3 M); q was divided by sqrt(D)."""
        da = self._split(self.matmul(dy, self.params["V"].T))  # [B1]
        g = self.products(_turned(da), _turned(v))  # [B1]
        e = p * (g - in_pairs(p * g, 2, keepdims=True))  # [B1]
        dq = self.products(_turned(e), k) / dy.dtype.type(sqrt(q.shape[2]))  # [B1]
        dk = self.products(e, q)  # [B1]
        dv = self.products(p, da)  # [B1]
        return namespace_of(dy).concatenate([self._joined(each) for each in (dq, dk, dv)], axis=2)

    def compute_dx(self, dy, kept):
        return self.matmul(kept[2](dy), self.params["W"].T)  # [B1]

    def compute_grads(self, dy, kept):
        x, a, dz = kept
        first = affine_grads(x, dz(dy))  # [P1] [P2]
        last = affine_grads(a, dy)  # [P3] [P4]
        return {"W": first["W"], "c": first["b"], "V": last["W"], "b": last["b"]}

    def _split(self, z, part=0):
        """(B heads, T, D) of a part of z (B, T, parts M)."""
        (b, t, _), m = z.shape, self.width
        heads = z[:, :, part * m : (part + 1) * m].reshape((b, t, self.heads, m // self.heads))
        return heads.transpose(0, 2, 1, 3).reshape((b * self.heads, t, m // self.heads))

    def _joined(self, each):
        """(B, T, M) of (B heads, T, D)."""
        n, t, d = each.shape
        heads = each.reshape((n // self.heads, self.heads, t, d))
        return heads.transpose(0, 2, 1, 3).reshape((n // self.heads, t, self.width))


def _turned(each):
    return each.transpose(0, 2, 1)
