// Twins of minidp.nn: ReLU, SoftmaxCrossEntropy, and the rows of a lot.
#include "common.cuh"

extern "C" __global__ void relu(const float* x, float* y, i64 n) {
    for EACH(i, n) y[i] = x[i] <= 0 ? 0 : x[i];  // NaN stays
}

extern "C" __global__ void relu_gradient(const float* dy, const float* y, float* dx, i64 n) {
    for EACH(i, n) dx[i] = y[i] > 0 ? dy[i] : 0;
}

// z (B, K) and target (B,) to losses (B,) and dz (B, K): a thread for each example
extern "C" __global__ void softmax_cross_entropy(const float* z, const i64* target, float* losses, float* dz, i64 examples,
                                                 i64 classes) {
    for EACH(b, examples) {
        const float* row = z + b * classes;
        float *out = dz + b * classes, largest = row[0], total = 0;
        bool known = target[b] >= 0 && target[b] < classes;
        for (i64 k = 1; k < classes; k++) largest = largest > row[k] ? largest : row[k];  // of NaN any: all of its row is NaN
        for (i64 k = 0; k < classes; k++) total += out[k] = expf(row[k] - largest);
        for (i64 k = 0; k < classes; k++) out[k] = known ? out[k] / total - (float)(target[b] == k) : 0;
        losses[b] = known ? logf(total) - (row[target[b]] - largest) : 0;
    }
}

// bias (width,) to every row of y (n / width, width), in place
extern "C" __global__ void add_bias(float* y, const float* bias, i64 width, i64 n) {
    for EACH(i, n) y[i] += bias[i % width];
}

// rows of x (N, width) and of y (N,) with the numbers `lot` to xs (n / width, width) and ys
extern "C" __global__ void gather(const float* x, const i64* y, const i64* lot, float* xs, i64* ys, i64 width, i64 n) {
    for EACH(i, n) {
        i64 row = lot[i / width];
        xs[i] = x[row * width + i % width];
        if (i % width == 0) ys[i / width] = y[row];
    }
}
