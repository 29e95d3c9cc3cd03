// The twins of minidp/exact/elementwise.py, in float64: the same bits. Constants come from minidp/host/series.py as -D options.
static __device__ double exp_parts(double x, double* half) {
    const double series[] = {EXP};
    Bits t;
    t.value = x * INVERSE_LN2 + MAGIC;
    double k = t.value - MAGIC, r = (x - k * LN2_HIGH) - k * LN2_LOW;
    t.bits = (i64)((u64)(t.bits + 1022) << 52);
    *half = t.value;
    return r + (r * r) * polynomial(series, EXP_TERMS, r);
}

static __device__ double exp_(double x) {
    double half, p = exp_parts(x < LEAST ? LEAST : x > MOST ? MOST : x, &half);
    return x < LEAST ? 0 : (2 + 2 * p) * half;
}

static __device__ double tanh_(double x) {
    double half, v = -2 * (x < 0 ? -x : x), p = exp_parts(v < SATURATED ? SATURATED : v, &half), w = 2 * half;
    double y = ((1 - w) - w * p) / ((1 + w) + w * p);
    return x < 0 ? -y : y;
}

static __device__ double log_(float x) {  // no float32 is a subnormal float64
    const double series[] = {LOG};
    if (!(x > 0 && x < INFINITY)) return x == 0 ? -INFINITY : x > 0 ? (double)x : NAN;
    Bits m;
    m.value = x;
    i64 shifted = m.bits - SPLIT;
    m.bits = (shifted & ((1LL << 52) - 1)) + SPLIT;
    double s = (m.value - 1) / (m.value + 1);
    return (double)(shifted >> 52) * LN2 + s * polynomial(series, LOG_TERMS, s * s);
}
