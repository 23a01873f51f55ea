// SPDX-License-Identifier: Apache-2.0
#include "image/source/reference.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/data/digest.h"

namespace image {
namespace {

constexpr size_t kNameBytesMax = 255;  // distribution/reference: NameTotalLengthMax.
constexpr size_t kTagBytesMax = 128;
constexpr size_t kPathBytesMax = 4096;
constexpr std::string_view kDigestPrefix = "sha256:";
constexpr std::string_view kDefaultHost = "docker.io";
constexpr std::string_view kLayoutPrefix = "oci:";
constexpr std::string_view kArchivePrefix = "docker-archive:";
constexpr std::string_view kDirectoryPrefix = "dir:";

bool OnlyOf(std::string_view text, bool (*allowed)(char)) {
  return std::all_of(text.begin(), text.end(), allowed);
}

bool IsHexadecimal(std::string_view text) {
  return OnlyOf(text, [](char c) { return ascii::IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

Error Bad(std::string_view text, const std::string& why, std::string hint = {}) {
  std::string shown(text.substr(0, kNameBytesMax));
  for (char& c : shown) {
    if (ascii::IsControl(c)) c = ' ';
  }
  return Error{Code::kInvalid, "image \"" + shown + "\": " + why, std::move(hint)};
}

// Returns whether the layout specification allows `text`, nearly, as
// org.opencontainers.image.ref.name: also whole references.
bool IsRefName(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && ascii::IsAlphanumeric(text[0]) &&
         OnlyOf(text, [](char c) {
           return ascii::IsAlphanumeric(c) ||
                  std::string_view("-._:@/+").find(c) != std::string_view::npos;
         });
}

// [a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*
bool IsPathComponent(std::string_view text) {
  const auto is_part = [](char c) { return ascii::IsLower(c) || ascii::IsDigit(c); };
  if (text.empty() || !is_part(text.front()) || !is_part(text.back())) return false;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && !is_part(text[end])) ++end;
    const std::string_view separator = text.substr(at, end - at);
    if (!separator.empty() && separator != "." && separator != "_" && separator != "__" &&
        separator.find_first_not_of('-') != std::string_view::npos) {
      return false;
    }
    at = end + 1;
  }
  return true;
}

bool IsRepository(std::string_view text) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    if (!IsPathComponent(text.substr(at, end - at))) return false;
    at = end + 1;
  }
  return true;
}

// Names and numbers between dots, or an IPv6 address in brackets; then maybe a port.
bool IsHost(std::string_view text) {
  std::string_view name = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos || close == 1) return false;
    if (!OnlyOf(text.substr(1, close - 1), [](char c) {
          return ascii::IsDigit(c) || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
        })) {
      return false;
    }
    if (close + 1 == text.size()) return true;
    if (text[close + 1] != ':') return false;
    name = {};
    port = text.substr(close + 2);
    if (port.empty()) return false;
  } else if (size_t colon = text.find(':'); colon != std::string_view::npos) {
    name = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) return false;
  }
  if (port.size() > 5 || !OnlyOf(port, ascii::IsDigit)) return false;
  if (text.starts_with('[')) return true;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view label = name.substr(at, end - at);
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-' ||
        !OnlyOf(label, [](char c) { return ascii::IsAlphanumeric(c) || c == '-'; })) {
      return false;
    }
    at = end + 1;
  }
  return true;
}

// Splits "name[:tag][@digest]" from its end. A colon before the last '/' belongs to a port.
Result<std::string_view> SplitSuffixes(std::string_view whole, Reference* out) {
  std::string_view rest = whole;
  if (size_t at = rest.find('@'); at != std::string_view::npos) {
    out->digest = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!IsDigest(out->digest)) {
      return Bad(whole,
                 "what follows '@' is not a digest (sha256: and 64 lower-case hexadecimal digits)");
    }
  }
  const size_t colon = rest.rfind(':');
  const size_t slash = rest.rfind('/');
  const bool has_tag = colon != std::string_view::npos && !rest.ends_with(']') &&
                       (slash == std::string_view::npos || colon > slash);
  if (has_tag) {
    out->tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!IsTag(out->tag)) return Bad(whole, "\"" + out->tag + "\" is not a tag");
  }
  return rest;
}

