/* How programs find the driver's calls: the loader binds them by name, dlsym
 * answers for a name, and cuGetProcAddress for a name and a version. All three
 * lead here for the calls in the list, and to the driver for any other. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "cuda.h"
#include "glibc.h"

struct memory;
struct memory_v2;
int nvmlDeviceGetMemoryInfo(void *, struct memory *);
int nvmlDeviceGetMemoryInfo_v2(void *, struct memory_v2 *);
CUresult cuGetProcAddress(const char *, void **, int, uint64_t);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, void *);

/* A call: its name in the library, and the name and the first version by which
 * cuGetProcAddress knows this form of it, of streams of a thread's own or not. */
static const struct call {
  const char *symbol, *name;
  int version, own_stream;
  void *here;
} calls[] = {
#define CALL(symbol, name, version) {#symbol, #name, version, 0, (void *)symbol}
    CALL(cuMemAlloc_v2, cuMemAlloc, 3020),
    CALL(cuMemAllocManaged, cuMemAllocManaged, 6000),
    CALL(cuMemAllocPitch_v2, cuMemAllocPitch, 3020),
    CALL(cuMemAllocAsync, cuMemAllocAsync, 11020),
    CALL(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020),
    CALL(cuMemFree_v2, cuMemFree, 3020),
    CALL(cuMemFreeAsync, cuMemFreeAsync, 11020),
    {"cuMemAllocAsync_ptsz", "cuMemAllocAsync", 11020, 1, (void *)cuMemAllocAsync_ptsz},
    {"cuMemAllocFromPoolAsync_ptsz", "cuMemAllocFromPoolAsync", 11020, 1, (void *)cuMemAllocFromPoolAsync_ptsz},
    {"cuMemFreeAsync_ptsz", "cuMemFreeAsync", 11020, 1, (void *)cuMemFreeAsync_ptsz},
    CALL(cuMemCreate, cuMemCreate, 10020),
    CALL(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000),
    CALL(cuMemRelease, cuMemRelease, 10020),
    CALL(cuMemMap, cuMemMap, 10020),
    CALL(cuMemUnmap, cuMemUnmap, 10020),
    CALL(cuArrayCreate_v2, cuArrayCreate, 3020),
    CALL(cuArray3DCreate_v2, cuArray3DCreate, 3020),
    CALL(cuArrayDestroy, cuArrayDestroy, 2000),
    CALL(cuMemGetInfo_v2, cuMemGetInfo, 3020),
    CALL(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020),
    CALL(cuCtxDestroy_v2, cuCtxDestroy, 4000),
    CALL(cuCtxDestroy, cuCtxDestroy, 2000),
    CALL(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000),
    CALL(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000),
    CALL(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000),
    CALL(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 7000),
    CALL(cuGetProcAddress, cuGetProcAddress, 11030),
    CALL(cuGetProcAddress_v2, cuGetProcAddress, 12000),
    CALL(nvmlDeviceGetMemoryInfo, , 0),
    CALL(nvmlDeviceGetMemoryInfo_v2, , 0),
};
#define CALLS (sizeof calls / sizeof *calls)

static void *(*real_dlsym)(void *, const char *);

static void find_dlsym(void) {
  static const char *const versions[] = {"GLIBC_2.34", BASE};
  for (int i = 0; i < 2 && !real_dlsym; i++)
    __atomic_store_n(&real_dlsym, (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[i]), __ATOMIC_RELEASE);
}

void *next_symbol(void *library, const char *name) {
  if (!real_dlsym) find_dlsym();
  return real_dlsym ? real_dlsym(library, name) : NULL;
}

static void *library(void **at, const char *name) {
  void *l = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  if (!l) {
    l = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!l) l = dlopen(name, RTLD_LAZY);
    __atomic_store_n(at, l, __ATOMIC_RELEASE);
  }
  return l;
}

void *cuda_symbol(const char *name) {
  static void *at;
  void *l = library(&at, "libcuda.so.1");
  return l ? next_symbol(l, name) : NULL;
}

void *nvml_symbol(const char *name) {
  static void *at;
  void *l = library(&at, "libnvidia-ml.so.1");
  return l ? next_symbol(l, name) : NULL;
}

/* dlsym jumps to the true one where nothing is to be replaced: that looks who
 * called it to know what RTLD_NEXT means, so there must be no frame of ours. */
EXPORT void *dlsym(void *handle, const char *name) {
  if (__builtin_expect(!real_dlsym, 0)) find_dlsym();
  if (strncmp(name, "cu", 2) && strncmp(name, "nvml", 4)) return real_dlsym(handle, name);
  for (size_t i = 0; i < CALLS; i++)
    if (!strcmp(name, calls[i].symbol)) return real_dlsym(handle, name) ? calls[i].here : NULL;
  return real_dlsym(handle, name);
}

/* replaced tells what stands for an address that the driver gave for a name. It
 * is a call of the list when the driver gives the same for the version that the
 * list knows, or under the call's full name; a newer form is left alone. */
static void *replaced(const char *name, void *address, uint64_t flags) {
  REAL(cuda, CUresult, cuGetProcAddress, const char *, void **, int, uint64_t);
  int own_stream = (flags & 2) != 0;
  for (size_t i = 0; i < CALLS; i++) {
    const struct call *c = &calls[i];
    void *known = NULL;
    if (strcmp(name, c->name)) continue;
    if (address == cuda_symbol(c->symbol)) return c->here;
    if (c->own_stream == own_stream && real && !real(name, &known, c->version, flags) && known == address) return c->here;
  }
  return address;
}

EXPORT CUresult cuGetProcAddress(const char *name, void **address, int version, uint64_t flags) {
  REAL(cuda, CUresult, cuGetProcAddress, const char *, void **, int, uint64_t);
  if (!real) return NOT_FOUND;
  CUresult result = real(name, address, version, flags);
  if (!result && name && address && *address) *address = replaced(name, *address, flags);
  return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, void *status) {
  REAL(cuda, CUresult, cuGetProcAddress_v2, const char *, void **, int, uint64_t, void *);
  if (!real) return NOT_FOUND;
  CUresult result = real(name, address, version, flags, status);
  if (!result && name && address && *address) *address = replaced(name, *address, flags);
  return result;
}
