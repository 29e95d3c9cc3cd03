// Norms of gradients and of their factors, squared and added in float64: no square of a float32 overflows or vanishes there.
#include "common.cuh"

static __device__ double norm(const float* x, i64 size) {
    double total = 0;
    for (i64 p = threadIdx.x; p < size; p += blockDim.x) total += (double)x[p] * (double)x[p];
    return sqrt(block_sum(total));
}

// arrays.row_norms: of x (B, P) to norms (B,), a block for each row
extern "C" __global__ void row_norms(const float* x, double* norms, i64 size) {
    double found = norm(x + blockIdx.x * size, size);
    if (threadIdx.x == 0) norms[blockIdx.x] = found;
}

// grads.sums.sum_of_squares: a block for each example. A part has its squared norms `known`, or the
// factors a and d, whose norms are stored, or a alone; `raise` is 1 + what its roundings may have
// lost.
struct Factors { const float *a, *d; const double* known; double *a_norms, *d_norms; i64 inputs, outputs; double raise; };

extern "C" __global__ void sum_of_squares(Parts<Factors> parts, double huge, double* sq) {
    i64 b = blockIdx.x;
    double total = 0;
    for (int k = 0; k < parts.count; k++) {
        const Factors& part = parts.part[k];
        double square;
        if (part.known) {
            square = part.known[b];
        } else {
            double a = norm(part.a + b * part.inputs, part.inputs), d = part.d ? norm(part.d + b * part.outputs, part.outputs) : 1;
            square = part.d && (a > huge || d > huge) ? INFINITY : (a * d) * (a * d);
            if (part.d && threadIdx.x == 0) part.a_norms[b] = a, part.d_norms[b] = d;
        }
        total += square * part.raise;
    }
    if (threadIdx.x == 0) sq[b] = total;
}

// grads.forms.OuterSum [N1] [N3]: a (B, I, T), d (B, O, T) to upper (B,), a block for each example. Gram matrices are symmetric:
// a pair of positions counts twice. A thread's sums over u and over t are chains of up to 2 T roundings, which `lost` counts.
extern "C" __global__ void gram_norms(const float* a, const float* d, double* upper, i64 positions, i64 inputs, i64 outputs,
                                      double lost, double cancelling) {
    a += blockIdx.x * positions * inputs, d += blockIdx.x * positions * outputs;
    double sq = 0, most = 0;
    for (i64 t = 0; t < positions; t++) {
        double row = 0;
        for (i64 u = threadIdx.x; u <= t; u += blockDim.x) {
            double A = 0, D = 0;
            for (i64 i = 0; i < inputs; i++) A += (double)a[i * positions + t] * (double)a[i * positions + u];
            for (i64 o = 0; o < outputs; o++) D += (double)d[o * positions + t] * (double)d[o * positions + u];
            row += u < t ? 2 * (A * D) : A * D;
            if (u == t) most += sqrt(A) * sqrt(D);
        }
        sq += row;
    }
    sq = block_sum(sq), most = block_sum(most);
    if (threadIdx.x == 0) {
        double raised = (sq < 0 ? 0 : sq) + lost * (most * most), least = (most / cancelling) * (most / cancelling);
        upper[blockIdx.x] = raised <= least ? least : raised;  // NaN stays
    }
}

// mechanism.clip.clip_weights
extern "C" __global__ void clip_weights(const double* sq, double clip_norm, double margin, double* weights, i64 n) {
    for EACH(b, n) {
        double ratio = sqrt(sq[b]) * (1 + margin) / clip_norm;
        weights[b] = isfinite(sq[b]) ? 1 / (ratio <= 1 ? 1 : ratio) : 0;
    }
}

// arrays.outer_products: a (B, I), d (B, O) to g (B, I, O) and its squared norms (B,) in one pass, a block for each example
extern "C" __global__ void form_outer(const float* a, const float* d, float* g, double* sq, i64 inputs, i64 outputs) {
    a += blockIdx.x * inputs, d += blockIdx.x * outputs, g += blockIdx.x * inputs * outputs;
    double total = 0;
    i64 i = threadIdx.x / outputs, o = threadIdx.x % outputs, down = blockDim.x / outputs, right = blockDim.x % outputs;
    for (i64 p = threadIdx.x; p < inputs * outputs; p += blockDim.x) {  // p = i outputs + o, without a division each time
        float value = a[i] * d[o];
        g[p] = value;
        total += (double)value * (double)value;
        i += down, o += right;
        if (o >= outputs) i++, o -= outputs;
    }
    total = block_sum(total);
    if (threadIdx.x == 0) sq[blockIdx.x] = total;
}
