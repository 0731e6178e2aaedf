/* A program that uses the GPU as it is told on standard input, a line an order,
 * and answers each with a line. Its argument says how it finds the driver's
 * calls: link, dlsym, proc (cuGetProcAddress), proc2 (its second form), own
 * (streams of the thread's own). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;
typedef unsigned long long u64l;

#define CALLS(X)                                                                    \
  X(cuMemAlloc_v2, cuMemAlloc, (u64 *, size_t))                                     \
  X(cuMemAllocManaged, cuMemAllocManaged, (u64 *, size_t, unsigned))                \
  X(cuMemAllocPitch_v2, cuMemAllocPitch, (u64 *, size_t *, size_t, size_t, unsigned)) \
  X(cuMemAllocAsync, cuMemAllocAsync, (u64 *, size_t, void *))                      \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, (u64 *, size_t, void *, void *)) \
  X(cuMemFree_v2, cuMemFree, (u64))                                                 \
  X(cuMemFreeAsync, cuMemFreeAsync, (u64, void *))                                  \
  X(cuMemCreate, cuMemCreate, (u64 *, size_t, const int *, u64l))                   \
  X(cuMemRelease, cuMemRelease, (u64))                                              \
  X(cuMemMap, cuMemMap, (u64, size_t, size_t, u64, u64l))                           \
  X(cuMemUnmap, cuMemUnmap, (u64, size_t))                                          \
  X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, (u64 *, u64))         \
  X(cuArrayCreate_v2, cuArrayCreate, (u64 *, const size_t *))                       \
  X(cuArray3DCreate_v2, cuArray3DCreate, (u64 *, const size_t *))                   \
  X(cuArrayDestroy, cuArrayDestroy, (u64))                                          \
  X(cuMemGetInfo_v2, cuMemGetInfo, (size_t *, size_t *))                            \
  X(cuDeviceTotalMem_v2, cuDeviceTotalMem, (size_t *, int))

#define DECLARE(symbol, name, args) \
  extern int symbol args;           \
  static int(*p_##name) args;
CALLS(DECLARE)
extern int cuInit(unsigned), cuCtxSetCurrent(void *), cuCtxCreate_v2(void **, unsigned, int), cuCtxDestroy_v2(void *),
    cuDevicePrimaryCtxRetain(void **, int), cuDevicePrimaryCtxReset_v2(int), cuDevicePrimaryCtxRelease_v2(int);
extern size_t standin_peak(int);
extern void standin_refuse(int);

static void die(const char *why) {
  fprintf(stderr, "probe: %s\n", why);
  exit(1);
}

static void find(const char *how) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) die(dlerror());
  int (*first)(const char *, void **, int, u64) = (int (*)(const char *, void **, int, u64))dlsym(cuda, "cuGetProcAddress");
  int (*second)(const char *, void **, int, u64, int *) = NULL;
  if (first("cuGetProcAddress", (void **)&second, 12000, 0) || !second) die("no second form");
#define FIND(symbol, name, args)                                                                  \
  if (!strcmp(how, "link")) p_##name = symbol;                                                    \
  else if (!strcmp(how, "dlsym")) p_##name = (int(*) args)dlsym(cuda, #symbol);                   \
  else if (!strcmp(how, "proc")) first(#name, (void **)&p_##name, 11030, 0);                      \
  else if (!strcmp(how, "proc2")) second(#name, (void **)&p_##name, 12080, 0, NULL);              \
  else if (!strcmp(how, "own")) second(#name, (void **)&p_##name, 12080, 2, NULL);                \
  if (!p_##name) die("no " #name);
  CALLS(FIND)
  void *none = (void *)1;
  if (dlsym(cuda, "cuNoSuchCall") || !second("cuNoSuchCall", &none, 12000, 0, NULL) || none) die("a call that is not there was found");
}

static struct { char kind; u64 p; } things[4096];
static int count;
static int device;

static int allocate(const char *kind, size_t n, u64 *p) {
  int how[8] = {1, 0, 1, device};
  size_t pitch, flat[4] = {n / 4, 1, 0x20 | (u64)1 << 32}, deep[5] = {n / 16, 2, 2, 0x20 | (u64)1 << 32, 0};
  switch (*kind) {
  case 'm': return p_cuMemAlloc(p, n);
  case 'g': return p_cuMemAllocManaged(p, n, 1);
  case 'p': return p_cuMemAllocPitch(p, &pitch, 100, n / 1024, 4);
  case 'a': return p_cuMemAllocAsync(p, n, NULL);
  case 'f': return p_cuMemAllocFromPoolAsync(p, n, NULL, NULL);
  case 'c': return p_cuMemCreate(p, n, how, 0);
  case 'h': how[2] = 2; return p_cuMemCreate(p, n, how, 0); /* on the host */
  case 'r': return p_cuArrayCreate(p, flat);
  case 'd': return p_cuArray3DCreate(p, deep);
  }
  return -1;
}

