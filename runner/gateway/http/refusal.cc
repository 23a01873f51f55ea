// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/refusal.h"

#include <algorithm>

#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/wire/http_head.h"

namespace gateway {
namespace {

using codec::Json;

Refusal JsonRefusal(int status, const Json& json, codec::HttpFields fields) {
  fields.push_back({"Content-Type", "application/json"});
  return {status, std::move(fields), codec::RenderJsonLine(json)};
}

// A policy's name comes from a file that a person wrote: one line of printable ASCII in a header.
std::string HeaderValue(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

}  // namespace

std::string_view StatusText(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 413:
      return "Content Too Large";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Error";
  }
}

std::string RenderRefusal(const Refusal& refusal) {
  codec::HttpFields fields = refusal.fields;
  fields.push_back({"Content-Length", std::to_string(refusal.body.size())});
  fields.push_back({"Connection", "close"});
  return codec::RenderResponseHead(refusal.status, StatusText(refusal.status), fields) +
         refusal.body;
}

Refusal NewRefusal(int status, std::string_view error, std::string_view detail,
                   std::string_view reason) {
  Json json;
  json.Set("error", error).Set("detail", codec::ValidUtf8(detail));
  if (!reason.empty()) json.Set("reason", codec::ValidUtf8(reason));
  return JsonRefusal(status, json, {});
}

std::string RenderBareRefusal(int status) {
  return codec::RenderResponseHead(status, StatusText(status),
                                   {{"Content-Length", "0"}, {"Connection", "close"}});
}

Refusal NewRequestRefusal(const RefusedRequest& refused) {
  std::string path = codec::ValidUtf8(refused.path);
  std::string binary = codec::ValidUtf8(refused.binary);
  Json missing;
  missing.Set("type", refused.protocol + "_allow").Set("layer", "l7").Set("method", refused.method);
  missing.Set("path", path).Set("host", refused.host).Set("port", int{refused.port});
  missing.Set("binary", binary);
  Json json;
  json.Set("error", "policy_denied").Set("policy", refused.policy);
  json.Set("rule", refused.method + " " + path).Set("detail", codec::ValidUtf8(refused.reason));
  json.Set("layer", "l7")
      .Set("protocol", refused.protocol)
      .Set("method", refused.method)
      .Set("path", path);
  json.Set("host", refused.host).Set("port", int{refused.port}).Set("binary", binary);
  json.Set("rule_missing", std::move(missing)).Set("next_steps", Json::EmptyArray());
  return JsonRefusal(403, json, {{"X-OpenShell-Policy", HeaderValue(refused.policy)}});
}

}  // namespace gateway
