// SPDX-License-Identifier: Apache-2.0
/* SPDX-License-Identifier: Apache-2.0
 *
 * In a static binary glibc's name service functions would load shared objects at run time. These
 * definitions are linked before libc, so its members with those calls never enter the program:
 * names are resolved by c-ares, users and groups are numbers here, and nothing is ever dlopen'ed
 * (an OpenSSL configuration that names a provider included). Each one fails as its manual page
 * says a failure looks. */
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stddef.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
  if (result != NULL) *result = NULL;
  return EAI_FAIL;
}
void freeaddrinfo(struct addrinfo *list) {}
const char *gai_strerror(int code) { return "names are not resolved by libc in this program"; }
int getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size,
                char *service, socklen_t service_size, int flags) {
  return EAI_FAIL;
}
struct hostent *gethostbyname(const char *name) { return NULL; }
struct servent *getservbyname(const char *name, const char *protocol) { return NULL; }
int getservbyname_r(const char *name, const char *protocol, struct servent *entry, char *buffer,
                    size_t size, struct servent **result) {
  if (result != NULL) *result = NULL;
  return ENOENT;
}
int getservbyport_r(int port, const char *protocol, struct servent *entry, char *buffer, size_t size,
                    struct servent **result) {
  if (result != NULL) *result = NULL;
  return ENOENT;
}

struct passwd *getpwnam(const char *name) { return errno = ENOENT, NULL; }
struct passwd *getpwuid(uid_t uid) { return errno = ENOENT, NULL; }
int getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t size, struct passwd **result) {
  if (result != NULL) *result = NULL;
  return 0;
}
int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **result) {
  if (result != NULL) *result = NULL;
  return 0;
}
struct group *getgrnam(const char *name) { return errno = ENOENT, NULL; }
struct group *getgrgid(gid_t gid) { return errno = ENOENT, NULL; }
int getgrnam_r(const char *name, struct group *entry, char *buffer, size_t size, struct group **result) {
  if (result != NULL) *result = NULL;
  return 0;
}
int getgrgid_r(gid_t gid, struct group *entry, char *buffer, size_t size, struct group **result) {
  if (result != NULL) *result = NULL;
  return 0;
}

void *__wrap_dlopen(const char *file, int flags) { return NULL; }
void *__wrap_dlsym(void *handle, const char *name) { return NULL; }
int __wrap_dlclose(void *handle) { return 0; }
char *__wrap_dlerror(void) { return (char *)"nothing is loaded at run time in this program"; }
int __wrap_dladdr(const void *address, void *info) { return 0; }
