// The GPU's twin of minidp/host/chacha.py and host/discrete.py: the same bits. One thread makes the 8 numbers of one block of
// ChaCha. State: the block's 16 words of input without its number. Constants come as -D options from the definitions.
#include "common.cuh"

#define ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))
#define QUARTER(a, b, c, d)                 \
    a += b; d = ROTATE(d ^ a, 16);          \
    c += d; b = ROTATE(b ^ c, 12);          \
    a += b; d = ROTATE(d ^ a, 8);           \
    c += d; b = ROTATE(b ^ c, 7);

struct State { u32 words[16]; };

static __device__ void cipher(const State& state, u64 block, u32* x) {
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

// One raw sum of a release: `out` = scale (raw + noise), n numbers. `first`: the set of 64 blocks that they begin with, `sets`
// of which make 512 numbers: 1 of normal ones, std and grid as in Draws.add_normals; 0 for no noise; else of integers, in units.
struct Sum { const double* raw; REAL* out; i64 n, first, sets, threads; double std, grid, scale; };

extern "C" __global__ void release(Parts<Sum> parts, State state, i64 digits, i64 bits, const u64* thresholds,
                                   const unsigned short* aliases, i64 threads) {
    for EACH(thread, threads) {
        i64 at = thread;
        int k = 0;
        while (k < parts.count - 1 && at >= parts.part[k].threads) at -= parts.part[k++].threads;
        const Sum& part = parts.part[k];
        i64 stretch = at / 64, lane = at % 64;
        u32 x[16];
        double z[8];
        if (part.sets) cipher(state, (u64)(part.first + stretch * part.sets) * 64 + lane, x);
        if (part.sets == 1) normals(x, z);
        if (part.sets > 1) {
            u64 fields[8], mask = (1ULL << bits) - 1;
            i64 whole[8];
            for (int q = 0; q < 8; q++) fields[q] = (u64)x[q] << 32 | x[q + 8], whole[q] = 0;
            for (i64 j = 1; j < part.sets; j++) {
                cipher(state, (u64)(part.first + stretch * part.sets + j) * 64 + lane, x);
                for (int q = 0; q < 8; q++) {
                    u64 u = (u64)x[q] << 32 | x[q + 8], cell = fields[q] & mask;
                    i64 sign = (i64)(fields[q] >> bits & 1), other = aliases[cell];
                    fields[q] >>= bits + 1;
                    i64 value = other + ((i64)cell - other) * (i64)(u < thresholds[cell]);  // no branch on a drawn value
                    whole[q] = whole[q] * digits + ((value ^ -sign) + sign);
                }
            }
            for (int q = 0; q < 8; q++) z[q] = (double)whole[q];
        }
        for (int q = 0; q < 8; q++) {
            i64 i = stretch * 512 + q * 64 + lane;
            if (i >= part.n) continue;
            double value = part.raw[i];
            if (part.sets) value += part.std * z[q];
            if (part.grid != 0) value = rint(value / part.grid) * part.grid;
            part.out[i] = (REAL)(value * part.scale);
        }
    }
}
