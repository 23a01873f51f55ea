// SPDX-License-Identifier: Apache-2.0
/* SPDX-License-Identifier: Apache-2.0
 *
 * The ten symbols behind which Debian's libgit2.a keeps HTTP, SSH, mbedtls and gssapi. Defined
 * here, those members stay out of the link: this program's libgit2 reads and writes repositories
 * and cannot open a connection. */
#include <git2.h>
#include <git2/sys/transport.h>

static int refuse(void) {
  git_error_set_str(GIT_ERROR_NET, "libgit2 has no network transport in this program");
  return -1;
}
int git_smart_subtransport_http(git_smart_subtransport **out, git_transport *owner, void *param) { return refuse(); }
int git_smart_subtransport_git(git_smart_subtransport **out, git_transport *owner, void *param) { return refuse(); }
int git_smart_subtransport_ssh(git_smart_subtransport **out, git_transport *owner, void *param) { return refuse(); }
int git_transport_ssh_with_paths(git_transport **out, git_remote *owner, void *param) { return refuse(); }
int git_transport_ssh_global_init(void) { return 0; }
int git_mbedtls_stream_global_init(void) { return 0; }
int git_mbedtls__set_cert_location(const char *file, const char *path) { return refuse(); }
int git_mbedtls_stream_new(void **out, const char *host, const char *port) { return refuse(); }
int git_mbedtls_stream_wrap(void **out, void *in, const char *host) { return refuse(); }
unsigned char git_http__expect_continue;
