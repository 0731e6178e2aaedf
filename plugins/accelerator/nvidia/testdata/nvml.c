/* A stand-in for NVIDIA's management library: three invented GPUs, the second
 * too old. It has just the calls that the plugin makes, under the names and
 * with the layouts that NVIDIA documents. */
#include <stdio.h>
#include <string.h>

enum { OK = 0, BAD_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char address[32];
} pci;

static const unsigned long long GiB = 1ULL << 30;
static int number(void *d) { return (int)(long)d - 1; }
static int is_old(void *d) { return number(d) == 1; }

int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int e) { return e ? "error" : "success"; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { snprintf(s, n, "570.86.15"); return OK; }
int nvmlSystemGetCudaDriverVersion(int *v) { *v = 12080; return OK; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 3; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) {
  if (i > 2) return BAD_ARGUMENT;
  *d = (void *)(long)(i + 1);
  return OK;
}
int nvmlDeviceGetUUID(void *d, char *s, unsigned n) {
  snprintf(s, n, "GPU-1b2c3d4e-0000-4000-8000-00000000000%d", number(d));
  return OK;
}
int nvmlDeviceGetName(void *d, char *s, unsigned n) {
  snprintf(s, n, is_old(d) ? "Tesla V100-SXM2-16GB" : "NVIDIA H100 80GB HBM3");
  return OK;
}
int nvmlDeviceGetSerial(void *d, char *s, unsigned n) { snprintf(s, n, "16500%d", number(d)); return OK; }
int nvmlDeviceGetMinorNumber(void *d, unsigned *m) { *m = number(d); return OK; }
int nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor) {
  *major = is_old(d) ? 7 : 9;
  *minor = 0;
  return OK;
}
int nvmlDeviceGetMemoryInfo(void *d, memory *m) {
  m->total = (is_old(d) ? 16 : 80) * GiB;
  m->used = 3 * GiB;
  m->free = m->total - m->used;
  return OK;
}
int nvmlDeviceGetPciInfo_v3(void *d, pci *p) {
  memset(p, 0, sizeof *p);
  p->bus = number(d) + 1;
  snprintf(p->address, sizeof p->address, "00000000:%02X:00.0", number(d) + 1);
  return OK;
}
int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *next) { return NOT_SUPPORTED; }
int nvmlDeviceGetNumGpuCores(void *d, unsigned *n) { *n = is_old(d) ? 5120 : 16896; return OK; }
int nvmlEventSetCreate(void **set) { return NOT_SUPPORTED; }
int nvmlDeviceGetP2PStatus(void *a, void *b, int what, int *status) { *status = 0; return OK; }
int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, int *level) { *level = 40; return OK; }
int nvmlDeviceGetUtilizationRates(void *d, utilization *u) { u->gpu = 40; u->memory = 10; return OK; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 350000; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw) { *mw = 700000; return OK; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *c) { *c = 60; return OK; }
int nvmlDeviceGetTemperatureThreshold(void *d, int which, unsigned *c) { *c = 90; return OK; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, void *list) { *n = 0; return OK; }
int nvmlDeviceGetProcessUtilization(void *d, void *list, unsigned *n, unsigned long long since) {
  *n = 0;
  return NOT_FOUND;
}
