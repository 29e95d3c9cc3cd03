// The GPU's twin of minidp/host/chacha.py: the same bits. One thread makes the 8 normal numbers of one block of ChaCha.
// Compile with --fmad=false: no product and sum may become one operation. State: the block's 16 words of input without
// its number. Constants come as -D options from the definition, so that none is written twice.
typedef unsigned int u32;
typedef unsigned long long u64;

#define ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))
#define QUARTER(a, b, c, d)                 \
    a += b; d = ROTATE(d ^ a, 16);          \
    c += d; b = ROTATE(b ^ c, 12);          \
    a += b; d = ROTATE(d ^ a, 8);           \
    c += d; b = ROTATE(b ^ c, 7);

static __device__ void cipher(const u32* state, u64 block, u32* x) {
    for (int k = 0; k < 16; k++) x[k] = state[k];
    x[12] = (u32)block, x[13] = (u32)(block >> 32);
    for (int i = 0; i < ROUNDS / 2; i++) {
        QUARTER(x[0], x[4], x[8], x[12]) QUARTER(x[1], x[5], x[9], x[13])
        QUARTER(x[2], x[6], x[10], x[14]) QUARTER(x[3], x[7], x[11], x[15])
        QUARTER(x[0], x[5], x[10], x[15]) QUARTER(x[1], x[6], x[11], x[12])
        QUARTER(x[2], x[7], x[8], x[13]) QUARTER(x[3], x[4], x[9], x[14])
    }
    for (int k = 0; k < 16; k++) x[k] += state[k];
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
        union { double value; long long bits; } u, m;
        u.value = (double)x[j] * CELL_32 + ((double)x[j + 4] + 0.5) * CELL_64;
        long long bits = u.bits - SPLIT;
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

// out_i += std z_(begin + i), rounded to the grid unless that is 0; threads: 64 for each stretch of 512 numbers touched
extern "C" __global__ void NAME(const u32* state, long long begin, double std, double grid, REAL* out, long long n) {
    u64 block = (u64)(begin / 512) * 64 + (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 x[16];
    double z[8];
    cipher(state, block, x);
    normals(x, z);
    for (int k = 0; k < 8; k++) {
        long long i = (long long)(block / 64) * 512 + k * 64 + (long long)(block % 64) - begin;
        if (i < 0 || i >= n) continue;
        double value = (double)out[i] + std * z[k];
        out[i] = (REAL)(grid != 0 ? rint(value / grid) * grid : value);
    }
}
