// What the kernels share. Compile with --fmad=false: no product and sum become one operation, as on the host.
typedef long long i64;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#ifndef INFINITY  // NVRTC knows neither
#define INFINITY (1e300 * 1e300)
#define NAN (INFINITY - INFINITY)
#endif

// This thread's share of the places 0 .. n - 1, whatever the grid.
#define EACH(i, n) (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)

// Several arrays in one launch: `count` parts, each described by its numbers and pointers of 8 bytes.
template <class T> struct Parts { i64 count; T part[PARTS]; };

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

static __device__ double polynomial(const double* coefficients, int terms, double x) {
    double y = coefficients[terms - 1];
    for (int n = terms - 2; n >= 0; n--) y = y * x + coefficients[n];
    return y;
}

union Bits { double value; i64 bits; };
