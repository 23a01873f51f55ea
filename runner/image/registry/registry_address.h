// SPDX-License-Identifier: Apache-2.0
// The address of a registry's API, and the addresses that it may redirect to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/url.h"

namespace image {

// One repository of one registry.
struct RegistryAddress {
  std::string host;        // The host, as in a reference: "docker.io", "127.0.0.1:5000".
  std::string repository;  // "library/debian"
  net::Url base;           // "https://registry-1.docker.io/"

  // Returns "host/repository", for people.
  std::string Name() const { return host + "/" + repository; }
  // Returns the API's address of `path`, "manifests/latest".
  std::string ApiUrl(std::string_view path) const {
    return base.text + "v2/" + repository + "/" + std::string(path);
  }
};

// Makes an https address, unless `host` is in `insecure`. Fails with kUsage if `insecure` holds a
// host that is not this machine's loopback and is not there twice. `host` and `repository` are of a
// parsed reference.
Result<RegistryAddress> MakeRegistryAddress(const std::string& host, const std::string& repository,
                                            const std::vector<std::string>& insecure);

// Returns the mirrors of `host` among `mirrors` ("docker.io=mirror.example:5000[/prefix]"), in
// their order. Fails with kUsage if an entry is not of that form.
Result<std::vector<RegistryAddress>> MirrorsOf(const std::string& host,
                                               const std::string& repository,
                                               const std::vector<std::string>& mirrors,
                                               const std::vector<std::string>& insecure);

// The kinds of address that a registry points to.
enum class TargetKind {
  kBlob,   // A redirect. No credential goes there.
  kRealm,  // A token service, or its redirect. It gets the registry's credentials.
};

// Checks that `target` may be asked because the registry `origin` says so: never http where the
// registry has https; over http only the registry's own host for a realm; and no address that means
// this machine or its metadata service (for a realm: nor any private one), unless it is the very
// host that the registry has. Otherwise kRefused. (A GitLab that is known by its address has its
// realm on another port of it; so the host counts, not the port.)
Status CheckTarget(const net::Url& origin, const net::Url& target, TargetKind kind);

// Checks the address that the name in `target` turned out to have: neither this machine's nor its
// metadata service's, unless it is the very host that the registry has. Otherwise kRefused. (A name
// may lead to a private address, also for a realm: its certificate tells whose it is.)
Status CheckConnected(const net::Url& origin, const net::Url& target, const std::string& address);

}  // namespace image
