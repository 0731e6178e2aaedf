/* The driver's calls that free whatever a context holds, without a call for each. */
#include "cuda.h"

/* Each call has two forms, under the names with and without _v2, which do the same. CUDA's runtime
 * asks for the first forms of those of the primary context in its version 13 too. */
#define DESTROY(name)                          \
  EXPORT CUresult name(void *context) {        \
    REAL(cuda, CUresult, name, void *);        \
    if (!real) return NOT_FOUND;               \
    CUresult result = real(context);           \
    if (!result) held_drop(context);           \
    return result;                             \
  }
DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)

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

/* END is a call that ends a device's primary context if it succeeds and the condition holds. */
#define END(name, condition)                            \
  EXPORT CUresult name(CUdevice device) {               \
    REAL(cuda, CUresult, name, CUdevice);               \
    if (!real) return NOT_FOUND;                        \
    void *context = primary(device);                    \
    CUresult result = real(device);                     \
    if (!result && (condition)) held_drop(context);     \
    return result;                                      \
  }
END(cuDevicePrimaryCtxReset, 1)
END(cuDevicePrimaryCtxReset_v2, 1)
END(cuDevicePrimaryCtxRelease, !active(device)) /* the last to release it ends it */
END(cuDevicePrimaryCtxRelease_v2, !active(device))
