/* A stand-in for NVIDIA's driver library: two GPUs of 64 GiB with memory that
 * is only counted. It has the calls that the tests make, under the names and
 * with the layouts that NVIDIA documents, and gives addresses out again as soon
 * as they are free. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID = 1, NO_MEMORY = 2, NO_CONTEXT = 201, NO_SYMBOL = 500 };
enum { GPUS = 2, BLOCKS = 1 << 14 };
static const size_t all = (size_t)64 << 30;

static struct { char live, released; int device, mapped; size_t size; long context; } blocks[BLOCKS];
static struct { uint64_t address; size_t size; int block; } maps[64];
static size_t used[GPUS], peak[GPUS];
static int hint;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread long current; /* contexts are 1 and 2, the primary ones, and 3 and 4 */
static int primaries[GPUS];

static int of(long context) { return (int)(context - 1) % GPUS; }

static int take(uint64_t *p, size_t n, int device, long context) {
  int result = NO_MEMORY;
  if (!current) return NO_CONTEXT;
  if (!p || !n) return INVALID;
  pthread_mutex_lock(&lock);
  for (int k = 0; k < BLOCKS && used[device] + n <= all; k++) {
    int i = (hint + k) % BLOCKS;
    if (blocks[i].live) continue;
    hint = i;
    blocks[i].live = 1;
    blocks[i].released = 0;
    blocks[i].mapped = 0;
    blocks[i].device = device;
    blocks[i].size = n;
    blocks[i].context = context;
    used[device] += n;
    if (used[device] > peak[device]) peak[device] = used[device];
    *p = ((uint64_t)i + 1) << 21;
    result = 0;
    break;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static int drop(uint64_t p) {
  int result = INVALID;
  uint64_t i = (p >> 21) - 1;
  pthread_mutex_lock(&lock);
  if (p && (p & 0x1fffff) == 0 && i < BLOCKS && blocks[i].live) {
    blocks[i].live = 0;
    used[blocks[i].device] -= blocks[i].size;
    hint = (int)i;
    result = 0;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static int end(long context) {
  for (int i = 0; i < BLOCKS; i++)
    if (blocks[i].live && blocks[i].context == context) drop(((uint64_t)i + 1) << 21);
  return 0;
}

size_t standin_peak(int device) { return peak[device]; }

/* So many of the next frees and unmappings fail. */
static int refusals;
void standin_refuse(int n) { refusals = n; }
static int refused(void) { return refusals > 0 && refusals--; }

int cuInit(unsigned flags) { return flags ? INVALID : 0; }
int cuDeviceGetUuid(unsigned char *u, int device) {
  memcpy(u, "\x1b\x2c\x3d\x4e\x00\x00\x40\x00\x80\x00\x00\x00\x00\x00\x00\x00", 16);
  u[15] = (unsigned char)device;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **c, int device) {
  *c = (void *)(long)(device + 1);
  primaries[device]++;
  return 0;
}
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  *flags = 0;
  *active = primaries[device] > 0;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return primaries[device] <= 0 ? INVALID : --primaries[device] ? 0 : end(device + 1);
}
int cuDevicePrimaryCtxReset_v2(int device) {
  primaries[device] = 0;
  return end(device + 1);
}
/* The first forms of these calls, by which CUDA's runtime still asks for them, do the same. */
int cuDevicePrimaryCtxRelease(int device) { return cuDevicePrimaryCtxRelease_v2(device); }
int cuDevicePrimaryCtxReset(int device) { return cuDevicePrimaryCtxReset_v2(device); }
int cuCtxCreate_v2(void **c, unsigned flags, int device) {
  *c = (void *)(current = device + 3);
  return 0;
}
int cuCtxDestroy_v2(void *c) { return end((long)c); }
int cuCtxDestroy(void *c) { return end((long)c); }
int cuCtxSetCurrent(void *c) { current = (long)c; return 0; }
int cuCtxGetCurrent(void **c) { *c = (void *)current; return 0; }
int cuCtxGetDevice(int *device) {
  if (!current) return NO_CONTEXT;
  *device = of(current);
  return 0;
}

int cuMemAlloc_v2(uint64_t *p, size_t n) { return take(p, n, of(current), current); }
int cuMemAllocManaged(uint64_t *p, size_t n, unsigned flags) { return take(p, n, of(current), current); }
int cuMemAllocPitch_v2(uint64_t *p, size_t *pitch, size_t width, size_t height, unsigned element) {
  *pitch = (width + 1023) / 1024 * 1024; /* more than most guess */
  return take(p, *pitch * height, of(current), current);
}
int cuMemAllocAsync(uint64_t *p, size_t n, void *stream) { return take(p, n, of(current), 0); }
int cuMemAllocAsync_ptsz(uint64_t *p, size_t n, void *stream) { return take(p, n, of(current), 0); }
int cuMemAllocFromPoolAsync(uint64_t *p, size_t n, void *pool, void *stream) { return take(p, n, of(current), 0); }
int cuMemFree_v2(uint64_t p) { return refused() ? INVALID : drop(p); }
int cuMemFreeAsync(uint64_t p, void *stream) { return drop(p); }
int cuMemFreeAsync_ptsz(uint64_t p, void *stream) { return drop(p); }
int cuMemCreate(uint64_t *h, size_t n, const int *how, unsigned long long flags) { return take(h, n, how[3], 0); }
int cuMemRelease(uint64_t h) {
  int i = (int)(h >> 21) - 1;
  if (i < 0 || i >= BLOCKS || !blocks[i].live || blocks[i].released) return INVALID;
  blocks[i].released = 1;
  return blocks[i].mapped ? 0 : drop(h);
}
int cuMemMap(uint64_t p, size_t n, size_t offset, uint64_t h, unsigned long long flags) {
  for (int i = 0; i < 64; i++)
    if (!maps[i].size) {
      maps[i].address = p;
      maps[i].size = n;
      maps[i].block = (int)(h >> 21) - 1;
      blocks[maps[i].block].mapped++;
      return 0;
    }
  return INVALID;
}
int cuMemUnmap(uint64_t p, size_t n) {
  int found = 0;
  if (refused()) return INVALID;
  for (int i = 0; i < 64; i++)
    if (maps[i].size && maps[i].address >= p && maps[i].address + maps[i].size <= p + n) {
      int b = maps[i].block;
      found = 1;
      maps[i].size = 0;
      if (!--blocks[b].mapped && blocks[b].released) drop(((uint64_t)b + 1) << 21);
    }
  return found ? 0 : INVALID;
}
int cuMemRetainAllocationHandle(uint64_t *h, void *p) {
  for (int i = 0; i < 64; i++)
    if (maps[i].size && maps[i].address == (uint64_t)p) {
      *h = ((uint64_t)maps[i].block + 1) << 21;
      blocks[maps[i].block].released = 0; /* one reference is enough for the tests */
      return 0;
    }
  return INVALID;
}
int cuArrayCreate_v2(void **a, const size_t *d) { return take((uint64_t *)a, d[0] * d[1] * 4, of(current), current); }
int cuArray3DCreate_v2(void **a, const size_t *d) { return take((uint64_t *)a, d[0] * d[1] * d[2] * 4, of(current), current); }
int cuArrayDestroy(void *a) { return drop((uint64_t)a); }
int cuMemGetInfo_v2(size_t *left, size_t *total) {
  if (!current) return NO_CONTEXT;
  *left = all - used[of(current)];
  *total = all;
  return 0;
}
int cuDeviceTotalMem_v2(size_t *n, int device) { *n = all; return 0; }

/* Two forms of one call: programs made for 99.0 get another. */
static int future(uint64_t *p, size_t n, void *stream, int more) { return take(p, n, of(current), 0); }

int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status);
int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, address, version, flags, NULL);
}
int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status) {
#define FORM(symbol, base, since, own) {#base, since, own, (void *)symbol}
  static const struct { const char *name; int version, own; void *address; } forms[] = {
      {"cuMemAllocAsync", 99000, 0, (void *)future},
      FORM(cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020, 1), FORM(cuMemAllocAsync, cuMemAllocAsync, 11020, 0),
      FORM(cuMemFreeAsync_ptsz, cuMemFreeAsync, 11020, 1), FORM(cuMemFreeAsync, cuMemFreeAsync, 11020, 0),
      FORM(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, 0),
      FORM(cuMemAlloc_v2, cuMemAlloc, 3020, 0), FORM(cuMemAllocManaged, cuMemAllocManaged, 6000, 0),
      FORM(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, 0), FORM(cuMemFree_v2, cuMemFree, 3020, 0),
      FORM(cuMemCreate, cuMemCreate, 10020, 0), FORM(cuMemRelease, cuMemRelease, 10020, 0),
      FORM(cuMemMap, cuMemMap, 10020, 0), FORM(cuMemUnmap, cuMemUnmap, 10020, 0),
      FORM(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000, 0),
      FORM(cuArrayCreate_v2, cuArrayCreate, 3020, 0), FORM(cuArray3DCreate_v2, cuArray3DCreate, 3020, 0),
      FORM(cuArrayDestroy, cuArrayDestroy, 2000, 0), FORM(cuMemGetInfo_v2, cuMemGetInfo, 3020, 0),
      FORM(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020, 0), FORM(cuInit, cuInit, 2000, 0),
      FORM(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, 0), FORM(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 7000, 0),
      FORM(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, 0), FORM(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, 0),
      FORM(cuCtxDestroy_v2, cuCtxDestroy, 4000, 0), FORM(cuCtxDestroy, cuCtxDestroy, 2000, 0),
      FORM(cuGetProcAddress_v2, cuGetProcAddress, 12000, 0), FORM(cuGetProcAddress, cuGetProcAddress, 11030, 0),
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (!strcmp(forms[i].name, name) && version >= forms[i].version && (!forms[i].own || flags & 2)) {
      *address = forms[i].address;
      return 0;
    }
  *address = NULL;
  return NO_SYMBOL;
}
