"""A recurrent layer: the LSTM."""

from functools import partial

from numpy.typing import DTypeLike

from ..backend import namespace_of
from ..exact.elementwise import tanh
from ..util.validate import count, one_of
from .dense import affine_grads
from .init import Initializer, Rng, truncated_normal
from .layer import Drawn, Remembered

ALL, LAST = "all", "last"


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
        ShapeError       x is not (B, T, I)
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
        return (input_shape[0], self.hidden) if self.states == ALL else (self.hidden,)

    def compute_y(self, x, rng):
        """(y, (u, dz as a function of dy)); arrays but u have their positions first."""
        xp, (B, T, I), H = namespace_of(x), x.shape, self.hidden
        W, b = self.params["W"], self.params["b"]
        z = self.matmul(x.transpose(1, 0, 2), W[:I]) + b  # [F1]
        u = xp.zeros((B, T, I + H), x.dtype)
        u[:, :, :I] = x
        a = xp.empty((T, B, 4 * H), x.dtype)
        c = xp.zeros((T + 1, B, H), x.dtype)
        tanh_c, h = xp.empty((T, B, H), x.dtype), xp.zeros((T, B, H), x.dtype)
        half = xp.full(4 * H, 0.5, x.dtype)
        half[3 * H :] = 1
        for t in range(T):
            if t:
                u[:, t, I:] = h[t - 1]
                z[t] += self.matmul(h[t - 1], W[I:])  # [F1]
            a[t] = tanh(z[t] * half)  # [F1]
            a[t, :, : 3 * H] = (a[t, :, : 3 * H] + 1) * half[0]  # [F1]
            i, f, o, g = self._four(a[t])
            c[t + 1] = i * g + f * c[t]  # [F1]
            tanh_c[t] = tanh(c[t + 1])  # [F1]
            h[t] = o * tanh_c[t]  # [F1]
        y = h[-1] if self.states == LAST else xp.ascontiguousarray(h.transpose(1, 0, 2))
        return y, (u, Remembered(partial(self._dz, a, c, tanh_c)))

    def _four(self, a):
        """The parts (B, H) of an array (B, 4 H)."""
        H = self.hidden
        return [a[:, n * H : (n + 1) * H] for n in range(4)]

    def _dz(self, a, c, tanh_c, dy):
        """dz (B, T, 4 H), from the last position to the first."""
        xp, (T, B, _), H = namespace_of(dy), a.shape, self.hidden
        recurrent = self.params["W"][self.inputs :].T
        dz = xp.empty((B, T, 4 * H), a.dtype)
        dh, dc = dy if self.states == LAST else dy[:, -1], xp.zeros((B, H), a.dtype)
        for t in reversed(range(T)):
            i, f, o, g = self._four(a[t])
            dc = dc + dh * o * (1 - tanh_c[t] * tanh_c[t])  # [B1]
            d = xp.empty((B, 4 * H), a.dtype)
            di, df, do, dg = self._four(d)
            di[...] = dc * g * i * (1 - i)  # [B1]
            df[...] = dc * c[t] * f * (1 - f)  # [B1]
            do[...] = dh * tanh_c[t] * o * (1 - o)  # [B1]
            dg[...] = dc * i * (1 - g * g)  # [B1]
            dz[:, t] = d
            if t:
                dc = dc * f  # [B1]
                dh = self.matmul(d, recurrent)  # [B1]
                if self.states == ALL:
                    dh += dy[:, t - 1]  # [B1]
        return dz

    def compute_dx(self, dy, kept):
        return self.matmul(kept[1](dy), self.params["W"][: self.inputs].T)  # [B1]

    def compute_grads(self, dy, kept):
        u, dz = kept
        return affine_grads(u, dz(dy))  # [P1] [P2]
