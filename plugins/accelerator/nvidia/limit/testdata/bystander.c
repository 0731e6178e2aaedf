/* A second preloaded library, which looks for the next malloc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void *malloc(size_t n) {
  static void *(*next)(size_t);
  if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
  return (void *)next == (void *)malloc ? NULL : next(n);
}
