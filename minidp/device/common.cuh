// What the kernels share. Compile with --fmad=false: no product and sum become one operation, as on the host.
typedef long long i64;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#ifndef INFINITY  // NVRTC does not know it
#define INFINITY (1e300 * 1e300)
#endif

// This thread's share of the places 0 .. n - 1, whatever the grid.
#define EACH(i, n) (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)

// Several arrays in one start: `count` parts, each described by its numbers and pointers of 8 bytes.
template <class T> struct Parts { i64 count; T part[PARTS]; };

// The part that a place belongs to; the place becomes that in the part.
#define FIND(k, place) \
    int k = 0;         \
    while (k < parts.count - 1 && place >= parts.part[k].size) place -= parts.part[k++].size;
