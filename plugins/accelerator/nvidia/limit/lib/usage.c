/* What every process of the container holds: a file named usage beside the
 * library, mapped by all. Each process has a record of its own, and for as long as
 * it lives a lock on a byte of the file that stands for the record: the kernel
 * takes it away with the process, however that ends and in whichever namespace.
 * Records without are dropped when room is short or somebody looks, because a
 * process that is killed frees nothing itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "limit.h"
#include "glibc.h"

#define MAX_PROCESSES 1024
#define MAGIC 0x62657274686c3031ULL /* berthl01 */

struct record {
  int64_t pid;    /* 0 = free */
  uint64_t start; /* tells two processes of one number apart; 0 = not known */
  uint64_t bytes[MAX_DEVICES];
};

/* shared is the file. The plugin makes it, long enough and full of zeros. */
static struct shared {
  uint64_t magic;
  union { pthread_mutex_t lock; char room[112]; };
  int64_t high; /* all records after these are free */
  struct record records[MAX_PROCESSES];
} *shared;

static int broken;
static int own = -1; /* this process's record */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* begin makes the lock, which the first process does for all. A process that is
 * killed while it has it leaves it to the next. */
static const char *begin(struct shared *s) {
  if (s->magic == MAGIC) return NULL;
  if (s->magic) return "the file is of another version";
  pthread_mutexattr_t how;
  if (pthread_mutexattr_init(&how) || pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED) ||
      pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST) || pthread_mutex_init(&s->lock, &how))
    return "its lock cannot be made";
  __atomic_store_n(&s->magic, MAGIC, __ATOMIC_RELEASE);
  return NULL;
}

static const char *open_file(const char *path) {
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return strerror(errno);
  const char *why = NULL;
  struct shared *s = MAP_FAILED;
  if (lseek(file, 0, SEEK_END) < (off_t)sizeof *s)
    why = "the file is too short";
  else if ((s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) == MAP_FAILED || flock(file, LOCK_EX))
    why = strerror(errno);
  else
    why = begin(s);
  flock(file, LOCK_UN); /* the mapping would keep it */
  close(file);
  if (!why) __atomic_store_n(&shared, s, __ATOMIC_RELEASE);
  return why;
}

static int ready(void) {
  if (__atomic_load_n(&shared, __ATOMIC_ACQUIRE)) return 1;
  pthread_mutex_lock(&opening);
  if (!shared && !broken) {
    char path[4096];
    settings_path("usage", path, sizeof path);
    const char *why = open_file(path);
    if (why) complain(path, why);
    broken = why != NULL;
  }
  pthread_mutex_unlock(&opening);
  return shared != NULL;
}

/* pin locks the record's byte. The lock belongs to the open file, which the
 * mapping keeps until the process ends or becomes another program; a child does
 * not get it. */
static int pin(int record) {
  char path[4096];
  settings_path("usage", path, sizeof path);
  struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = record, .l_len = 1};
  int file = open(path, O_RDWR | O_CLOEXEC), good = 0;
  if (file < 0) return 0;
  if (!fcntl(file, F_OFD_SETLK, &byte)) {
    void *m = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
    good = m != MAP_FAILED && !madvise(m, 1, MADV_DONTFORK);
  }
  close(file);
  return good;
}

/* stat_of reads when a process began and how large it is; 0: it is not there, or
 * nothing is left of it. */
static int stat_of(int64_t pid, uint64_t *start, uint64_t *size) {
  char path[40], text[512];
  snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  text[n > 0 ? n : 0] = 0;
  char *p = strrchr(text, ')'); /* names may hold anything */
  if (!p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X') return 0;
  p += 2;
  for (int field = 3; field < 22 && p; field++) p = strchr(p + 1, ' ');
  if (!p) return 0;
  *start = strtoull(p, &p, 10);
  *size = strtoull(p, NULL, 10);
  return 1;
}

/* ending tells whether a record's process has lost its memory and is not quite
 * gone: the driver may still be freeing what it held. */
static int ending(const struct record *r) {
  uint64_t start, size;
  return stat_of(r->pid, &start, &size) && start == r->start && size == 0;
}

/* records are as many as may be in use; the number is the file's. */
static int records(void) {
  int64_t n = shared->high;
  return n < 0 || n > MAX_PROCESSES ? MAX_PROCESSES : (int)n;
}

/* bury drops the records of the dead. */
static void bury(void) {
  char path[4096];
  settings_path("usage", path, sizeof path);
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  int64_t high = 0;
  for (int i = 0; i < records(); i++) {
    struct record *r = &shared->records[i];
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i, .l_len = 1};
    if (r->pid && i != own && !fcntl(file, F_OFD_GETLK, &byte) && byte.l_type == F_UNLCK && !ending(r)) memset(r, 0, sizeof *r);
    if (r->pid) high = i + 1;
  }
  close(file);
  shared->high = high;
}

static int enter(void) {
  if (!ready()) return 0;
  int e = pthread_mutex_lock(&shared->lock);
  if (e == EOWNERDEAD) e = pthread_mutex_consistent(&shared->lock); /* every number is right at any moment */
  if (e) complain("the shared counter", strerror(e));
  return e == 0;
}

static void leave(void) { pthread_mutex_unlock(&shared->lock); }

static uint64_t sum(int place) {
  uint64_t n = 0;
  for (int i = 0, all = records(); i < all; i++) n += shared->records[i].pid ? shared->records[i].bytes[place] : 0;
  return n;
}

static struct record *mine(void) {
  if (own >= 0) return &shared->records[own];
  for (int try = 0; try < 2; try++, bury())
    for (int i = 0; i < MAX_PROCESSES; i++)
      if (!shared->records[i].pid) {
        struct record *r = &shared->records[i];
        memset(r, 0, sizeof *r);
        uint64_t size;
        stat_of(getpid(), &r->start, &size);
        if (!pin(i)) {
          complain("the shared counter", "this process cannot be told from others");
          return NULL;
        }
        r->pid = getpid();
        if (i >= shared->high) shared->high = i + 1;
        own = i;
        return r;
      }
  complain("the shared counter", "too many processes");
  return NULL;
}

int usage_take(int place, uint64_t bytes) {
  if (!enter()) return 0;
  uint64_t limit = settings_limit(place), now = sum(place);
  if (now > limit || bytes > limit - now) { /* the dead may hold what is missing */
    bury();
    now = sum(place);
  }
  struct record *r = now <= limit && bytes <= limit - now ? mine() : NULL;
  if (r) r->bytes[place] += bytes;
  leave();
  return r != NULL;
}

void usage_give(int place, uint64_t bytes) {
  if (!enter()) return;
  if (own >= 0) {
    uint64_t *n = &shared->records[own].bytes[place];
    *n -= bytes < *n ? bytes : *n;
  }
  leave();
}

uint64_t usage_total(int place) {
  if (!enter()) return settings_limit(place);
  bury();
  uint64_t n = sum(place);
  leave();
  return n;
}

void usage_forked(void) { own = -1; }
