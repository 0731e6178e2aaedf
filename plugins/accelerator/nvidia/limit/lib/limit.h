/* libberthlimit.so holds all processes of a container to its part of a GPU's
 * memory. The loader puts it before the driver's libraries; it counts what the
 * program allocates and refuses what is too much, as a full GPU would.
 *
 *   settings.c  the limits, a file beside the library
 *   usage.c     what the processes hold, a file that all of them share
 *   held.c      what this process holds, to know the size of what it frees
 *   cuda.c      the driver's calls for memory
 *   virtual.c   the driver's calls for memory that programs map themselves
 *   context.c   the driver's calls that free whatever a context holds
 *   nvml.c      what nvidia-smi and its like show
 *   hook.c      how programs find those calls
 *
 * A call that is not listed in hook.c goes to the driver as if the library were
 * not there. A limit that cannot be kept refuses every allocation. */
#ifndef BERTH_LIMIT_H
#define BERTH_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#ifndef __GLIBC__
#error "only glibc looks up symbols in the way this library needs"
#endif

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 16
#define UNLIMITED (-1)

/* settings.c */
int settings_ready(void);                 /* 0: the limits are broken, and stderr says why */
int settings_find(const char *uuid);      /* a GPU's place among the limits, or UNLIMITED */
uint64_t settings_limit(int place);
void settings_path(const char *name, char *path, size_t size); /* beside the library */
void complain(const char *what, const char *why);

/* usage.c: all are safe in any thread and process */
int usage_take(int place, uint64_t bytes); /* 0: there is no room */
void usage_give(int place, uint64_t bytes);
uint64_t usage_total(int place);           /* of all living processes */
void usage_forked(void);

/* held.c */
enum kind { MEMORY, HANDLE, MAPPING, ARRAY };
struct held {
  struct held *next;
  enum kind kind;
  uint64_t key;    /* what the driver calls it */
  int place;
  uint64_t bytes;
  void *context;   /* that it dies with, or none */
  unsigned count;  /* of a handle: how often it must be released */
  unsigned uses;   /* of a handle: its mappings, and 1 until it is released */
  struct held *block; /* of a mapping: what is mapped */
};
int held_ready(void);
void held_put(struct held *);
struct held *held_take(enum kind, uint64_t key); /* none: not ours, or gone already */
void held_again(uint64_t mapping, uint64_t handle); /* one release more */
int held_use(uint64_t handle, struct held *mapping); /* 0: the handle is not ours */
int held_unused(struct held *);                  /* one use less; 1: it was the last */
void held_drop(void *context);       /* all that died with a context */

/* hook.c */
void *next_symbol(void *library, const char *name); /* dlsym, as if nothing were between */
void *cuda_symbol(const char *name);
void *nvml_symbol(const char *name);

/* REAL declares real, the driver's own function, which is looked up once. */
#define REAL(library, result, name, ...)                                     \
  static void *found;                                                        \
  void *got = __atomic_load_n(&found, __ATOMIC_ACQUIRE);                     \
  if (!got) {                                                                \
    got = library##_symbol(#name);                                           \
    __atomic_store_n(&found, got, __ATOMIC_RELEASE);                         \
  }                                                                          \
  result (*real)(__VA_ARGS__) = (result (*)(__VA_ARGS__))got

#endif
