/* A stand-in for NVIDIA's management library with one GPU. */
#include <stdio.h>

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) {
  *d = (void *)(long)(i + 1);
  return 0;
}
int nvmlDeviceGetUUID(void *d, char *s, unsigned n) {
  snprintf(s, n, "GPU-1b2c3d4e-0000-4000-8000-%012lx", (long)d - 1);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void *d, struct memory *m) {
  *m = (struct memory){64ULL << 30, 24ULL << 30, 40ULL << 30};
  return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void *d, struct memory_v2 *m) {
  m->total = 64ULL << 30;
  m->reserved = 1ULL << 30;
  m->free = 23ULL << 30;
  m->used = 40ULL << 30;
  return 0;
}
