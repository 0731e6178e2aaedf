// Uses CUDA's runtime, as most programs do: runtime LIMIT.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

static int failed;

static void expect(bool good, const char *what) {
  printf("%s %s (nvcc)\n", good ? "ok" : "FAILED", what);
  failed |= !good;
  cudaGetLastError();
}

__global__ void add(int *at, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) at[i] = i;
}

int main(int, char **argv) {
  size_t limit = strtoull(argv[1], nullptr, 10), left = 0, all = 0;
  cudaDeviceProp card;
  int *p = nullptr, *q = nullptr, last = 0;
  const int n = 1 << 20;
  expect(cudaMemGetInfo(&left, &all) == cudaSuccess && all == limit, "cudaMemGetInfo reports the limit");
  expect(cudaGetDeviceProperties(&card, 0) == cudaSuccess && card.totalGlobalMem == limit, "cudaGetDeviceProperties reports the limit");
  expect(cudaMalloc(&p, limit / 4 * 3) == cudaSuccess, "three quarters of the limit can be had");
  expect(cudaMalloc(&q, limit / 2) == cudaErrorMemoryAllocation, "half of the limit more is refused");
  expect(cudaMallocManaged(&q, limit / 2) == cudaErrorMemoryAllocation, "also as managed memory");
  expect(cudaMallocAsync(&q, limit / 2, 0) == cudaErrorMemoryAllocation, "also from a pool");
  add<<<n / 256, 256>>>(p, n);
  expect(cudaMemcpy(&last, p + n - 1, sizeof last, cudaMemcpyDeviceToHost) == cudaSuccess && last == n - 1, "a kernel runs in what was had");
  expect(cudaFree(p) == cudaSuccess && cudaMalloc(&p, limit / 2) == cudaSuccess && cudaFree(p) == cudaSuccess, "what is freed can be had again");
  expect(cudaMalloc(&p, limit / 2) == cudaSuccess && cudaDeviceReset() == cudaSuccess && cudaMemGetInfo(&left, &all) == cudaSuccess && left > limit / 2, "a reset gives all back");
  return failed;
}
