/* What the library needs to know of the driver's interface, in its own words. */
#ifndef BERTH_LIMIT_CUDA_H
#define BERTH_LIMIT_CUDA_H

#include "limit.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
enum { OUT_OF_MEMORY = 2, NOT_FOUND = 500 };

/* properties begins CUmemAllocationProp. */
struct properties { int kind, handles, place, device; };
enum { ON_DEVICE = 1 };

/* The descriptors of arrays. */
struct array { size_t width, height; unsigned format, channels; };
struct array3d { size_t width, height, depth; unsigned format, channels, flags; };

/* take makes room for an allocation; 0: it must be refused. *h is NULL where
 * there is no limit. */
int take(CUdevice, uint64_t bytes, void *context, struct held **h);
/* keep notes what the driver answered, and passes it on. */
CUresult keep(struct held *, CUresult, enum kind, uint64_t key);
void give(struct held *);

/* ALLOCATE is the way of all calls that allocate; key is known afterwards. */
#define ALLOCATE(device, bytes, context, call, kind, key)           \
  if (!real) return NOT_FOUND;                                      \
  struct held *h;                                                   \
  if (!take(device, bytes, context, &h)) return OUT_OF_MEMORY;      \
  CUresult result = call;                                           \
  return keep(h, result, kind, result ? 0 : (uint64_t)(key))

CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, void *);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *, size_t, void *);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, void *, void *);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *, size_t, void *, void *);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemFreeAsync(CUdeviceptr, void *);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr, void *);
CUresult cuMemCreate(uint64_t *, size_t, const struct properties *, unsigned long long);
CUresult cuMemRetainAllocationHandle(uint64_t *, void *);
CUresult cuMemRelease(uint64_t);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, uint64_t, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr, size_t);
CUresult cuArrayCreate_v2(void **, const struct array *);
CUresult cuArray3DCreate_v2(void **, const struct array3d *);
CUresult cuArrayDestroy(void *);
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuDeviceTotalMem_v2(size_t *, CUdevice);
CUresult cuCtxDestroy(void *);
CUresult cuCtxDestroy_v2(void *);
CUresult cuDevicePrimaryCtxReset(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuDevicePrimaryCtxRelease(CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);

#endif
