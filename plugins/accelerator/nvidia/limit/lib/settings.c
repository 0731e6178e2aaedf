/* The limits: a file named limits beside the library, a line for each GPU of
 * which the container has a part: uuid, space, bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "limit.h"
#include "glibc.h"

static struct { char uuid[64]; uint64_t bytes; } limits[MAX_DEVICES];
static int count;
static int state; /* 0 unread, 1 good, -1 broken */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* complain tells a person once; a program that asks for memory in a loop must
 * not fill its log. */
void complain(const char *what, const char *why) {
  static int said;
  char line[512];
  if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) return;
  int n = snprintf(line, sizeof line, "berth: GPU memory is refused: %s: %s\n", what, why);
  if (n > 0 && write(2, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0) return;
}

void settings_path(const char *name, char *path, size_t size) {
  Dl_info self;
  const char *slash = NULL;
  if (dladdr((void *)settings_path, &self) && self.dli_fname) slash = strrchr(self.dli_fname, '/');
  if (slash)
    snprintf(path, size, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, name);
  else
    snprintf(path, size, "%s", name);
}

/* parse reads one line of the form uuid, space, bytes. */
static const char *parse(const char *line, size_t n) {
  const char *space = memchr(line, ' ', n);
  size_t name = space ? (size_t)(space - line) : 0;
  if (name == 0 || name >= sizeof limits[0].uuid) return "a line is not \"uuid bytes\"";
  if (count == MAX_DEVICES) return "there are too many GPUs";
  uint64_t bytes = 0;
  const char *p = space + 1, *end = line + n;
  if (p == end) return "a line is not \"uuid bytes\"";
  for (; p < end; p++) {
    if (*p < '0' || *p > '9') return "a limit is not a number of bytes";
    if (bytes > (UINT64_MAX - 9) / 10) return "a limit is too large";
    bytes = bytes * 10 + (uint64_t)(*p - '0');
  }
  memcpy(limits[count].uuid, line, name);
  limits[count].uuid[name] = 0;
  if (settings_find(limits[count].uuid) != UNLIMITED) return "a GPU is there twice";
  limits[count++].bytes = bytes;
  return NULL;
}

static const char *read_limits(const char *path) {
  char text[4096];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return strerror(errno);
  ssize_t n, all = 0;
  while (all < (ssize_t)sizeof text && ((n = read(file, text + all, sizeof text - (size_t)all)) > 0 || (n < 0 && errno == EINTR)))
    if (n > 0) all += n;
  close(file);
  if (n < 0) return strerror(errno);
  if (all == (ssize_t)sizeof text) return "the file is too long";
  if (all == 0 || text[all - 1] != '\n') return "the file does not end where a line does";
  for (char *line = text, *end = text + all, *stop; line < end; line = stop + 1) {
    stop = memchr(line, '\n', (size_t)(end - line));
    const char *why = parse(line, (size_t)(stop - line));
    if (why) return why;
  }
  return NULL;
}

int settings_ready(void) {
  int s = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (s) return s > 0;
  pthread_mutex_lock(&lock);
  if (!state) {
    char path[4096];
    settings_path("limits", path, sizeof path);
    const char *why = read_limits(path);
    if (why) complain(path, why);
    __atomic_store_n(&state, why ? -1 : 1, __ATOMIC_RELEASE);
  }
  s = state;
  pthread_mutex_unlock(&lock);
  return s > 0;
}

int settings_find(const char *uuid) {
  for (int i = 0; i < count; i++)
    if (!strcmp(limits[i].uuid, uuid)) return i;
  return UNLIMITED;
}

uint64_t settings_limit(int place) { return limits[place].bytes; }
