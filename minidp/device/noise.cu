// Normal noise on a GPU: the twin of minidp/host/drawing.py, add_normals: the same bits as minidp/host/chacha.py. Constants come from the
// definitions as -D options. Compile with --fmad=false: no product and sum become one operation, as on the host.
#include "common.cuh"

union Bits { double value; i64 bits; };
struct State { u32 words[16]; };  // a block's input without its number

#define ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))
#define QUARTER(a, b, c, d)                 \
    a += b; d = ROTATE(d ^ a, 16);          \
    c += d; b = ROTATE(b ^ c, 12);          \
    a += b; d = ROTATE(d ^ a, 8);           \
    c += d; b = ROTATE(b ^ c, 7);

static __device__ void chacha(const State& state, u64 block, u32* x) {
    for (int k = 0; k < 16; k++) x[k] = state.words[k];
    x[12] = (u32)block, x[13] = (u32)(block >> 32);
    for (int i = 0; i < ROUNDS / 2; i++) {
        QUARTER(x[0], x[4], x[8], x[12]) QUARTER(x[1], x[5], x[9], x[13])
        QUARTER(x[2], x[6], x[10], x[14]) QUARTER(x[3], x[7], x[11], x[15])
        QUARTER(x[0], x[5], x[10], x[15]) QUARTER(x[1], x[6], x[11], x[12])
        QUARTER(x[2], x[7], x[8], x[13]) QUARTER(x[3], x[4], x[9], x[14])
    }
    for (int k = 0; k < 16; k++) x[k] += state.words[k];
    x[12] += (u32)block, x[13] += (u32)(block >> 32);
}

static __device__ double polynomial(const double* coefficients, int terms, double x) {
    double y = coefficients[terms - 1];
    for (int n = terms - 2; n >= 0; n--) y = y * x + coefficients[n];
    return y;
}

static __device__ void normals(const u32* x, double* z) {
    const double log_[] = {LOG}, sin_[] = {SIN}, cos_[] = {COS};
    for (int j = 0; j < 4; j++) {
        Bits u, m;
        u.value = (double)x[j] * CELL_32 + ((double)x[j + 4] + 0.5) * CELL_64;
        i64 bits = u.bits - SPLIT;
        double e = (double)(bits >> 52);
        m.bits = (bits & ((1LL << 52) - 1)) + SPLIT;
        double s = (m.value - 1) / (m.value + 1);
        double r = sqrt(-2 * (e * LN2 + s * polynomial(log_, LOG_TERMS, s * s)));
        double f = (double)(int)x[j + 8] * CELL_32 + ((double)(x[j + 12] >> 1) + 0.5) * CELL_63;
        double c = 1 - 2 * (double)(x[j + 12] & 1), square = f * f;
        z[j] = r * (c * polynomial(cos_, COS_TERMS, square));
        z[j + 4] = r * (f * polynomial(sin_, SIN_TERMS, square));
    }
}

// out (size,) <- out + std z_(begin + i), rounded to the grid unless that is 0. A thread makes the 8 numbers of one of the
// `blocks` of ChaCha, which lie LANES apart.
extern "C" __global__ void add_normals(State state, i64 begin, double std, double grid, double* out, i64 size, i64 blocks) {
    i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= blocks) return;
    i64 block = begin / STRETCH * LANES + thread;
    u32 x[16];
    double z[8];
    chacha(state, (u64)block, x);
    normals(x, z);
    for (int q = 0; q < 8; q++) {
        i64 i = block / LANES * STRETCH + q * LANES + block % LANES - begin;
        if (i < 0 || i >= size) continue;
        double value = out[i] + std * z[q];
        out[i] = grid != 0 ? rint(value / grid) * grid : value;
    }
}

// mechanism.flat.FlatSums [F1]: g (size,) = scale (raw + std z_i), rounded to the grid unless that is 0, and where there is a
// theta, theta -= rate g (train.SGD). Each stretch of STRETCH numbers has its own std and grid, and `first`, which set of normal
// numbers is its own; raw and g are of whole stretches.
struct Law { double std, grid; i64 first, end; };

extern "C" __global__ void release(State state, Parts<Law> laws, const double* raw, REAL* g, REAL* theta, double scale, double rate,
                                   i64 blocks) {
    i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= blocks) return;
    i64 stretch = thread / LANES;
    int k = 0;
    while (k < laws.count - 1 && stretch >= laws.part[k].end) k++;
    const Law& law = laws.part[k];
    u32 x[16];
    double z[8];
    if (law.std != 0) {
        i64 start = k ? laws.part[k - 1].end : 0;
        chacha(state, (u64)((law.first + stretch - start) * LANES + thread % LANES), x);
        normals(x, z);
    }
    for (int q = 0; q < 8; q++) {
        i64 i = stretch * STRETCH + q * LANES + thread % LANES;
        double value = raw[i];
        if (law.std != 0) {
            value = value + law.std * z[q];
            if (law.grid != 0) value = rint(value / law.grid) * law.grid;
        }
        REAL released = (REAL)(value * scale);
        g[i] = released;
        if (theta) theta[i] -= released * (REAL)rate;
    }
}
