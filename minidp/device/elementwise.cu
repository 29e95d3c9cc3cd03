// Coordinate by coordinate: twins of minidp/exact/elementwise.py, nn.ReLU and the bias of a layer, with their bits.
#include "common.cuh"
#include "series.cuh"

extern "C" __global__ void exp_of(const float* x, float* y, i64 n) {
    for EACH(i, n) y[i] = (float)exp_(x[i]);
}

extern "C" __global__ void log_of(const float* x, float* y, i64 n) {
    for EACH(i, n) y[i] = (float)log_(x[i]);
}

extern "C" __global__ void tanh_of(const float* x, float* y, i64 n) {
    for EACH(i, n) y[i] = (float)tanh_(x[i]);
}

extern "C" __global__ void relu(const float* x, float* y, i64 n) {
    for EACH(i, n) y[i] = x[i] <= 0 ? 0 : x[i];  // NaN stays
}

extern "C" __global__ void relu_gradient(const float* dy, const float* y, float* dx, i64 n) {
    for EACH(i, n) dx[i] = y[i] > 0 ? dy[i] : 0;
}
