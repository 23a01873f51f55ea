// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/trusted_root.h"

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <span>

#include "codec/data/embedded_file.h"
#include "sigstore/trust/openssl_owner.h"
#include "sigstore/trust/proto_json.h"

namespace sigstore {

// Generated: cmake/embed.cmake.
std::span<const codec::EmbeddedFile> EmbeddedRoots();

namespace {

constexpr size_t kRootBytesMax = size_t{1} << 20;
constexpr size_t kInstancesMax = 16;
constexpr std::string_view kPkcs1 = "PKCS1_RSA_PKCS1V5";
constexpr auto kMediaTypes = std::to_array<std::string_view>({
    "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "application/vnd.dev.sigstore.trustedroot+json;version=0.2",
    "application/vnd.dev.sigstore.trustedroot.v0.1+json",
    "application/vnd.dev.sigstore.trustedroot.v0.2+json",
});

Rejection BadRoot(std::string what) { return {Reason::kTrustRoot, std::move(what)}; }

Checked<Instant> ReadInstant(const Message& interval, std::string_view name) {
  if (!interval.Has(name)) {
    return Rejection{Reason::kTrustRootValidity, interval.where() + " has no " + std::string(name)};
  }
  std::string text = TRY(interval.Text(name));
  std::optional<Instant> instant = ParseInstant(text);
  if (!instant) {
    return Rejection{Reason::kTrustRootValidity,
                     interval.where() + "." + std::string(name) + " is not a time"};
  }
  return *instant;
}

// Without a start it would be read as "since ever": refused.
Checked<Interval> ReadInterval(const Message& owner) {
  if (!owner.Has("validFor")) {
    return Rejection{Reason::kTrustRootValidity, owner.where() + " has no validFor"};
  }
  Message message = TRY(owner.Child("validFor", {"start", "end"}));
  Interval interval;
  Instant start = TRY(ReadInstant(message, "start"));
  interval.start = start;
  if (message.Has("end")) {
    Instant end = TRY(ReadInstant(message, "end"));
    if (end < start) {
      return Rejection{Reason::kTrustRootValidity, message.where() + " ends before it starts"};
    }
    interval.end = end;
  }
  return interval;
}

// "https://log2025-1.rekor.sigstore.dev:443/x" is of log2025-1.rekor.sigstore.dev.
std::string HostOf(std::string_view url) {
  size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return std::string(url.substr(0, url.find_first_of(":/")));
}

Checked<TrustedLog> ReadLog(const Message& message) {
  TrustedLog log;
  if (message.Has("hashAlgorithm")) {
    std::string hash = TRY(message.Text("hashAlgorithm"));
    if (hash != "SHA2_256") return BadRoot(message.where() + ": hashAlgorithm is not SHA2_256");
  }
  // Old roots of private instances say none; only a Rekor v2 needs it.
  std::string url = TRY(message.OptionalText("baseUrl"));
  log.host = HostOf(url);
  Message id = TRY(message.Child("logId", {"keyId"}));
  log.key_id = TRY(id.Bytes("keyId"));
  Message key = TRY(message.Child("publicKey", {"rawBytes", "keyDetails", "validFor"}));
  log.key = TRY(key.Bytes("rawBytes"));
  std::string details = TRY(key.Text("keyDetails"));
  log.key_is_pkcs1 = details == kPkcs1;
  log.valid_for = TRY(ReadInterval(key));
  return log;
}

Checked<std::vector<TrustedLog>> ReadLogs(const Message& root, std::string_view name) {
  std::vector<Message> messages = TRY(root.Children(
      name, {"baseUrl", "hashAlgorithm", "publicKey", "logId", "checkpointKeyId", "operator"}));
  std::vector<TrustedLog> logs;
  for (const Message& message : messages) {
    TrustedLog log = TRY(ReadLog(message));
    bool known = std::any_of(logs.begin(), logs.end(),
                             [&](const TrustedLog& other) { return other.key_id == log.key_id; });
    if (known) return BadRoot(message.where() + " has the logId of another log");
    logs.push_back(std::move(log));
  }
  return logs;
}

// Judges by its shape: one DER sequence, nothing behind it. Its contents are read when they are
// needed, since reading a key costs as much as verifying with it, and most of a root is not needed
// for most signatures.
bool LooksLikeCertificate(std::string_view der) {
  const unsigned char* at = Bytes(der);
  long size = 0;
  int tag = 0;
  int type = 0;
  int form = ::ASN1_get_object(&at, &size, &tag, &type, static_cast<long>(der.size()));
  return form == V_ASN1_CONSTRUCTED && tag == V_ASN1_SEQUENCE &&
         at + size == Bytes(der) + der.size();
}

Checked<TrustedAuthority> ReadAuthority(const Message& message) {
  TrustedAuthority authority;
  authority.uri = TRY(message.OptionalText("uri"));
  Message chain = TRY(message.Child("certChain", {"certificates"}));
  std::vector<Message> certificates = TRY(chain.Children("certificates", {"rawBytes"}));
  if (certificates.empty()) return BadRoot(chain.where() + " is empty");
  for (const Message& certificate : certificates) {
    std::string der = TRY(certificate.Bytes("rawBytes"));
    if (!LooksLikeCertificate(der)) {
      return BadRoot(certificate.where() + " is not a certificate");
    }
    authority.certificates.push_back(std::move(der));
  }
  if (message.Has("validFor")) {
    Interval interval = TRY(ReadInterval(message));
    authority.valid_for = interval;
  }
  return authority;
}

Checked<std::vector<TrustedAuthority>> ReadAuthorities(const Message& root, std::string_view name) {
  std::vector<Message> messages =
      TRY(root.Children(name, {"subject", "uri", "certChain", "validFor", "operator"}));
  std::vector<TrustedAuthority> authorities;
  for (const Message& message : messages) {
    TrustedAuthority authority = TRY(ReadAuthority(message));
    authorities.push_back(std::move(authority));
  }
  return authorities;
}

Checked<TrustedInstance> ReadInstance(const codec::Json& json) {
  Message root = TRY(Message::Read(
      json, "trusted root",
      {"mediaType", "tlogs", "certificateAuthorities", "ctlogs", "timestampAuthorities"}));
  std::string type = TRY(root.Text("mediaType"));
  if (std::find(kMediaTypes.begin(), kMediaTypes.end(), type) == kMediaTypes.end()) {
    return BadRoot("the media type '" + type + "' is not a trusted root's");
  }
  TrustedInstance instance;
  instance.logs = TRY(ReadLogs(root, "tlogs"));
  instance.certificate_logs = TRY(ReadLogs(root, "ctlogs"));
  instance.certificate_authorities = TRY(ReadAuthorities(root, "certificateAuthorities"));
  instance.timestamp_authorities = TRY(ReadAuthorities(root, "timestampAuthorities"));
  return instance;
}

Checked<TrustedRoot> Read(std::string_view text) {
  TrustedRoot root;
  Checked<codec::Json> whole = ReadJson(text, "trusted root", kRootBytesMax);
  if (whole.ok()) {
    TrustedInstance instance = TRY(ReadInstance(whole.value()));
    root.instances.push_back(std::move(instance));
    return root;
  }
  // One a line; a single document that is broken shows as such in its first line.
  if (whole.error().reason != Reason::kParse) return whole.error();
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (root.instances.size() == kInstancesMax) return BadRoot("more than 16 trusted roots");
    Checked<codec::Json> json = ReadJson(line, "trusted root", kRootBytesMax);
    if (!json.ok()) return whole.error();
    TrustedInstance instance = TRY(ReadInstance(json.value()));
    root.instances.push_back(std::move(instance));
  }
  if (root.instances.empty()) return whole.error();
  return root;
}

}  // namespace

Result<TrustedRoot> ParseTrustedRoot(std::string_view json) {
  Checked<TrustedRoot> root = Read(json);
  ::ERR_clear_error();  // See verify.cc.
  if (root.ok()) return std::move(root).value();
  return Error{Code::kInvalid, Render(root.error())};
}

const TrustedRoot& EmbeddedTrustedRoot() {
  static const TrustedRoot root = [] {
    TrustedRoot embedded = ParseTrustedRoot(EmbeddedRoots().front().text).value();
    for (TrustedInstance& instance : embedded.instances) {
      for (TrustedAuthority& one : instance.certificate_authorities) one.proved = true;
      for (TrustedAuthority& one : instance.timestamp_authorities) one.proved = true;
    }
    return embedded;
  }();
  return root;
}

}  // namespace sigstore
