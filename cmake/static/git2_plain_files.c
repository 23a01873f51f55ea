// SPDX-License-Identifier: Apache-2.0
/* What libgit2 opens was put there by others, and libgit2 does not look: an `[include]` of a named
 * pipe would wait for its writer for ever, a device could do anything, and a file is read whole.
 * Every open of libgit2's goes through its p_open; this stands in its place (--wrap=p_open). */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of everything but objects, which are mapped and not read: configuration, references, indexes. A
 * monorepo's index has 100 MB. */
static const off_t read_bytes_max = 1LL << 30;
static off_t read_bytes;

int __wrap_p_open(const char *path, volatile int flags, ...);

static int plain(const struct stat *facts) { return S_ISREG(facts->st_mode) || S_ISDIR(facts->st_mode); }

int __wrap_p_open(const char *path, volatile int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list rest;
    va_start(rest, flags);
    mode = (mode_t)va_arg(rest, int);
    va_end(rest);
  }
  struct stat facts;
  /* Before, since opening a device can do something; after, for what was put there in between. */
  if (stat(path, &facts) == 0 && !plain(&facts)) {
    errno = EINVAL;
    return -1;
  }
  int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC, mode);
  if (fd < 0) return -1;
  int error = 0;
  if (fstat(fd, &facts) != 0 || !plain(&facts)) {
    error = EINVAL;
  } else if (S_ISREG(facts.st_mode) && strstr(path, "/objects/") == NULL) {
    if (facts.st_size > read_bytes_max - read_bytes) error = EFBIG;
    else read_bytes += facts.st_size;
  }
  if (error == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}
