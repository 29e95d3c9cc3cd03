"""A recurrent layer: the LSTM."""

from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from ..backend import namespace_of
from ..compiled import kernel, offer
from ..errors import ShapeError
from ..nn.dense import affine_grads
from ..nn.init import Initializer, Rng, truncated_normal
from ..nn.layer import Drawn, matmul
from ..util.validate import count, one_of

ALL, LAST = "all", "last"


def _twin(name):
    """A compiled twin of the recurrence; None where nothing is compiled."""
    from ..host import jit  # here, because it loads Numba

    if jit.OFF:
        return None
    from . import recurrent_kernel

    return getattr(recurrent_kernel, name)


TWINS = {name: (("float32",), partial(_twin, name)) for name in ("lstm_state", "lstm_gradient")}
offer(np, TWINS)


class LSTM(Drawn):
    r"""Long short-term memory over a sequence, from states of zero.

    Shapes
        x (B, T, I)   W (I + H, 4 H)   b (4 H,)   y (B, S, H), S = T   with states "last" y (B, H),
        S = 1; r = T - S   a the gates i, f, o, g, one after the other in 4 H numbers

    Forward
        [F1]  y_bsh = h_b(r + s, h), h_bth = a_bt(2 H + h) tanh(c_bth),
              c_bth = a_bt(h) a_bt(3 H + h) + [t > 0] a_bt(H + h) c_b(t - 1, h),
              a_btk = 1 / (1 + exp(-z_btk)) where k < 3 H, else tanh(z_btk),
              z_btk = b_k + sum_i x_bti W(i, k) + [t > 0] sum_j h_b(t - 1, j) W(I + j, k)

    Backward, with dy = d(sum_b loss_b)/dy
        [B1]  dx_bti = sum_k dz_btk W(i, k),
              dz_btk = da_btk a_btk (1 - a_btk) where k < 3 H, else da_btk (1 - a_btk^2),
              da_btk = dc_bt(k) a_bt(3 H + k) where k < H,
              else [t > 0] dc_bt(k - H) c_b(t - 1, k - H) where k < 2 H,
              else dh_bt(k - 2 H) tanh(c_bt(k - 2 H)) where k < 3 H,
              else dc_bt(k - 3 H) a_bt(k - 3 H),
              dc_bth = dh_bth a_bt(2 H + h) (1 - tanh(c_bth)^2) + [t < T - 1] dc_b(t + 1, h)
              a_b(t + 1, H + h),
              dh_bth = dy_b(t - r, h) + [t < T - 1] sum_k dz_b(t + 1, k) W(I + h, k)
        [P1]  dW_bnk = sum_t u_btn dz_btk, u_btn = x_bt(n) where n < I, else [t > 0]
              h_b(t - 1, n - I)    factors OuterSum(a = u, d = dz)
        [P2]  db_bk = sum_t dz_btk

    Source
        [F1]  Hochreiter, Schmidhuber 1997, Neural Computation 9; Gers, Schmidhuber, Cummins 2000,
              Neural Computation 12, "forget gates"
        [P1]  Li et al. 2021, arXiv:2110.05679, section 4

    Raises
        ShapeError       x is not (B, T, I), or T is 0
        ParameterError   states is neither "all" nor "last"
    """

    kind = "lstm"

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        rng: Rng = None,
        states: str = ALL,
        init: Initializer = truncated_normal,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ):
        """inputs I, hidden H; states: "all" for the state at each position, "last" for the last
        one; rng for `init(rng, (I + H, 4 H), dtype)`: `Streams().init` or a NumPy generator, by
        default a new one. b starts at 1 for the gate f, which keeps what c holds, and at 0.
        """
        count(1, inputs=inputs, hidden=hidden)
        one_of((ALL, LAST), states=states)
        W, b = (inputs + hidden, 4 * hidden), (4 * hidden,)
        super().__init__(name, rng, init, dtype, W=W, b=b)
        if self.params["b"].flags.writeable:  # not where its values will come from a file
            self.params["b"][hidden : 2 * hidden] = 1
        self.inputs, self.hidden, self.states = inputs, hidden, states
        self.input_shape = ("T", inputs)

    def shape_of_y(self, input_shape):
        if not input_shape[0]:
            raise ShapeError(f"{self.where}: expected at least one position, got {input_shape}")
        return (input_shape[0], self.hidden) if self.states == ALL else (self.hidden,)

    def compute_y(self, x, rng):
        """(y, (u, dz as a function of dy))."""
        xp, (B, T, I), H = namespace_of(x), x.shape, self.hidden
        W, b = self.params["W"], self.params["b"]
        u = xp.zeros((B, T, I + H), x.dtype)
        u[:, :, :I] = x
        y = xp.empty((B, T, H), x.dtype)
        kept, before = [], xp.zeros((B, H), x.dtype)
        for t in range(T):
            rows = I + H if t else I  # no state before the first
            if t:
                u[:, t, I:] = y[:, t - 1]  # [F1]
            z = u[:, t, :rows] @ W[:rows]  # [F1]
            a, c, tanh_c, y[:, t] = _state(z, b, before)  # [F1]
            kept.append((a, before, tanh_c))
            before = c
        return y[:, -1] if self.states == LAST else y, (u, _Remembered(partial(self._dz, kept)))

    def _dz(self, kept, dy):
        """dz (B, T, 4 H), from the last position to the first."""
        xp, T, (B, H) = namespace_of(dy), len(kept), kept[0][1].shape
        recurrent = self.params["W"][self.inputs :].T
        dz, dc = xp.empty((B, T, 4 * H), dy.dtype), xp.zeros((B, H), dy.dtype)
        dh = dy if self.states == LAST else dy[:, -1].copy()
        for t in reversed(range(T)):
            dc = _gradient(*kept[t], dh, dc, dz, t)
            if t:
                dh = dz[:, t] @ recurrent  # [B1]
                if self.states == ALL:
                    dh += dy[:, t - 1]  # [B1]
        return dz

    def compute_dx(self, dy, kept):
        return matmul(kept[1](dy), self.params["W"][: self.inputs].T)  # [B1]

    def compute_grads(self, dy, kept):
        u, dz = kept
        return affine_grads(u, dz(dy))  # [P1] [P2]


