// Weighted sums of gradients over examples, in float64, of many parameters in one launch.
#include "common.cuh"

// The part that a place belongs to; the place becomes that in the part.
#define FIND(k, place) \
    int k = 0;         \
    while (k < parts.count - 1 && place >= parts.part[k].size) place -= parts.part[k++].size;

// arrays.add_weighted: total (P,) = or += sum_b w_b g_b, g (B, P), without rows whose weight is 0. A block has some places and
// several threads for each, which take turns at the examples: more of memory is asked for at once.
struct Rows { const float* g; double* total; i64 size, add; };

extern "C" __global__ void add_weighted(Parts<Rows> parts, const double* w, i64 examples, i64 places) {
    __shared__ double sums[1024];
    u32 turns = blockDim.x >= 8 * 32 ? 8 : 2, width = blockDim.x / turns, turn = threadIdx.x / width;
    for (i64 first = (i64)blockIdx.x * width; first < places; first += (i64)gridDim.x * width) {
        i64 p = first + threadIdx.x % width;
        FIND(k, p)
        const Rows& part = parts.part[k];
        double sum = 0;
        if (p < part.size) {
#pragma unroll 4
            for (i64 b = turn; b < examples; b += turns) {
                float value = w[b] != 0 ? part.g[b * part.size + p] : 0;
                sum += w[b] * (double)value;
            }
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (turn == 0 && p < part.size) {
            for (u32 t = 1; t < turns; t++) sum += sums[threadIdx.x + t * width];
            part.total[p] = part.add ? part.total[p] + sum : sum;
        }
        __syncthreads();  // before the next sums take their place
    }
}

// The factors of arrays.add_products: a (B, I, T), d (B, T, O) to A (K, I, R), D (K, R, O), with
// K R >= B T rows in blocks of R, in float32 or, where `wide`, float64. Row bt is that of position
// t; rows of weight 0 and those behind the last are zero in both.
struct Factors {
    const float *a, *d;
    const double *a_norms, *d_norms;
    void *A, *D;
    i64 inputs, outputs, positions, rows, size, wide, weigh_a;  // size: K R (I + O) places
};

static __device__ void put(void* out, i64 at, float value, double weight, bool weigh, bool wide) {
    if (wide) ((double*)out)[at] = weight == 0 ? 0 : weigh ? weight * (double)value : (double)value;
    else ((float*)out)[at] = weight == 0 ? 0 : weigh ? (float)weight * value : value;
}

// Place q of A (K, I, R), or of D (K, R, O) where not `left`, as the number of its row and its column.
template <class T> static __device__ i64 row_of(bool left, T q, T rows, T inputs, T outputs, i64* column) {
    *column = left ? q / rows % inputs : q % outputs;
    return left ? q / rows / inputs * rows + q % rows : q / outputs;
}

extern "C" __global__ void weighted_factors(Parts<Factors> parts, const double* w, double large, i64 examples, i64 places) {
    for EACH(place, places) {
        i64 p = place;
        FIND(k, p)
        const Factors& f = parts.part[k];
        i64 half = f.size / (f.inputs + f.outputs) * f.inputs, column;
        bool left = p < half;
        i64 q = left ? p : p - half, row = f.size >> 32 ? row_of<u64>(left, q, f.rows, f.inputs, f.outputs, &column)
                                                        : row_of<u32>(left, q, f.rows, f.inputs, f.outputs, &column);  // faster
        i64 b = f.positions == 1 ? row : row / f.positions, t = row - b * f.positions;
        double weight = b < examples ? w[b] : 0;
        if (weight != 0 && f.a_norms)
            if (!(f.a_norms[b] <= large && f.d_norms[b] <= large && weight >= 1 / (large * large))) weight = 0;
        float value = weight == 0 ? 0 : left ? f.a[(b * f.inputs + column) * f.positions + t] : f.d[q];
        put(left ? f.A : f.D, q, value, weight, left == (f.weigh_a != 0), f.wide);
    }
}

// arrays.add_products: total (P,) = or += sum of the blocks (K, P), in float64: 2,048 (grads.forms.TOGETHER) are added
// to each other, then to the rest
struct Blocks { const void* blocks; double* total; i64 count, size, wide, add; };

extern "C" __global__ void add_blocks(Parts<Blocks> parts, i64 places) {
    for EACH(place, places) {
        i64 p = place;
        FIND(k, p)
        const Blocks& part = parts.part[k];
        double sum = 0, some = 0;
        for (i64 j = 0; j < part.count; j++) {
            i64 at = j * part.size + p;
            some += part.wide ? ((const double*)part.blocks)[at] : (double)((const float*)part.blocks)[at];
            if (j % 2048 == 2047) sum += some, some = 0;
        }
        sum += some;
        part.total[p] = part.add ? part.total[p] + sum : sum;
    }
}

// train.SGD [F1]: theta -= rate g
struct Step { float* theta; const float* g; i64 size; };

extern "C" __global__ void descend(Parts<Step> parts, double rate, i64 places) {
    for EACH(place, places) {
        i64 p = place;
        FIND(k, p)
        parts.part[k].theta[p] -= parts.part[k].g[p] * (float)rate;
    }
}

// arrays.in_pairs: x (N, n, width) to total (N, width), in the order of the definition; a block for each of N,
// terms (N, (n + 1) / 2, width) is room for the sums
extern "C" __global__ void in_pairs(const REAL* x, REAL* terms, REAL* total, i64 n, i64 width) {
    x += blockIdx.x * n * width, terms += blockIdx.x * ((n + 1) / 2) * width, total += blockIdx.x * width;
    i64 half = (n + 1) / 2;
    for (i64 j = threadIdx.x; j < half * width; j += blockDim.x)
        terms[j] = j < (n - half) * width ? x[j] + x[half * width + j] : x[j];
    while (half > 1) {
        __syncthreads();
        n = half, half = (n + 1) / 2;
        for (i64 j = threadIdx.x; j < (n - half) * width; j += blockDim.x) terms[j] += terms[half * width + j];
    }
    __syncthreads();
    for (i64 j = threadIdx.x; j < width; j += blockDim.x) total[j] = terms[j];
}