Result<Reference> ParseRegistryReference(std::string_view text) {
  Reference reference;
  if (size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    return Bad(text, "a reference must not have a scheme",
               "write " + std::string(text.substr(scheme + 3)));
  }
  const std::string_view name = TRY(SplitSuffixes(text, &reference));
  const size_t slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  const bool has_host =
      slash != std::string_view::npos &&
      (first.find_first_of(".:[") != std::string_view::npos || first == "localhost");
  reference.host = has_host ? ascii::LowerCase(first) : std::string(kDefaultHost);
  reference.repository = has_host ? name.substr(slash + 1) : name;
  if (reference.host == "index.docker.io") reference.host = kDefaultHost;
  if (reference.host == kDefaultHost && reference.repository.find('/') == std::string::npos) {
    if (reference.repository.size() == 64 && IsHexadecimal(reference.repository)) {
      return Bad(text, "64 hexadecimal digits are not a name",
                 "write NAME@sha256:" + reference.repository);
    }
    reference.repository.insert(0, "library/");
  }
  if (!IsHost(reference.host)) return Bad(text, "\"" + reference.host + "\" is not a host");
  if (reference.host.size() + 1 + reference.repository.size() > kNameBytesMax) {
    return Bad(text, "the name is longer than " + std::to_string(kNameBytesMax) + " bytes");
  }
  if (!IsRepository(reference.repository)) {
    const std::string lower = ascii::LowerCase(reference.repository);
    const bool only_case = IsRepository(lower);
    return Bad(text, "\"" + reference.repository + "\" is not a repository name",
               only_case ? "write it in lower case: " + lower : "");
  }
  if (reference.tag.empty() && reference.digest.empty()) reference.tag = "latest";
  return reference;
}

Status CheckPath(std::string_view text, const std::string& path) {
  if (path.empty()) return Bad(text, "no path");
  if (path.size() > kPathBytesMax || path.find('\0') != std::string::npos) {
    return Bad(text, "not a path");
  }
  return Ok();
}

// oci:DIRECTORY[:tag][@digest]; as skopeo does, the first colon ends the directory.
Result<Reference> ParseLayout(std::string_view text) {
  Reference reference;
  reference.kind = Reference::Kind::kLayout;
  std::string_view rest = text.substr(kLayoutPrefix.size());
  if (size_t at = rest.rfind("@sha256:"); at != std::string_view::npos) {
    reference.digest = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!IsDigest(reference.digest)) return Bad(text, "what follows '@' is not a digest");
  }
  const size_t colon = std::min(rest.find(':'), rest.size());
  reference.path = rest.substr(0, colon);
  if (colon < rest.size()) {
    reference.tag = rest.substr(colon + 1);
    if (!IsRefName(reference.tag)) return Bad(text, "\"" + reference.tag + "\" is not a tag");
  }
  TRY(CheckPath(text, reference.path));
  return reference;
}

// docker-archive:FILE[:name:tag]
Result<Reference> ParseArchive(std::string_view text) {
  const std::string_view rest = text.substr(kArchivePrefix.size());
  const size_t colon = std::min(rest.find(':'), rest.size());
  Reference reference;
  if (colon < rest.size()) {
    reference = TRY(ParseRegistryReference(rest.substr(colon + 1)));
    if (!reference.digest.empty()) {
      return Bad(text, "this kind of archive supports names and tags, not digests");
    }
  }
  reference.kind = Reference::Kind::kArchive;
  reference.path = rest.substr(0, colon);
  TRY(CheckPath(text, reference.path));
  return reference;
}

}  // namespace

bool IsTag(std::string_view text) {
  return !text.empty() && text.size() <= kTagBytesMax &&
         (ascii::IsAlphanumeric(text[0]) || text[0] == '_') && OnlyOf(text, [](char c) {
           return ascii::IsAlphanumeric(c) || c == '.' || c == '_' || c == '-';
         });
}

bool IsDigest(std::string_view text) {
  return text.size() == kDigestPrefix.size() + 64 && text.starts_with(kDigestPrefix) &&
         IsHexadecimal(text.substr(kDigestPrefix.size()));
}

std::string DigestOf(std::string_view bytes) {
  return std::string(kDigestPrefix) + codec::Sha256Hex(bytes);
}

std::string Reference::Name() const {
  switch (kind) {
    case Kind::kRegistry:
      return host + "/" + repository;
    case Kind::kLayout:
      return std::string(kLayoutPrefix) + path;
    case Kind::kArchive:
      return std::string(kArchivePrefix) + path;
    case Kind::kDirectory:
      return std::string(kDirectoryPrefix) + path;
  }
  ENSURE(false);
}

std::string Reference::ToString() const {
  std::string text = Name();
  if (kind == Kind::kArchive && !repository.empty()) text += ":" + host + "/" + repository;
  if (!tag.empty()) text += ":" + tag;
  if (!digest.empty()) text += "@" + digest;
  return text;
}

Result<Reference> ParseReference(std::string_view text) {
  if (text.empty()) return Error{Code::kInvalid, "no image given"};
  if (text.starts_with(kLayoutPrefix)) return ParseLayout(text);
  if (text.starts_with(kArchivePrefix)) return ParseArchive(text);
  if (text.starts_with(kDirectoryPrefix)) {
    Reference reference;
    reference.kind = Reference::Kind::kDirectory;
    reference.path = text.substr(kDirectoryPrefix.size());
    TRY(CheckPath(text, reference.path));
    return reference;
  }
  return ParseRegistryReference(text);
}

}  // namespace image
