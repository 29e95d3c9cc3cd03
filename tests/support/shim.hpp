// What CUDA's words mean on the host: see shim.py.
#include <barrier>
#include <cmath>
#include <cstdint>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
using namespace std;
#define __device__
#define __global__
#define __shared__ static
struct Three { unsigned x; };
static thread_local Three blockIdx, threadIdx;
static Three blockDim, gridDim;
static barrier<>* together;
#define __syncthreads() together->arrive_and_wait()
template <class... A, size_t... I> static void call(void (*kernel)(A...), void** arguments, index_sequence<I...>) {
    kernel(*(decay_t<A>*)arguments[I]...);
}
template <class... A> static void run(void (*kernel)(A...), unsigned blocks, unsigned size, unsigned side_by_side, void** arguments) {
    auto once = [&] { call(kernel, arguments, index_sequence_for<A...>()); };
    blockDim.x = side_by_side ? side_by_side : size, gridDim.x = blocks;
    if (!side_by_side) {
        for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < size; threadIdx.x++) once();
        return;
    }
    barrier<> all(side_by_side);
    together = &all;
    vector<thread> threads;
    for (unsigned t = 0; t < side_by_side; t++) threads.emplace_back([&, t] {
        threadIdx.x = t;
        for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
            if (blocks <= 16 && t) this_thread::sleep_for(chrono::microseconds(50 * t));  // who does not wait reads what is not there
            once(), all.arrive_and_wait();
        }
    });
    for (auto& one : threads) one.join();
}
