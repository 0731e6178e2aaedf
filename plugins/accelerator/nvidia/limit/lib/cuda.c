/* The driver's calls for memory. Each takes its part of the limit before the
 * driver allocates and gives it back after the driver has freed, so that what
 * the processes hold is at no moment more than the limit. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"

#define MAX_ORDINALS 64

/* place_of finds a device's limit by its uuid, which is asked for once. */
static int place_of(CUdevice device) {
  enum { UNASKED, UNLISTED, FIRST };
  static int known[MAX_ORDINALS];
  if (device < 0 || device >= MAX_ORDINALS) return UNLIMITED;
  int k = __atomic_load_n(&known[device], __ATOMIC_RELAXED);
  if (k != UNASKED) return k == UNLISTED ? UNLIMITED : k - FIRST;
  REAL(cuda, CUresult, cuDeviceGetUuid, uint8_t *, CUdevice);
  uint8_t u[16];
  if (!real || real(u, device)) return UNLIMITED;
  char text[48];
  int n = snprintf(text, sizeof text, "GPU-");
  for (int i = 0; i < 16; i++) n += snprintf(text + n, sizeof text - (size_t)n, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", u[i]);
  int place = settings_find(text);
  __atomic_store_n(&known[device], place == UNLIMITED ? UNLISTED : place + FIRST, __ATOMIC_RELAXED);
  return place;
}

static CUdevice current_device(void) {
  REAL(cuda, CUresult, cuCtxGetDevice, CUdevice *);
  CUdevice d = -1;
  return real && !real(&d) ? d : -1;
}

static void *current_context(void) {
  REAL(cuda, CUresult, cuCtxGetCurrent, void **);
  void *c = NULL;
  return real && !real(&c) ? c : NULL;
}

int take(CUdevice device, uint64_t bytes, void *context, struct held **h) {
  *h = NULL;
  if (!settings_ready()) return 0;
  int place = place_of(device);
  if (place == UNLIMITED) return 1;
  if (!held_ready() || !(*h = malloc(sizeof **h))) return 0;
  **h = (struct held){.place = place, .bytes = bytes, .context = context, .count = 1, .uses = 1};
  if (usage_take(place, bytes)) return 1;
  free(*h);
  return 0;
}

void give(struct held *h) {
  usage_give(h->place, h->bytes);
  free(h);
}

CUresult keep(struct held *h, CUresult result, enum kind kind, uint64_t key) {
  if (!h) return result;
  if (result) {
    give(h);
    return result;
  }
  h->kind = kind;
  h->key = key;
  held_put(h);
  return result;
}

/* FREE is the way of all that free. What is freed leaves the list first: as
 * soon as the driver has freed it, another thread may get the same address. */
#define FREE(kind, key, call)                        \
  if (!real) return NOT_FOUND;                       \
  struct held *h = held_take(kind, (uint64_t)(key)); \
  CUresult result = call;                            \
  if (h && !result) give(h);                         \
  else if (h) held_put(h);                           \
  return result

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
  REAL(cuda, CUresult, cuMemAlloc_v2, CUdeviceptr *, size_t);
  ALLOCATE(current_device(), bytes, current_context(), real(p, bytes), MEMORY, *p);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *p, size_t bytes, unsigned flags) {
  REAL(cuda, CUresult, cuMemAllocManaged, CUdeviceptr *, size_t, unsigned);
  ALLOCATE(current_device(), bytes, current_context(), real(p, bytes, flags), MEMORY, *p);
}

/* How long a row becomes the driver says only when it has allocated. */
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height, unsigned element) {
  REAL(cuda, CUresult, cuMemAllocPitch_v2, CUdeviceptr *, size_t *, size_t, size_t, unsigned);
  if (!real) return NOT_FOUND;
  struct held *h;
  uint64_t row = (width + 511) / 512 * 512, bytes;
  if (__builtin_mul_overflow(row, height, &bytes)) return OUT_OF_MEMORY;
  if (!take(current_device(), bytes, current_context(), &h)) return OUT_OF_MEMORY;
  CUresult result = real(p, pitch, width, height, element);
  if (h && !result && *pitch > row) {
    uint64_t more = (*pitch - row) * height;
    if (!usage_take(h->place, more)) {
      REAL(cuda, CUresult, cuMemFree_v2, CUdeviceptr);
      if (real) real(*p);
      give(h);
      return OUT_OF_MEMORY;
    }
    h->bytes += more;
  }
  return keep(h, result, MEMORY, result ? 0 : *p);
}

