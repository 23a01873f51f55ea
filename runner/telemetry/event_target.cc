// SPDX-License-Identifier: Apache-2.0
#include "telemetry/event_target.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "net/url.h"

namespace telemetry {
namespace {

using Kind = EventTarget::Kind;

constexpr std::string_view kExample = "file:PATH, syslog+tls://HOST or https://HOST/PATH";
constexpr uint16_t kSyslogPort = 601;      // RFC 3195's number, which servers take for plain TCP.
constexpr uint16_t kSyslogTlsPort = 6514;  // RFC 5425, 4.1.
constexpr std::string_view kSplunkPath = "/services/collector/event";
constexpr std::string_view kBulkPath = "/_bulk";

struct Scheme {
  std::string_view prefix;
  Kind kind;
  std::string_view replaced;  // Of the address that is dialled.
};

constexpr std::array<Scheme, 9> kSchemes = {{{"file:", Kind::kFile, ""},
                                             {"syslog+tcp://", Kind::kSyslog, "http://"},
                                             {"syslog+tls://", Kind::kSyslog, "https://"},
                                             {"https://", Kind::kLines, "https://"},
                                             {"http://", Kind::kLines, "http://"},
                                             {"splunk+https://", Kind::kSplunk, "https://"},
                                             {"splunk+http://", Kind::kSplunk, "http://"},
                                             {"elastic+https://", Kind::kBulk, "https://"},
                                             {"elastic+http://", Kind::kBulk, "http://"}}};

Error Wrong(std::string what, std::string_view hint = kExample) {
  return Error{Code::kUsage, std::move(what), std::string(hint)};
}

// Where the path of an address begins; its end if it has none.
size_t PathOf(std::string_view url) {
  const size_t host = url.find("://") + 3;
  return std::min(url.find_first_of("/?#", host), url.size());
}

Status TakeSyslog(const net::Url& url, std::string_view rest, EventTarget* target) {
  target->tls = url.scheme == "https";
  if (rest.find_first_of("/?#") != std::string_view::npos) {
    return Wrong("the address of a syslog has no path");
  }
  target->host = url.host;
  const uint16_t own = target->tls ? kSyslogTlsPort : kSyslogPort;
  // Without a port, `url` has that of the scheme that stands for this one.
  const size_t bracket = rest.find(']');
  const bool has_port =
      rest.find(':', bracket == std::string_view::npos ? 0 : bracket) != std::string_view::npos;
  target->port = has_port ? static_cast<uint16_t>(url.port) : own;
  return Ok();
}

Status TakeUrl(const net::Url& url, EventTarget* target) {
  if (url.scheme == "http" && net::KindOf(url.host) != net::AddressKind::kLoopback) {
    return Wrong("records are sent to another machine over https only", "https://" + url.host);
  }
  target->url = url.text;
  const size_t path = PathOf(url.text);
  const std::string_view rest = std::string_view(url.text).substr(path);
  if (target->kind == Kind::kSplunk && (rest.empty() || rest == "/")) {
    target->url = url.text.substr(0, path).append(kSplunkPath);
  }
  if (target->kind == Kind::kBulk && !rest.ends_with(kBulkPath)) {
    if (rest.empty() || rest == "/" || rest.find('?') != std::string_view::npos) {
      return Wrong("the address names no data stream", "elastic+https://HOST/STREAM");
    }
    if (target->url.ends_with('/')) target->url.pop_back();
    target->url += kBulkPath;
  }
  return Ok();
}

}  // namespace

std::string EventTarget::Shown() const {
  switch (kind) {
    case Kind::kFile:
      return "file:" + path;
    case Kind::kSyslog:
      return (tls ? "syslog+tls://" : "syslog+tcp://") + host + ":" + std::to_string(port);
    case Kind::kLines:
    case Kind::kSplunk:
    case Kind::kBulk:
      break;
  }
  return net::ShownUrl(url);
}

Result<EventTarget> ParseEventTarget(std::string_view text) {
  EventTarget target;
  const size_t at = text.find('@');
  if (at != std::string_view::npos && ascii::IsVariableName(text.substr(0, at))) {
    target.variable = text.substr(0, at);
    text.remove_prefix(at + 1);
  }
  const auto scheme = std::find_if(kSchemes.begin(), kSchemes.end(),
                                   [&](const Scheme& one) { return text.starts_with(one.prefix); });
  if (scheme == kSchemes.end()) return Wrong("not the address of a place for records");
  target.kind = scheme->kind;
  const std::string_view rest = text.substr(scheme->prefix.size());
  const bool takes_credential = target.kind != Kind::kFile && target.kind != Kind::kSyslog;
  if (!target.variable.empty() && !takes_credential) {
    return Wrong("a file or a syslog takes no credential");
  }
  if (target.kind == Kind::kFile) {
    target.path = rest;
    if (rest.empty()) return Wrong("the file has no name", "file:/var/log/agentic-ci.jsonl");
    return target;
  }
  Result<net::Url> url = net::ParseUrl(std::string(scheme->replaced).append(rest));
  if (!url.ok()) return Wrong("not a valid address");
  if (target.kind == Kind::kSyslog) {
    TRY(TakeSyslog(url.value(), rest, &target));
  } else {
    TRY(TakeUrl(url.value(), &target));
  }
  return target;
}

Result<std::vector<EventTarget>> ParseEventTargets(std::string_view text) {
  std::vector<EventTarget> targets;
  constexpr std::string_view kBlanks = " \t\r\n";
  while (true) {
    const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
    text.remove_prefix(begin);
    if (text.empty()) return targets;
    const size_t end = std::min(text.find_first_of(kBlanks), text.size());
    targets.push_back(TRY(ParseEventTarget(text.substr(0, end))));
    text.remove_prefix(end);
  }
}

}  // namespace telemetry
