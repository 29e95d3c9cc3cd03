// nn.SoftmaxCrossEntropy, forward and gradient: one thread for each example, its sums as arithmetic.in_pairs has them.
#include "common.cuh"
#include "series.cuh"

// z (B, K) and target (B,) to losses (B,) and dz (B, K); terms (B, K) is room for the sums
extern "C" __global__ void softmax_cross_entropy(const float* z, const TARGET* target, float* losses, float* dz, float* terms,
                                                 i64 examples, i64 classes) {
    for EACH(b, examples) {
        const float* row = z + b * classes;
        float *out = dz + b * classes, *sum = terms + b * classes, largest = row[0];
        bool known = target[b] >= 0 && (u64)target[b] < (u64)classes;
        for (i64 k = 1; k < classes; k++) largest = largest > row[k] ? largest : row[k];  // of NaN any: all of its row is NaN
        for (i64 k = 0; k < classes; k++) sum[k] = out[k] = (float)exp_(row[k] - largest);
        for (i64 n = classes, half; n > 1; n = half) {
            half = (n + 1) / 2;
            for (i64 k = 0; k < n - half; k++) sum[k] += sum[half + k];
        }
        for (i64 k = 0; k < classes; k++) out[k] = known ? out[k] / sum[0] - (float)((i64)target[b] == k) : 0;
        losses[b] = known ? (float)log_(sum[0]) - (row[(i64)target[b]] - largest) : 0;
    }
}
