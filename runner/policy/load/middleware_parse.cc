// SPDX-License-Identifier: Apache-2.0
#include "policy/load/middleware_parse.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "codec/glob/glob.h"
#include "policy/model/host_pattern.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

constexpr size_t kMiddlewaresMax = 10;
constexpr size_t kPatternsMax = 32;

Result<int32_t> ParseOrder(const Reader& reader, const Fields& fields) {
  std::string text = TRY(fields.Text("order"));
  int32_t order = 0;
  if (text.empty()) return order;
  const char* end = text.data() + text.size();
  std::from_chars_result parsed = std::from_chars(text.data(), end, order);
  if (parsed.ec == std::errc() && parsed.ptr == end) return order;
  return reader.Invalid(fields.At("order"), "'order' must be a number, not '" + text + "'",
                        "write 'order: 10'");
}

std::string SelectorFault(const std::string& pattern) {
  if (pattern.empty()) return "is empty";
  if (pattern.find_first_of(" \t\r\n") != std::string::npos) return "contains a space";
  if (pattern.find_first_of("{}") != std::string::npos) return "contains a brace";
  // An IPv6 address has more than one colon. No host has a port, so that nothing would match.
  const size_t colon = pattern.find(':');
  if (colon != std::string::npos && (pattern.find(':', colon + 1) == std::string::npos ||
                                     pattern.find("]:") != std::string::npos)) {
    return "has a port: a middleware works on every port of a host";
  }
  for (size_t start = 0; start <= pattern.size();) {
    size_t dot = std::min(pattern.find('.', start), pattern.size());
    std::string label = pattern.substr(start, dot - start);
    if (label.empty()) return "has an empty label";
    if (label != "**" && label.find("**") != std::string::npos) {
      return "mixes '**' with other text in a label";
    }
    start = dot + 1;
  }
  Result<codec::Glob> glob = codec::Glob::Parse(pattern, '.');
  return glob.ok() ? "" : "is not a valid pattern: " + glob.error().what;
}

Result<std::vector<std::string>> ParseSelectors(const Reader& reader, const Fields& fields,
                                                std::string_view key) {
  std::vector<std::string> patterns = TRY(fields.Texts(key));
  const YamlNode* list = fields.Find(key);
  for (size_t i = 0; i < patterns.size(); ++i) {
    patterns[i] = ascii::LowerCase(patterns[i]);
    std::string fault = SelectorFault(patterns[i]);
    if (fault.empty()) continue;
    return reader.Invalid(list->items[i].at, "host pattern '" + patterns[i] + "' " + fault,
                          "write 'api.example.com', or '\"**.example.com\"'");
  }
  return patterns;
}

Status ParseHosts(Reader* reader, const Fields& fields, Middleware* middleware) {
  const YamlNode* node = fields.Find("endpoints");
  if (node != nullptr && node->kind != YamlKind::kNull) {
    Fields hosts = TRY(Fields::Open(reader, *node, Section::kMiddlewareEndpoints));
    middleware->include = TRY(ParseSelectors(*reader, hosts, "include"));
    middleware->exclude = TRY(ParseSelectors(*reader, hosts, "exclude"));
  }
  if (middleware->include.empty()) {
    return reader->Invalid(fields.At("endpoints"), "a middleware needs hosts to work on",
                           "write 'endpoints: {include: [\"**.example.com\"]}'");
  }
  if (middleware->include.size() + middleware->exclude.size() > kPatternsMax) {
    return reader->Invalid(fields.At("endpoints"), "more than 32 host patterns",
                           "write fewer, wider patterns");
  }
  return Ok();
}

Result<Middleware> ParseMiddleware(Reader* reader, const YamlEntry& entry) {
  if (entry.key.empty()) {
    return reader->Invalid(entry.at, "a middleware needs a key", "write 'redact:'");
  }
  Fields fields = TRY(Fields::Open(reader, entry.value, Section::kMiddleware));
  Middleware middleware;
  middleware.at = entry.at;
  middleware.name = TRY(fields.Text("name"));
  if (middleware.name.empty()) middleware.name = entry.key;
  std::optional<size_t> kind = TRY(fields.Choice("middleware", {"openshell/regex"}));
  if (!kind) {
    return reader->Invalid(entry.at, "'" + entry.key + "' has no 'middleware'",
                           "write 'middleware: openshell/regex'");
  }
  middleware.order = TRY(ParseOrder(*reader, fields));
  std::optional<size_t> on_error = TRY(fields.Choice("on_error", {"fail_closed", "fail_open"}));
  middleware.fail_open = on_error == 1U;
  const YamlNode* config = fields.Find("config");
  if (config != nullptr && config->kind != YamlKind::kNull) {
    Fields options = TRY(Fields::Open(reader, *config, Section::kMiddlewareConfig));
    TRY(options.Choice("mode", {"redact"}));
  }
  TRY(ParseHosts(reader, fields, &middleware));
  return middleware;
}

bool Matches(const std::vector<std::string>& patterns, const std::string& host) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return pattern == host || HostMatches(pattern, host);
  });
}

// May a connection to what the endpoint names be one that the middleware works on?
bool MaySelect(const Middleware& middleware, const std::string& host) {
  if (Matches(middleware.exclude, host)) return false;
  return std::any_of(middleware.include.begin(), middleware.include.end(),
                     [&](const std::string& pattern) { return HostsOverlap(pattern, host); });
}

}  // namespace

Result<std::vector<Middleware>> ParseMiddlewares(Reader* reader, const YamlNode& node) {
  std::vector<Middleware> middlewares;
  if (node.kind == YamlKind::kNull) return middlewares;
  if (node.kind != YamlKind::kMapping) {
    return reader->Invalid(
        node.at,
        "'network_middlewares' must be a mapping, not " + std::string(codec::DescribeKind(node)),
        "write 'network_middlewares: {redact: {...}}'");
  }
  if (node.entries.size() > kMiddlewaresMax) {
    return reader->Invalid(node.at, "more than 10 middlewares", "remove some");
  }
  for (const YamlEntry& entry : node.entries) {
    std::optional<Middleware> parsed = reader->Keep(ParseMiddleware(reader, entry));
    if (!parsed) continue;
    Middleware& middleware = *parsed;
    for (const Middleware& other : middlewares) {
      if (other.order != middleware.order) continue;
      std::string order = std::to_string(middleware.order);
      return reader->Invalid(
          entry.at, "'" + middleware.name + "' and '" + other.name + "' both have order " + order,
          "write 'order: " + std::to_string(other.order + int64_t{1}) + "'");
    }
    middlewares.push_back(std::move(middleware));
  }
  std::sort(middlewares.begin(), middlewares.end(),
            [](const Middleware& a, const Middleware& b) { return a.order < b.order; });
  return middlewares;
}

Status CheckMiddlewareTunnels(const Reader& reader, const Policy& policy) {
  for (const Middleware& middleware : policy.middlewares) {
    if (middleware.fail_open) continue;
    for (const NetworkPolicy& network : policy.network) {
      for (const Endpoint& endpoint : network.endpoints) {
        if (endpoint.tls != TlsMode::kSkip || !MaySelect(middleware, endpoint.host)) continue;
        return reader.Invalid(middleware.at,
                              "'" + middleware.name + "' fails closed and cannot inspect '" +
                                  endpoint.host + "', which has 'tls: skip'",
                              "exclude the host, or write 'on_error: fail_open'");
      }
    }
  }
  return Ok();
}

}  // namespace policy
