// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/event_line.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "codec/text/neutral.h"

namespace openshell {
namespace {

using record::Event;

constexpr size_t kTextBytesMax = 1024;

// Takes what stands before `mark` off the front of `text`; false, with nothing taken: there is
// none.
bool Split(std::string_view* text, std::string_view mark, std::string_view* front) {
  const size_t at = text->find(mark);
  if (at == std::string_view::npos) return false;
  *front = text->substr(0, at);
  text->remove_prefix(at + mark.size());
  return true;
}

template <typename Number>
bool ParseNumber(std::string_view text, Number* number) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return fault == std::errc() && end == text.data() + text.size();
}

// "host:443", "[::1]:443/udp".
bool ParsePlace(std::string_view text, Event* event) {
  const size_t slash = text.rfind('/');
  if (slash != std::string_view::npos) {
    event->transport = std::string(text.substr(slash + 1, 16));
    text = text.substr(0, slash);
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  event->host = codec::NeutralLine(text.substr(0, colon), kTextBytesMax);
  return ParseNumber(text.substr(colon + 1), &event->port);
}

// "name.example", which no endpoint has, and which was not resolved therefore: what would have
// connected to it, and where, is not known.
constexpr uint16_t kAssumedPort = 443;
constexpr char kAssumed[] = "; the port is not in OpenShell's record, 443 is assumed";
bool ParseName(std::string_view text, Event* event) {
  if (text.empty() || text.find_first_of(" :/()>") != std::string_view::npos) return false;
  event->host = codec::NeutralLine(text, kTextBytesMax);
  event->port = kAssumedPort;
  return true;
}

// "GET https://host/path".
bool ParseRequest(std::string_view text, Event* event) {
  std::string_view method;
  std::string_view scheme;
  if (!Split(&text, " ", &method) || !Split(&text, "://", &scheme)) return false;
  if (scheme != "http" && scheme != "https") return false;
  event->method = codec::NeutralLine(method, 64);
  event->scheme = std::string(scheme);
  const size_t end = std::min(text.find('/'), text.size());
  std::string_view authority = text.substr(0, end);
  std::string_view path = text.substr(end);
  path = path.substr(0, path.find('?'));
  event->path = path.empty() ? "/" : codec::NeutralLine(path, kTextBytesMax);
  const size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && authority.back() != ']';
  event->port = scheme == "https" ? 443 : 80;
  if (has_port && !ParseNumber(authority.substr(colon + 1), &event->port)) return false;
  event->host =
      codec::NeutralLine(authority.substr(0, has_port ? colon : authority.size()), kTextBytesMax);
  return !event->host.empty();
}

// " [policy:P engine:E] [reason:R]".
void ParseTail(std::string_view tail, Event* event) {
  std::string_view skipped;
  std::string_view word;
  if (Split(&tail, "[policy:", &skipped) && Split(&tail, " engine:", &word)) {
    event->policy = codec::NeutralLine(word, 256);
    if (Split(&tail, "]", &word)) record::SetEngine(codec::NeutralLine(word, 64), event);
  }
  if (Split(&tail, "[reason:", &skipped)) {
    if (tail.ends_with(']')) tail.remove_suffix(1);
    event->reason = codec::NeutralLine(tail, kTextBytesMax);
  }
}

// Parses what follows the severity: "DENIED /usr/bin/curl(41) -> host:443 [policy:- engine:opa]".
std::optional<Event> ParseDecision(bool is_request, std::string_view text) {
  Event event;
  std::string_view action;
  if (!Split(&text, " ", &action)) return std::nullopt;
  if (action == "ALLOWED") {
    event.outcome = Event::Outcome::kAllowed;
  } else if (action == "DENIED") {
    event.outcome = Event::Outcome::kDenied;
  } else {
    return std::nullopt;
  }
  event.kind = is_request ? Event::Kind::kRequest : Event::Kind::kConnection;
  std::string_view process;
  if (Split(&text, ") -> ", &process)) {
    const size_t open = process.rfind('(');
    if (open == std::string_view::npos) return std::nullopt;
    if (!ParseNumber(process.substr(open + 1), &event.pid)) return std::nullopt;
    event.binary = codec::NeutralLine(process.substr(0, open), kTextBytesMax);
  }
  const size_t end = std::min(text.find(" ["), text.size());
  std::string_view target = text.substr(0, end);
  const bool is_name = !is_request && event.outcome == Event::Outcome::kDenied &&
                       event.binary.empty() && ParseName(target, &event);
  if (!is_name && !(is_request ? ParseRequest(target, &event) : ParsePlace(target, &event))) {
    return std::nullopt;
  }
  ParseTail(text.substr(end), &event);
  if (is_name) event.reason += kAssumed;
  // The policy allows it, and the name leads nowhere.
  if (event.engine == record::Engine::kSsrf && event.reason.starts_with("DNS resolution failed")) {
    event.outcome = Event::Outcome::kFailed;
  }
  return event;
}

// Returns whether a line begins with a word such as DENIED, or leads from a program somewhere. One
// about a server that listens has a place alone.
bool LooksLikeDecision(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  const bool action = !word.empty() && std::all_of(word.begin(), word.end(),
                                                   [](char c) { return c >= 'A' && c <= 'Z'; });
  return action || text.find(" -> ") != std::string_view::npos;
}

constexpr std::string_view kLeadsTo = ") -> ";

// Parses what follows "[ocsf] " into a decision; `parsed` stays as it is if the line is about
// something else.
void ParseOcsf(std::string_view line, LogLine* parsed) {
  const bool is_request = line.starts_with("HTTP:");
  std::string_view severity;
  if (!is_request && !line.starts_with("NET:")) return;
  if (!Split(&line, " [", &severity) || !Split(&line, "] ", &severity)) return;
  const bool ambiguous = line.find(kLeadsTo) != line.rfind(kLeadsTo);
  if (!ambiguous) parsed->event = ParseDecision(is_request, line);
  // Only a rule of the policy lets a program go somewhere, so that a refusal cannot be read as the
  // contrary. What OpenShell does itself ("ALLOWED inference.local:443") has neither.
  if (parsed->event && parsed->event->outcome == Event::Outcome::kAllowed &&
      (parsed->event->policy.empty() || parsed->event->policy == "-") &&
      (line.find(kLeadsTo) != std::string_view::npos ||
       line.find("[policy:") != std::string_view::npos)) {
    parsed->event.reset();
  }
  parsed->unread = !parsed->event && LooksLikeDecision(line);
}

bool ParseTime(std::string_view text, int64_t* time_ms) {
  int64_t whole = 0;
  int64_t thousandths = 0;
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || text.size() - dot != 4) return false;
  if (!ParseNumber(text.substr(0, dot), &whole) || whole < 0 || whole > 1LL << 40) {
    return false;
  }
  if (!ParseNumber(text.substr(dot + 1), &thousandths) || thousandths < 0) return false;
  *time_ms = whole * 1000 + thousandths;
  return true;
}

}  // namespace

std::optional<LogLine> ParseLogLine(std::string_view line) {
  constexpr std::string_view kOcsf = "[sandbox] [OCSF ] [ocsf] ";
  constexpr std::string_view kOther = "[sandbox] [";
  LogLine parsed;
  std::string_view time;
  if (!line.starts_with('[')) return std::nullopt;
  line.remove_prefix(1);
  if (!Split(&line, "] ", &time) || !ParseTime(time, &parsed.time_ms)) return std::nullopt;
  if (!line.starts_with(kOther)) return std::nullopt;
  if (line.starts_with(kOcsf)) ParseOcsf(line.substr(kOcsf.size()), &parsed);
  // It may be the end of a decision, behind a program's path that reads like the head of a line.
  if (!parsed.event && line.find(kLeadsTo) != std::string_view::npos) parsed.unread = true;
  return parsed;
}

}  // namespace openshell