static int release(char kind, u64 p) {
  switch (kind) {
  case 'a': case 'f': return p_cuMemFreeAsync(p, NULL);
  case 'c': case 'h': return p_cuMemRelease(p);
  case 'r': case 'd': return p_cuArrayDestroy(p);
  }
  return p_cuMemFree(p);
}

/* form_of finds the form of a call that programs made for a version of CUDA use; 1 is the form under
 * the bare name, and 0 is the linked one. */
static void *form_of(const char *name, long version) {
  int (*form)(const char *, void **, int, u64) = (int (*)(const char *, void **, int, u64))dlsym(RTLD_DEFAULT, "cuGetProcAddress");
  void *call = NULL;
  if (version == 1) return dlsym(RTLD_DEFAULT, name);
  if (version) form(name, &call, (int)version, 0);
  return call;
}

static size_t thread_bytes;
static pthread_barrier_t all_have; /* once, to see them at the limit together */
static void *thread(void *rounds) {
  int refused = 0;
  void *context;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  for (long i = 0; i < (long)rounds; i++) {
    u64 p[3];
    int got = 0;
    while (got < 3 && !p_cuMemAlloc(&p[got], thread_bytes)) got++;
    refused += got < 3;
    if (i == 0) pthread_barrier_wait(&all_have);
    while (got) p_cuMemFree(p[--got]);
  }
  return (void *)(long)refused;
}

static void threads(int n, long rounds, size_t bytes) {
  pthread_t ids[64];
  long refused = 0;
  thread_bytes = bytes;
  pthread_barrier_init(&all_have, NULL, (unsigned)n);
  for (int i = 0; i < n; i++) pthread_create(&ids[i], NULL, thread, (void *)rounds);
  for (int i = 0; i < n; i++) {
    void *r;
    pthread_join(ids[i], &r);
    refused += (long)r;
  }
  printf("%zu %s\n", standin_peak(0), refused ? "refused" : "never");
}

