/* Uses the driver's interface on the first visible GPU, found as programs find
 * it, without a header of NVIDIA's:
 *
 *   driver check LIMIT   nothing beyond LIMIT bytes can be had, and all of it can
 *   driver hold BYTES    takes memory, says so, and holds it until its input ends
 *   driver share BYTES N under MPS: no more than BYTES can be had, and N multiprocessors are seen
 *   driver processors 0  prints the number of multiprocessors
 *   driver pair N BYTES  prints the nanoseconds of an allocation and its free
 *
 * Each check is a line that begins with ok or FAILED. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long ptr;
enum { OUT_OF_MEMORY = 2 };

static void *cuda;
static int failed;
static int (*alloc)(ptr *, size_t), (*drop)(ptr), (*info)(size_t *, size_t *), (*total)(size_t *, int),
    (*async)(ptr *, size_t, void *), (*fill)(ptr, unsigned char, size_t), (*sync_context)(void);

static void die(const char *what, int code) {
  fprintf(stderr, "driver: %s: error %d\n", what, code);
  exit(2);
}

static void *find(const char *name) {
  void *f = dlsym(cuda, name);
  if (!f) die(name, 500);
  return f;
}

static void begin(void) {
  int (*init)(unsigned), (*retain)(void **, int), (*current)(void *), code;
  void *context;
  cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) die(dlerror(), 0);
  init = (int (*)(unsigned))find("cuInit");
  retain = (int (*)(void **, int))find("cuDevicePrimaryCtxRetain");
  current = (int (*)(void *))find("cuCtxSetCurrent");
  if ((code = init(0)) || (code = retain(&context, 0)) || (code = current(context))) die("begin", code);
}

static void by_name(void) {
  alloc = (int (*)(ptr *, size_t))find("cuMemAlloc_v2");
  drop = (int (*)(ptr))find("cuMemFree_v2");
  info = (int (*)(size_t *, size_t *))find("cuMemGetInfo_v2");
  total = (int (*)(size_t *, int))find("cuDeviceTotalMem_v2");
  async = (int (*)(ptr *, size_t, void *))find("cuMemAllocAsync");
  fill = (int (*)(ptr, unsigned char, size_t))dlsym(cuda, "cuMemsetD8_v2");
  sync_context = (int (*)(void))dlsym(cuda, "cuCtxSynchronize");
}

static void by_version(void) {
  int (*get)(const char *, void **, int, uint64_t, void *) = (int (*)(const char *, void **, int, uint64_t, void *))find("cuGetProcAddress_v2");
  int code;
  if ((code = get("cuMemAlloc", (void **)&alloc, 12000, 0, NULL)) || (code = get("cuMemFree", (void **)&drop, 12000, 0, NULL)) ||
      (code = get("cuMemGetInfo", (void **)&info, 12000, 0, NULL)) || (code = get("cuDeviceTotalMem", (void **)&total, 12000, 0, NULL)) ||
      (code = get("cuMemAllocAsync", (void **)&async, 12000, 0, NULL)))
    die("cuGetProcAddress", code);
}

static void expect(int good, const char *what, const char *how) {
  printf("%s %s (%s)\n", good ? "ok" : "FAILED", what, how);
  failed |= !good;
}

static void check(size_t limit, const char *how) {
  size_t left = 0, all = 0, device = 0;
  ptr p = 0, q = 0;
  expect(!info(&left, &all) && all == limit && left <= limit, "the memory that is reported is the limit", how);
  expect(!total(&device, 0) && device == limit, "the GPU is reported as large as the limit", how);
  expect(alloc(&p, limit / 4 * 3) == 0, "three quarters of the limit can be had", how);
  if (fill && sync_context) expect(!fill(p, 1, limit / 4 * 3) && !sync_context(), "and be written", how);
  expect(alloc(&q, limit / 2) == OUT_OF_MEMORY, "half of the limit more is refused", how);
  expect(async(&q, limit / 2, NULL) == OUT_OF_MEMORY, "also from a pool", how);
  expect(!drop(p) && !alloc(&p, limit / 2) && !drop(p), "what is freed can be had again", how);
}

static void pair(long n, size_t bytes) {
  struct timespec a, b;
  ptr p;
  int code;
  for (long i = -n / 10; i < n; i++) {
    if (i == 0) clock_gettime(CLOCK_MONOTONIC, &a);
    if ((code = alloc(&p, bytes)) || (code = drop(p))) die("pair", code);
  }
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("%.0f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n);
}

static int processors(void) {
  int (*attribute)(int *, int, int) = (int (*)(int *, int, int))find("cuDeviceGetAttribute");
  enum { MULTIPROCESSOR_COUNT = 16 };
  int n = 0, code = attribute(&n, MULTIPROCESSOR_COUNT, 0);
  if (code) die("cuDeviceGetAttribute", code);
  return n;
}

/* Under MPS the driver reports the multiprocessors of the share, rounded to whole clusters of them. */
static void share(size_t limit, int want) {
  int seen = processors();
  ptr p = 0, q = 0;
  expect(seen >= want - 4 && seen <= want + 4, "the multiprocessors are those of the share", "MPS");
  expect(alloc(&p, limit / 4 * 3) == 0 && !fill(p, 1, limit / 4 * 3) && !sync_context(), "three quarters of its memory can be had and written", "MPS");
  expect(alloc(&q, limit / 2) == OUT_OF_MEMORY, "half of its memory more is refused", "MPS");
  expect(!drop(p) && !alloc(&p, limit / 2) && !drop(p), "what is freed can be had again", "MPS");
  if (failed) printf("of %zu bytes and %d multiprocessors; %d are seen\n", limit, want, seen);
}

int main(int argc, char **argv) {
  if (argc < 3) die("arguments", 0);
  begin();
  by_name();
  if (!strcmp(argv[1], "check")) {
    check(strtoull(argv[2], NULL, 10), "dlsym");
    by_version();
    check(strtoull(argv[2], NULL, 10), "cuGetProcAddress");
  } else if (!strcmp(argv[1], "hold")) {
    ptr p;
    int code = alloc(&p, strtoull(argv[2], NULL, 10));
    printf("%s\n", code == 0 ? "held" : code == OUT_OF_MEMORY ? "refused" : "error");
    fflush(stdout);
    while (getchar() != EOF) continue;
  } else if (!strcmp(argv[1], "processors")) {
    printf("%d\n", processors());
  } else if (!strcmp(argv[1], "share") && argc == 4) {
    share(strtoull(argv[2], NULL, 10), atoi(argv[3]));
  } else if (!strcmp(argv[1], "pair") && argc == 4) {
    pair(atol(argv[2]), strtoull(argv[3], NULL, 10));
  } else {
    die("arguments", 0);
  }
  return failed;
}
