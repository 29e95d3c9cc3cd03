// What CUDA's words mean on the host: see shim.py.
#include <cmath>
#include <tuple>
#include <utility>
using namespace std;
#define __device__
#define __global__
struct Three { unsigned x; };
static thread_local Three blockIdx, threadIdx, blockDim, gridDim;
template <class... A, size_t... I> static void call(void (*kernel)(A...), void** arguments, index_sequence<I...>) {
    kernel(*(decay_t<A>*)arguments[I]...);
}
template <class... A> static void run(void (*kernel)(A...), unsigned blocks, unsigned size, void** arguments) {
    blockDim.x = size, gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < size; threadIdx.x++) call(kernel, arguments, index_sequence_for<A...>());
}