static void bench(long n) {
  struct timespec a, b;
  u64 p;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (long i = 0; i < n; i++) {
    if (p_cuMemAlloc(&p, 4096)) die("the benchmark was refused");
    p_cuMemFree(p);
  }
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("%.1f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n);
}

static void child(size_t n) {
  fflush(stdout);
  if (!fork()) {
    u64 p;
    printf("%d\n", allocate("m", n, &p));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
}

static int sees(size_t *total, size_t *left, size_t *used, int second) {
  static void *nvml;
  struct { unsigned version; u64l total, reserved, free, used; } m2 = {0};
  struct { u64l total, free, used; } m = {0};
  void *d;
  if (!nvml && !(nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW))) die(dlerror());
  ((int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"))((unsigned)device, &d);
  int r = ((int (*)(void *, void *))dlsym(nvml, second ? "nvmlDeviceGetMemoryInfo_v2" : "nvmlDeviceGetMemoryInfo"))(d, second ? (void *)&m2 : &m);
  *total = second ? m2.total : m.total, *left = second ? m2.free : m.free, *used = second ? m2.used : m.used;
  return r;
}

int main(int argc, char **argv) {
  char order[32], what[32];
  size_t n, a, b, c;
  long k;
  void *context;
  find(argc > 1 ? argv[1] : "link");
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  if (argc > 2) printf("%s\n", argv[2]), fflush(stdout);
  while (scanf("%31s", order) == 1) {
    if (!strcmp(order, "alloc") && scanf("%31s %zu", what, &n) == 2) {
      things[count].kind = *what;
      int r = allocate(what, n, &things[count].p);
      if (!r) count++;
      printf("%d\n", r);
    } else if (!strcmp(order, "free") && scanf("%ld", &k) == 1) { /* -1: the last */
      k = k < 0 ? --count : k;
      printf("%d\n", release(things[k].kind, things[k].p));
    } else if (!strcmp(order, "map") && scanf("%ld %zu %zu", &k, &a, &n) == 3) {
      printf("%d\n", p_cuMemMap(a, n, 0, things[k < 0 ? count - 1 : k].p, 0));
    } else if (!strcmp(order, "unmap") && scanf("%zu %zu", &a, &n) == 2) {
      printf("%d\n", p_cuMemUnmap(a, n));
    } else if (!strcmp(order, "retain") && scanf("%zu", &a) == 1) {
      things[count].kind = 'c';
      printf("%d\n", p_cuMemRetainAllocationHandle(&things[count++].p, a));
    } else if (!strcmp(order, "refuse") && scanf("%ld", &k) == 1) {
      standin_refuse((int)k);
      printf("0\n");
    } else if (!strcmp(order, "foreign")) {
      printf("%d\n", release('m', 0x123456789));
    } else if (!strcmp(order, "device") && scanf("%d", &device) == 1) {
      cuDevicePrimaryCtxRetain(&context, device);
      cuCtxSetCurrent(context);
      printf("0\n");
    } else if (!strcmp(order, "info")) {
      int r = p_cuMemGetInfo(&a, &b);
      p_cuDeviceTotalMem(&c, device);
      printf("%d %zu %zu %zu\n", r, a, b, c);
    } else if (!strcmp(order, "nvml") && scanf("%zu", &n) == 1) {
      int r = sees(&b, &a, &c, n == 2);
      printf("%d %zu %zu %zu\n", r, a, b, c);
    } else if (!strcmp(order, "context")) {
      printf("%d\n", cuCtxCreate_v2(&context, 0, device));
    } else if (!strcmp(order, "destroy") && scanf("%ld", &k) == 1) {
      int (*destroy)(void *) = (int (*)(void *))form_of("cuCtxDestroy", k);
      printf("%d\n", destroy ? destroy(context) : cuCtxDestroy_v2(context));
    } else if (!strcmp(order, "reset") && scanf("%ld", &k) == 1) {
      int (*reset)(int) = (int (*)(int))form_of("cuDevicePrimaryCtxReset", k);
      printf("%d\n", reset ? reset(device) : cuDevicePrimaryCtxReset_v2(device));
    } else if (!strcmp(order, "release") && scanf("%ld", &k) == 1) {
      int (*release)(int) = (int (*)(int))form_of("cuDevicePrimaryCtxRelease", k);
      printf("%d\n", release ? release(device) : cuDevicePrimaryCtxRelease_v2(device));
    } else if (!strcmp(order, "future")) {
      int (*form)(const char *, void **, int, u64) = (int (*)(const char *, void **, int, u64))dlsym(RTLD_DEFAULT, "cuGetProcAddress");
      int (*call)(u64 *, size_t, void *, int) = NULL;
      u64 p;
      form("cuMemAllocAsync", (void **)&call, 99000, 0);
      printf("%d\n", call(&p, 1 << 20, NULL, 7));
    } else if (!strcmp(order, "threads") && scanf("%zu %ld %zu", &n, &k, &a) == 3) {
      threads((int)n, k, a);
    } else if (!strcmp(order, "fork") && scanf("%zu", &n) == 1) {
      child(n);
    } else if (!strcmp(order, "exec")) {
      execl("/proc/self/exe", "probe", "link", "again", NULL);
      die("exec");
    } else if (!strcmp(order, "bench") && scanf("%ld", &k) == 1) {
      bench(k);
    } else {
      die("an order is not understood");
    }
    fflush(stdout);
  }
  return 0;
}
