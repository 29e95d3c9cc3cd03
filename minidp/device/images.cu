// Windows over images, channels last: twins of nn.window, with their bits.
#include "common.cuh"

// Of one image, so that 32 bits number it: 64 bits divide slowly. Images are padded already, but for `patches`, where
// above and left say by how much; rows, columns: of windows.
struct View { u32 height, width, channels, tall, wide, down, across, above, left, rows, columns; };

// Patches.cut: x (B, H, W, C) to y (B, T, kh kw C), or (B, kh kw C, T) where `turned`; zeros outside the image
extern "C" __global__ void patches(const float* x, float* y, View v, i64 turned, i64 n) {
    u32 positions = v.rows * v.columns, inputs = v.tall * v.wide * v.channels;
    for EACH(i, n) {
        i64 b = i / ((i64)positions * inputs);
        u32 q = (u32)(i - b * positions * inputs);
        u32 t = turned ? q % positions : q / inputs, p = turned ? q / positions : q % inputs;
        u32 row = t / v.columns * v.down + p / (v.wide * v.channels) - v.above;  // above the image it is large
        u32 column = t % v.columns * v.across + p / v.channels % v.wide - v.left;
        y[i] = row < v.height && column < v.width ? x[((b * v.height + row) * v.width + column) * v.channels + p % v.channels] : 0;
    }
}

// For each window (row, column) of image b that sees pixel i of (B, H, W, C), at its place (k, l), in reading order of places.
#define WINDOWS(i, v, ...)                                                                                \
    i64 b = i / ((i64)v.height * v.width * v.channels);                                                   \
    u32 q = (u32)(i - b * v.height * v.width * v.channels), c = q % v.channels;                           \
    u32 down = q / v.channels / v.width + v.above, right = q / v.channels % v.width + v.left;             \
    for (u32 k = down % v.down; k < v.tall && k <= down; k += v.down)                                     \
        for (u32 l = right % v.across; l < v.wide && l <= right; l += v.across) {                         \
            u32 row = (down - k) / v.down, column = (right - l) / v.across;                               \
            if (row < v.rows && column < v.columns) { __VA_ARGS__ }                                       \
        }

// Window.fold: y (B, H', W', kh, kw, C) to dx (B, H, W, C)
extern "C" __global__ void fold(const float* y, float* dx, View v, i64 n) {
    for EACH(i, n) {
        float sum = 0;
        WINDOWS(i, v, sum += y[((((b * v.rows + row) * v.columns + column) * v.tall + k) * v.wide + l) * v.channels + c];)
        dx[i] = sum;
    }
}

// Window.maxima: x (B, H, W, C), padded already, to y and place (B, H', W', C); NaN wins
extern "C" __global__ void pool(const float* x, float* y, u16* place, View v, i64 n) {
    for EACH(i, n) {
        i64 b = i / ((i64)v.rows * v.columns * v.channels);
        u32 q = (u32)(i - b * v.rows * v.columns * v.channels);
        u32 row = q / v.channels / v.columns, column = q / v.channels % v.columns;
        float largest = -INFINITY;
        int at = 0;
        for (u32 k = 0; k < v.tall; k++)
            for (u32 l = 0; l < v.wide; l++) {
                i64 pixel = (b * v.height + row * v.down + k) * v.width + column * v.across + l;
                float value = x[pixel * v.channels + q % v.channels];
                if (value > largest || value != value) {
                    largest = value;
                    at = k * v.wide + l;
                }
            }
        y[i] = largest;
        place[i] = at;
    }
}

// Window.spread: dy (B, H', W', C) to dx (B, H, W, C), by the places that `pool` found
extern "C" __global__ void pool_gradient(const float* dy, const u16* place, float* dx, View v, i64 n) {
    for EACH(i, n) {
        float sum = 0;
        WINDOWS(i, v, {
            i64 at = ((b * v.rows + row) * v.columns + column) * v.channels + c;
            sum += place[at] == k * v.wide + l ? dy[at] : 0;
        })
        dx[i] = sum;
    }
}
