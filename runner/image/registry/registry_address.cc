// SPDX-License-Identifier: Apache-2.0
#include "image/registry/registry_address.h"

#include <algorithm>

#include "image/source/reference.h"

namespace image {
namespace {

// Docker's own registry has its API elsewhere.
std::string ApiHost(const std::string& host) {
  return host == "docker.io" ? "registry-1.docker.io" : host;
}

Status CheckInsecure(const std::vector<std::string>& insecure) {
  for (const std::string& host : insecure) {
    Result<net::Url> url = net::ParseUrl("http://" + host + "/");
    if (!url.ok() || host.find('/') != std::string::npos) {
      return Error{Code::kUsage, "--insecure-registry: \"" + host + "\" is not host[:port]"};
    }
    if (net::KindOf(url.value().host) != net::AddressKind::kLoopback &&
        std::count(insecure.begin(), insecure.end(), host) < 2) {
      return Error{Code::kUsage,
                   "--insecure-registry: " + host +
                       " is not this machine: images and credentials would be sent unencrypted "
                       "over a network",
                   "--insecure-registry " + host + " --insecure-registry " + host};
    }
  }
  return Ok();
}

Status Refuse(const net::Url& origin, const net::Url& target, const char* why) {
  return Error{Code::kRefused,
               origin.host + " redirects to " + net::ShownUrl(target.text) + ": " + why};
}

Status CheckKind(const net::Url& origin, const net::Url& target, net::AddressKind address) {
  switch (address) {
    case net::AddressKind::kLoopback:
      return Refuse(origin, target, "this machine");
    case net::AddressKind::kLinkLocal:
      return Refuse(origin, target, "a link-local address, as used for cloud metadata");
    case net::AddressKind::kUnusable:
      return Refuse(origin, target, "not a host address");
    case net::AddressKind::kPrivate:
    case net::AddressKind::kName:
    case net::AddressKind::kPublic:
      return Ok();
  }
  ENSURE(false);
}

}  // namespace

Result<RegistryAddress> MakeRegistryAddress(const std::string& host, const std::string& repository,
                                            const std::vector<std::string>& insecure) {
  TRY(CheckInsecure(insecure));
  const bool http = std::find(insecure.begin(), insecure.end(), host) != insecure.end();
  RegistryAddress address{host, repository, {}};
  address.base = TRY(net::ParseUrl((http ? "http://" : "https://") + ApiHost(host) + "/"));
  return address;
}

Result<std::vector<RegistryAddress>> MirrorsOf(const std::string& host,
                                               const std::string& repository,
                                               const std::vector<std::string>& mirrors,
                                               const std::vector<std::string>& insecure) {
  std::vector<RegistryAddress> found;
  for (const std::string& entry : mirrors) {
    const size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    std::string place = equals == std::string::npos ? "" : entry.substr(equals + 1);
    while (place.ends_with('/')) place.pop_back();
    // Read as a reference is, so that a mirror's name has the same grammar and bounds.
    Result<Reference> parsed = ParseReference(place + "/" + repository);
    const std::string mirror_host = place.substr(0, place.find('/'));
    if (name.empty() || place.empty() || !parsed.ok() || parsed.value().host != mirror_host ||
        parsed.value().kind != Reference::Kind::kRegistry) {
      return Error{Code::kUsage, "mirror \"" + entry + "\" is not REGISTRY=HOST[:PORT][/PREFIX]",
                   "docker.io=mirror.example:5000"};
    }
    if (name != host) continue;
    found.push_back(TRY(MakeRegistryAddress(mirror_host, parsed.value().repository, insecure)));
  }
  return found;
}

Status CheckTarget(const net::Url& origin, const net::Url& target, TargetKind kind) {
  if (target.scheme == "http" && origin.scheme == "https") {
    return Refuse(origin, target, "without TLS");
  }
  if (target.host == origin.host) return Ok();
  if (target.scheme == "http" && kind == TargetKind::kRealm) {
    return Refuse(origin, target, "credentials without TLS to another host");
  }
  const net::AddressKind address = net::KindOf(target.host);
  if (address == net::AddressKind::kPrivate && kind == TargetKind::kRealm) {
    return Refuse(origin, target, "a private address, for credentials");
  }
  return CheckKind(origin, target, address);
}

Status CheckConnected(const net::Url& origin, const net::Url& target, const std::string& address) {
  return target.host == origin.host ? Ok() : CheckKind(origin, target, net::KindOf(address));
}

}  // namespace image
