// Norms of gradients, clip weights, and weighted sums in float64: no square of a float32 overflows or vanishes there.
#include "common.cuh"

// The sum of all threads' values, for each of them; a block has a power of two of threads, all of which come here.
static __device__ double block_sum(double value) {
    __shared__ double sums[1024];
    __syncthreads();  // the sum before may still be read
    sums[threadIdx.x] = value;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

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

// The gradients of one parameter: factors a (B, I) and d (B, O) of an Outer, or g = a (B, I) of an Explicit, or positions
// a (B, R, I) of PositionSums whose sums over R are written to A (B, I), or their squared norms `known` (B,). `raise` is 1 + what roundings may have lost. A (K, I, R) and D (K, R, O) of an Outer take its factors, of
// which the shorter one is multiplied by the weights, in K blocks of R examples; rows of weight 0 and those behind the last
// are zero in both.
struct Gradient { const float *a, *d; const double* known; float *A, *D; i64 inputs, outputs, rows, group; double raise; };
struct Clipping { double clip_norm[GROUPS]; };

// mechanism.clip.clip_weights [N1] to [N4]
static __device__ double clip_weight(double sq, double clip_norm, double margin, double most) {
    if (!isfinite(sq)) return 0;
    double norm = sqrt(sq) * (1 + margin), ratio = norm / clip_norm;
    return norm >= most * clip_norm ? 0 : 1 / (ratio <= 1 ? 1 : ratio);
}

// Sanitizer [N1] and [F3] for all groups: squared norms `sq` and `weights` (groups, B), and the factors of each Outer times
// them; a block for each example, and for each row behind the last one of a block of examples.
extern "C" __global__ void weigh(Parts<Gradient> parts, Clipping clip, i64 groups, const double* own, i64 examples, double large,
                                 double margin, double most, double* sq, double* weights) {
    __shared__ double found[GROUPS];
    i64 b = blockIdx.x;
    if (b < examples) {
        for (i64 g = 0; g < groups; g++) {
            double total = 0;
            for (int k = 0; k < parts.count; k++) {
                const Gradient& part = parts.part[k];
                if (part.group != g) continue;
                double square;
                if (part.known) {
                    square = part.known[b];
                } else {
                    if (!part.d && part.A) {
                        for (i64 i = threadIdx.x; i < part.inputs; i += blockDim.x) {
                            double sum = 0;
#pragma unroll 8
                            for (i64 t = 0; t < part.rows; t++) sum += part.a[(b * part.rows + t) * part.inputs + i];
                            part.A[b * part.inputs + i] = (float)sum;
                        }
                        __syncthreads();
                    }
                    double a = norm((part.d || !part.A ? part.a : part.A) + b * part.inputs, part.inputs);
                    double d = part.d ? norm(part.d + b * part.outputs, part.outputs) : 1;
                    square = part.d && (a > large || d > large) ? INFINITY : (a * d) * (a * d);
                }
                total += square * part.raise;
            }
            if (threadIdx.x == 0) {
                double mine = own ? own[b] : 1;
                double weight = clip_weight(total, clip.clip_norm[g], margin, most) * mine;
                sq[g * examples + b] = total;
                weights[g * examples + b] = found[g] = weight;
            }
        }
    }
    __syncthreads();
    for (int k = 0; k < parts.count; k++) {
        const Gradient& part = parts.part[k];
        if (!part.D) continue;
        i64 block = b / part.rows, row = b % part.rows, filled = (examples + part.rows - 1) / part.rows * part.rows;
        if (b >= filled) continue;
        float weight = b < examples ? (float)found[part.group] : 0;
        bool left = part.inputs <= part.outputs;
        for (i64 i = threadIdx.x; i < part.inputs; i += blockDim.x) {
            float value = weight == 0 ? 0 : part.a[b * part.inputs + i];
            part.A[(block * part.inputs + i) * part.rows + row] = left ? weight * value : value;
        }
        for (i64 o = threadIdx.x; o < part.outputs; o += blockDim.x) {
            float value = weight == 0 ? 0 : part.d[b * part.outputs + o];
            part.D[b * part.outputs + o] = left ? value : weight * value;
        }
    }
}

// arrays.add_weighted of several parameters: total (P,) = or += sum_j w_j g_j in float64, g (count, P), w of one group, or 1
// where there is none, without rows whose weight is 0. 2,048 rows are added to each other, then to the rest.
struct Rows { const float* g; const double* w; double* total; i64 size, count, add; };

extern "C" __global__ void add_weighted(Parts<Rows> parts, i64 places) {
    for EACH(place, places) {
        i64 p = place;
        FIND(k, p)
        const Rows& part = parts.part[k];
        double sum = 0, some = 0;
#pragma unroll 4
        for (i64 j = 0; j < part.count; j++) {
            double weight = part.w ? part.w[j] : 1;
            float value = weight != 0 ? part.g[j * part.size + p] : 0;
            some += weight * (double)value;
            if (j % 2048 == 2047) sum += some, some = 0;
        }
        sum += some;
        part.total[p] = part.add ? part.total[p] + sum : sum;
    }
}