class _Remembered:
    """compute(dy), computed once although both dx and the gradients of the parameters need it."""

    def __init__(self, compute):
        self.compute, self.dy, self.found = compute, None, None

    def __call__(self, dy):
        if dy is not self.dy:
            self.dy, self.found = dy, self.compute(dy)
        return self.found


def _state(z, b, before):
    """(a, c, tanh c, h) of a position, from the product z and the c of the position before; z is
    overwritten.
    """
    xp, H = namespace_of(z), before.shape[1]
    a = xp.empty_like(z)
    if twin := kernel("lstm_state", z, b, before):
        c, tanh_c, h = (xp.empty_like(before) for _ in range(3))
        twin(z, b, before, a, c, tanh_c, h)
        return a, c, tanh_c, h
    z += b  # [F1]
    z[:, : 3 * H] *= 0.5
    a[...] = xp.tanh(z)  # [F1]
    a[:, : 3 * H] = (a[:, : 3 * H] + 1) * 0.5  # [F1]
    i, f, o, g = _four(a)
    c = i * g + f * before  # [F1]
    tanh_c = xp.tanh(c)  # [F1]
    return a, c, tanh_c, o * tanh_c  # [F1]


def _gradient(a, before, tanh_c, dh, dc, dz, t):
    """Compute the dc of the position before, and write position t of dz."""
    if twin := kernel("lstm_gradient", a, before, tanh_c, dh, dc, dz):
        twin(a, before, tanh_c, dh, dc, dz, t)
        return dc
    i, f, o, g = _four(a)
    di, df, do, dg = _four(dz[:, t])
    dc = dc + dh * o * (1 - tanh_c * tanh_c)  # [B1]
    di[...] = dc * g * i * (1 - i)  # [B1]
    df[...] = dc * before * f * (1 - f)  # [B1]
    do[...] = dh * tanh_c * o * (1 - o)  # [B1]
    dg[...] = dc * i * (1 - g * g)  # [B1]
    return dc * f  # [B1]


def _four(a):
    """The parts (B, H) of an array (B, 4 H)."""
    H = a.shape[1] // 4
    return [a[:, n * H : (n + 1) * H] for n in range(4)]