#define ASYNC(suffix)                                                                                           \
  EXPORT CUresult cuMemAllocAsync##suffix(CUdeviceptr *p, size_t bytes, void *stream) {                         \
    REAL(cuda, CUresult, cuMemAllocAsync##suffix, CUdeviceptr *, size_t, void *);                               \
    ALLOCATE(current_device(), bytes, NULL, real(p, bytes, stream), MEMORY, *p);                                \
  }                                                                                                             \
  EXPORT CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr *p, size_t bytes, void *pool, void *stream) {     \
    REAL(cuda, CUresult, cuMemAllocFromPoolAsync##suffix, CUdeviceptr *, size_t, void *, void *);               \
    ALLOCATE(current_device(), bytes, NULL, real(p, bytes, pool, stream), MEMORY, *p);                          \
  }                                                                                                             \
  EXPORT CUresult cuMemFreeAsync##suffix(CUdeviceptr p, void *stream) {                                         \
    REAL(cuda, CUresult, cuMemFreeAsync##suffix, CUdeviceptr, void *);                                          \
    FREE(MEMORY, p, real(p, stream));                                                                           \
  }
ASYNC()
ASYNC(_ptsz)

EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
  REAL(cuda, CUresult, cuMemFree_v2, CUdeviceptr);
  FREE(MEMORY, p, real(p));
}

/* array_bytes is what elements of a format take; -1: too many to count. */
static uint64_t array_bytes(size_t width, size_t height, size_t depth, unsigned format, unsigned channels) {
  uint64_t size = format == 0x01 || format == 0x08 ? 1 : format == 0x02 || format == 0x09 || format == 0x10 ? 2 : 4;
  uint64_t n;
  if (__builtin_mul_overflow(size * channels, (uint64_t)width, &n) ||
      __builtin_mul_overflow(n, (uint64_t)(height ? height : 1), &n) ||
      __builtin_mul_overflow(n, (uint64_t)(depth ? depth : 1), &n))
    return UINT64_MAX;
  return n;
}

EXPORT CUresult cuArrayCreate_v2(void **array, const struct array *a) {
  REAL(cuda, CUresult, cuArrayCreate_v2, void **, const struct array *);
  uint64_t bytes = a ? array_bytes(a->width, a->height, 1, a->format, a->channels) : 0;
  ALLOCATE(current_device(), bytes, current_context(), real(array, a), ARRAY, *array);
}

EXPORT CUresult cuArray3DCreate_v2(void **array, const struct array3d *a) {
  REAL(cuda, CUresult, cuArray3DCreate_v2, void **, const struct array3d *);
  uint64_t bytes = a ? array_bytes(a->width, a->height, a->depth, a->format, a->channels) : 0;
  ALLOCATE(current_device(), bytes, current_context(), real(array, a), ARRAY, *array);
}

EXPORT CUresult cuArrayDestroy(void *array) {
  REAL(cuda, CUresult, cuArrayDestroy, void *);
  FREE(ARRAY, array, real(array));
}

EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *total) {
  REAL(cuda, CUresult, cuMemGetInfo_v2, size_t *, size_t *);
  if (!real) return NOT_FOUND;
  CUresult result = real(left, total);
  int place = result || !settings_ready() ? UNLIMITED : place_of(current_device());
  if (place == UNLIMITED) return result;
  uint64_t limit = settings_limit(place), used = usage_total(place);
  uint64_t room = used < limit ? limit - used : 0;
  if (left && *left > room) *left = room;
  if (total && *total > limit) *total = limit;
  return result;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *total, CUdevice device) {
  REAL(cuda, CUresult, cuDeviceTotalMem_v2, size_t *, CUdevice);
  if (!real) return NOT_FOUND;
  CUresult result = real(total, device);
  int place = result || !settings_ready() ? UNLIMITED : place_of(device);
  if (place != UNLIMITED && total && *total > settings_limit(place)) *total = settings_limit(place);
  return result;
}
