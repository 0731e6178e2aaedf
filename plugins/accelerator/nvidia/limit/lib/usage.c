/* What every process of the container holds: a file named usage beside the
 * library, mapped by all. Each process has a record of its own; those of dead
 * processes are dropped when room is short or somebody looks, because a process
 * that is killed frees nothing itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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
  int64_t pid;    /* as the container numbers it; 0 = free */
  uint64_t start; /* tells two processes of one number apart */
  uint64_t space; /* in which the number is one: containers may nest */
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

/* start_of reads when a process began; 0: it is dead. What cannot be read
 * counts as alive. */
static uint64_t start_of(int64_t pid) {
  char path[40], text[512];
  snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return kill((pid_t)pid, 0) && errno == ESRCH ? 0 : UINT64_MAX;
  ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  if (n <= 0) return kill((pid_t)pid, 0) && errno == ESRCH ? 0 : UINT64_MAX;
  text[n] = 0;
  char *p = strrchr(text, ')'); /* names may hold anything */
  if (!p || p[1] != ' ') return UINT64_MAX;
  if (p[2] == 'Z' || p[2] == 'X') return 0; /* ended, only not yet waited for */
  p += 2;
  for (int field = 3; field < 22 && p; field++) p = strchr(p + 1, ' ');
  return p ? strtoull(p, NULL, 10) : UINT64_MAX;
}

/* records are as many as may be in use; the number is the file's. */
static int records(void) {
  int64_t n = shared->high;
  return n < 0 || n > MAX_PROCESSES ? MAX_PROCESSES : (int)n;
}

/* space numbers this process's pid namespace. */
static uint64_t space(void) {
  char text[64];
  ssize_t n = readlink("/proc/self/ns/pid", text, sizeof text - 1);
  text[n > 0 ? n : 0] = 0;
  char *p = strchr(text, '[');
  return p ? strtoull(p + 1, NULL, 10) : 0;
}

/* bury drops the records of the dead. Those of another namespace cannot be
 * looked up from here, and stay. */
static void bury(void) {
  uint64_t here = space();
  int64_t high = 0;
  for (int i = 0; i < records(); i++) {
    struct record *r = &shared->records[i];
    if (r->pid && i != own && r->space == here) {
      uint64_t start = start_of(r->pid);
      if (start == 0 || (start != UINT64_MAX && start != r->start)) memset(r, 0, sizeof *r);
    }
    if (r->pid) high = i + 1;
  }
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
        r->start = start_of(getpid());
        r->space = space();
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
