// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/client_credentials.h"

#include <algorithm>
#include <array>

#include "codec/text/base64.h"
#include "codec/text/percent.h"
#include "codec/text/token_form.h"

namespace gateway {
namespace {

// One parameter of a query, as it is written.
struct QueryPart {
  std::string_view raw;  // "name=value"
  std::string name;      // Decoded.
  std::string_view value;
};

std::vector<QueryPart> SplitQuery(std::string_view query) {
  std::vector<QueryPart> parts;
  for (;;) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view raw = query.substr(0, end);
    size_t equals = std::min(raw.find('='), raw.size());
    parts.push_back({raw, codec::FormDecode(raw.substr(0, equals)),
                     raw.substr(std::min(equals + 1, raw.size()))});
    if (end == query.size()) return parts;
    query.remove_prefix(end + 1);
  }
}

// Removes the parameters that `unwanted` says yes to.
template <typename Predicate>
void FilterQuery(std::string* query, Predicate unwanted) {
  std::string kept;
  bool removed = false;
  bool first = true;
  for (const QueryPart& part : SplitQuery(*query)) {
    if (unwanted(part)) {
      removed = true;
      continue;
    }
    if (!first) kept += '&';
    kept += part.raw;
    first = false;
  }
  if (removed) *query = std::move(kept);
}

bool Lists(const std::vector<std::string>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& listed) {
    return codec::EqualIgnoringCase(listed, name);
  });
}

template <size_t N>
bool Lists(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view listed) {
    return codec::EqualIgnoringCase(listed, name);
  });
}

// Returns a kind such as "github-token"; empty if there is none.
std::string_view TokenIn(std::string_view text, bool signed_url) {
  if (text.find("-----BEGIN ") != std::string_view::npos) return "private-key";
  for (size_t at = 0; at < text.size(); ++at) {
    codec::FoundToken token = codec::FindTokenAt(text, at);
    if (token.form == nullptr) continue;
    bool key_name = signed_url && token.form->tag == "aws-key";
    if (!key_name) return token.form->tag;
    at += token.length - 1;
  }
  return {};
}

}  // namespace

bool HoldsPlaceholder(const std::string& header_value) {
  if (HasMarker(header_value)) return true;
  size_t space = header_value.find(' ');
  if (space == std::string::npos) return false;
  std::string_view value = header_value;
  if (!codec::EqualIgnoringCase(value.substr(0, space), "basic")) return false;
  size_t at = std::min(value.find_first_not_of(' ', space), value.size());
  std::optional<std::string> decoded = codec::DecodeBase64(value.substr(at));
  return decoded.has_value() && HasMarker(*decoded);
}

bool RemoveOwnCredentials(const AuthPlacement& placement, const CredentialSites& sites) {
  bool placeholder = false;
  std::erase_if(*sites.fields, [&](const codec::HttpField& field) {
    if (!Lists(placement.replaced_headers, field.name)) return false;
    bool holds = HoldsPlaceholder(field.value);
    placeholder |= holds;
    return !holds;
  });
  FilterQuery(sites.query, [&](const QueryPart& part) {
    if (!Lists(placement.replaced_query, part.name)) return false;
    bool holds = HasMarker(codec::FormDecode(part.value));
    placeholder |= holds;
    return !holds;
  });
  return placeholder;
}

void RemoveSignature(const CredentialSites& sites) {
  constexpr std::array<std::string_view, 3> kHeaders = {"authorization", "x-amz-date",
                                                        "x-amz-security-token"};
  constexpr std::array<std::string_view, 7> kParameters = {
      "x-amz-algorithm", "x-amz-credential",    "x-amz-date",          "x-amz-expires",
      "x-amz-signature", "x-amz-signedheaders", "x-amz-security-token"};
  std::erase_if(*sites.fields,
                [&](const codec::HttpField& field) { return Lists(kHeaders, field.name); });
  FilterQuery(sites.query, [&](const QueryPart& part) { return Lists(kParameters, part.name); });
}

std::string_view TokenInUrl(std::string_view path, std::string_view query) {
  std::string_view found = TokenIn(codec::PercentDecode(path), false);
  for (const QueryPart& part : SplitQuery(query)) {
    bool signed_url = codec::EqualIgnoringCase(part.name, "x-amz-credential");
    if (found.empty()) found = TokenIn(part.name, false);
    if (found.empty()) found = TokenIn(codec::FormDecode(part.value), signed_url);
  }
  return found;
}

}  // namespace gateway
