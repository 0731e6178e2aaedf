/* The driver's calls that free whatever a context holds, without a call for each. */
#include "cuda.h"

EXPORT CUresult cuCtxDestroy_v2(void *context) {
  REAL(cuda, CUresult, cuCtxDestroy_v2, void *);
  if (!real) return NOT_FOUND;
  CUresult result = real(context);
  if (!result) held_drop(context);
  return result;
}

static int active(CUdevice device) {
  REAL(cuda, CUresult, cuDevicePrimaryCtxGetState, CUdevice, unsigned *, int *);
  unsigned flags;
  int on = 0;
  return real && !real(device, &flags, &on) && on;
}

/* primary names a device's primary context, if there is one now. */
static void *primary(CUdevice device) {
  if (!active(device)) return NULL;
  void *context = NULL;
  REAL(cuda, CUresult, cuDevicePrimaryCtxRetain, void **, CUdevice);
  if (!real || real(&context, device)) return NULL;
  {
    REAL(cuda, CUresult, cuDevicePrimaryCtxRelease_v2, CUdevice);
    if (real) real(device);
  }
  return context;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  REAL(cuda, CUresult, cuDevicePrimaryCtxReset_v2, CUdevice);
  if (!real) return NOT_FOUND;
  void *context = primary(device);
  CUresult result = real(device);
  if (!result) held_drop(context);
  return result;
}

/* The last to release a primary context ends it. */
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  REAL(cuda, CUresult, cuDevicePrimaryCtxRelease_v2, CUdevice);
  if (!real) return NOT_FOUND;
  void *context = primary(device);
  CUresult result = real(device);
  if (!result && !active(device)) held_drop(context);
  return result;
}
