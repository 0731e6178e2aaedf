/* Memory that programs map themselves: it is freed when it is both released and
 * mapped nowhere, in either order. */
#include <stdlib.h>

#include "cuda.h"

EXPORT CUresult cuMemCreate(uint64_t *handle, size_t bytes, const struct properties *how, unsigned long long flags) {
  REAL(cuda, CUresult, cuMemCreate, uint64_t *, size_t, const struct properties *, unsigned long long);
  CUdevice device = how && how->place == ON_DEVICE ? how->device : -1; /* else it is the host's */
  ALLOCATE(device, bytes, NULL, real(handle, bytes, how, flags), HANDLE, *handle);
}

EXPORT CUresult cuMemRetainAllocationHandle(uint64_t *handle, void *address) {
  REAL(cuda, CUresult, cuMemRetainAllocationHandle, uint64_t *, void *);
  if (!real) return NOT_FOUND;
  CUresult result = real(handle, address);
  if (!result) held_again((uint64_t)(uintptr_t)address, *handle);
  return result;
}

EXPORT CUresult cuMemRelease(uint64_t handle) {
  REAL(cuda, CUresult, cuMemRelease, uint64_t);
  if (!real) return NOT_FOUND;
  struct held *h = held_take(HANDLE, handle);
  CUresult result = real(handle);
  if (h && (result || --h->count > 0)) held_put(h);
  else if (h && held_unused(h)) give(h);
  return result;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags) {
  REAL(cuda, CUresult, cuMemMap, CUdeviceptr, size_t, size_t, uint64_t, unsigned long long);
  if (!real) return NOT_FOUND;
  struct held *m = malloc(sizeof *m);
  if (!m || !held_ready()) {
    free(m);
    return OUT_OF_MEMORY;
  }
  CUresult result = real(address, bytes, offset, handle, flags);
  *m = (struct held){.kind = MAPPING, .key = address, .bytes = bytes};
  if (result || !held_use(handle, m)) free(m);
  return result;
}

/* One call may take away several mappings that lie side by side. */
EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  REAL(cuda, CUresult, cuMemUnmap, CUdeviceptr, size_t);
  if (!real) return NOT_FOUND;
  struct held *all = NULL, *m;
  for (CUdeviceptr at = address; at - address < bytes && (m = held_take(MAPPING, at)); at += m->bytes) {
    m->next = all;
    all = m;
  }
  CUresult result = real(address, bytes);
  for (; (m = all);) {
    all = m->next;
    if (result) {
      held_put(m);
      continue;
    }
    if (held_unused(m->block)) give(m->block);
    free(m);
  }
  return result;
}
