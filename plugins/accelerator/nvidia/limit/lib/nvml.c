/* What tools that show a GPU's memory are told: the limit, and what this
 * container holds of it. */
#include "limit.h"

typedef int nvmlReturn;
enum { NO_FUNCTION = 13 };

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };

nvmlReturn nvmlDeviceGetMemoryInfo(void *, struct memory *);
nvmlReturn nvmlDeviceGetMemoryInfo_v2(void *, struct memory_v2 *);

static int place_of(void *device) {
  REAL(nvml, nvmlReturn, nvmlDeviceGetUUID, void *, char *, unsigned);
  char uuid[96];
  if (!settings_ready() || !real || real(device, uuid, sizeof uuid)) return UNLIMITED;
  return settings_find(uuid);
}

/* shown replaces the GPU's figures by the container's. */
static void shown(int place, unsigned long long *total, unsigned long long *left, unsigned long long *used) {
  unsigned long long limit = settings_limit(place), n = usage_total(place);
  if (*total > limit) *total = limit;
  *used = n < *total ? n : *total;
  *left = *total - *used;
}

EXPORT nvmlReturn nvmlDeviceGetMemoryInfo(void *device, struct memory *m) {
  REAL(nvml, nvmlReturn, nvmlDeviceGetMemoryInfo, void *, struct memory *);
  if (!real) return NO_FUNCTION;
  nvmlReturn result = real(device, m);
  int place = result ? UNLIMITED : place_of(device);
  if (place != UNLIMITED) shown(place, &m->total, &m->free, &m->used);
  return result;
}

EXPORT nvmlReturn nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *m) {
  REAL(nvml, nvmlReturn, nvmlDeviceGetMemoryInfo_v2, void *, struct memory_v2 *);
  if (!real) return NO_FUNCTION;
  nvmlReturn result = real(device, m);
  int place = result ? UNLIMITED : place_of(device);
  if (place != UNLIMITED) {
    m->reserved = 0;
    shown(place, &m->total, &m->free, &m->used);
  }
  return result;
}
