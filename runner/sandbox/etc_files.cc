// SPDX-License-Identifier: Apache-2.0
#include "sandbox/etc_files.h"

namespace sandbox {

std::vector<std::pair<std::string, SharedText>> EtcFiles(const SandboxRequest& request,
                                                         uid_t inner_uid, gid_t inner_gid) {
  std::string uid = std::to_string(inner_uid);
  std::string gid = std::to_string(inner_gid);
  std::vector<std::pair<std::string, SharedText>> files = {
      {"/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:" + uid + ":" + gid +
                          ":agent:" + kHome +
                          ":/bin/bash\n"
                          "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
      {"/etc/group", "root:x:0:\nsandbox:x:" + gid + ":\nnogroup:x:65534:\n"},
      {"/etc/hostname", "sandbox\n"},
      {"/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n"},
      // The gateway answers there, at once.
      {"/etc/resolv.conf",
       std::string("options timeout:1 attempts:1\nnameserver ") + kProxyAddress + "\n"},
      {kCaFile, request.ca_pem},
      {kCaBundleFile, request.ca_bundle}};
  if (request.ca_java.present()) files.emplace_back(kCaJavaFile, request.ca_java);
  return files;
}

}  // namespace sandbox
