/* What this process holds on limited GPUs. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

#include "limit.h"

static struct held **buckets;
static size_t size, used; /* size is a power of two */
static int prepared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct held **bucket(struct held **in, size_t n, enum kind kind, uint64_t key) {
  uint64_t h = (key ^ (uint64_t)kind << 60) * 0x9e3779b97f4a7c15ULL;
  return &in[(h >> 32) & (n - 1)];
}

/* grow keeps chains short; without memory they are longer. */
static void grow(void) {
  size_t n = size ? size * 4 : 256;
  struct held **next = calloc(n, sizeof *next);
  if (!next) return;
  for (size_t i = 0; i < size; i++)
    for (struct held *h = buckets[i], *after; h; h = after) {
      after = h->next;
      struct held **b = bucket(next, n, h->kind, h->key);
      h->next = *b;
      *b = h;
    }
  free(buckets);
  buckets = next;
  size = n;
}

/* A child has none of its parent's device memory. It leaves the parent's list
 * alone: whatever it was in the middle of is the parent's. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void in_parent(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) {
  buckets = NULL;
  size = used = 0;
  usage_forked();
  pthread_mutex_unlock(&lock);
}

int held_ready(void) {
  pthread_mutex_lock(&lock);
  if (!prepared) prepared = pthread_atfork(before_fork, in_parent, in_child) == 0;
  if (used >= size) grow();
  int ok = prepared && size > 0;
  pthread_mutex_unlock(&lock);
  return ok;
}

void held_put(struct held *h) {
  pthread_mutex_lock(&lock);
  struct held **b = bucket(buckets, size, h->kind, h->key);
  h->next = *b;
  *b = h;
  used++;
  pthread_mutex_unlock(&lock);
}

static struct held **find(enum kind kind, uint64_t key) {
  if (!size) return NULL;
  struct held **at = bucket(buckets, size, kind, key);
  while (*at && ((*at)->kind != kind || (*at)->key != key)) at = &(*at)->next;
  return *at ? at : NULL;
}

struct held *held_take(enum kind kind, uint64_t key) {
  pthread_mutex_lock(&lock);
  struct held **at = find(kind, key), *h = at ? *at : NULL;
  if (h) {
    *at = h->next;
    used--;
  }
  pthread_mutex_unlock(&lock);
  return h;
}

/* A handle that was released and is retained again through a mapping is back. */
void held_again(uint64_t mapping, uint64_t handle) {
  pthread_mutex_lock(&lock);
  struct held **at = find(HANDLE, handle), **m = find(MAPPING, mapping);
  if (at) {
    (*at)->count++;
  } else if (m && (*m)->block->count == 0) {
    struct held *h = (*m)->block, **b = bucket(buckets, size, HANDLE, handle);
    h->count = 1;
    h->uses++;
    h->key = handle;
    h->next = *b;
    *b = h;
    used++;
  }
  pthread_mutex_unlock(&lock);
}

int held_use(uint64_t handle, struct held *mapping) {
  pthread_mutex_lock(&lock);
  struct held **at = find(HANDLE, handle);
  if (at) {
    mapping->block = *at;
    (*at)->uses++;
  }
  pthread_mutex_unlock(&lock);
  if (at) held_put(mapping);
  return at != NULL;
}

int held_unused(struct held *h) {
  pthread_mutex_lock(&lock);
  int last = --h->uses == 0;
  pthread_mutex_unlock(&lock);
  return last;
}

void held_drop(void *context) {
  struct held *gone = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < size; i++)
    for (struct held **at = &buckets[i]; *at;) {
      struct held *h = *at;
      if (!h->context || h->context != context) {
        at = &h->next;
        continue;
      }
      *at = h->next;
      used--;
      h->next = gone;
      gone = h;
    }
  pthread_mutex_unlock(&lock);
  for (struct held *next; gone; gone = next) {
    next = gone->next;
    usage_give(gone->place, gone->bytes);
    free(gone);
  }
}
