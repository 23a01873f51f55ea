// SPDX-License-Identifier: Apache-2.0
#include "agent/event.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/ascii.h"
#include "codec/text/neutral.h"

namespace agent {
namespace {

using codec::Json;

constexpr size_t kTextLinesMax = 60;  // The lines of one text in the log.
constexpr const char* kNoRoom = "(what would take more bytes than the agent printed is not shown)";
constexpr size_t kToolNameBytesMax = 200;
constexpr size_t kToolBytesMax = 300;
constexpr size_t kFailureBytesMax = 500;
constexpr size_t kReasonBytesMax = 300;

// "400" at `at`, and not a part of a longer number; else 0.
int64_t StatusAt(std::string_view text, size_t at) {
  constexpr size_t kDigits = 3;
  const std::string_view digits = text.substr(std::min(at, text.size()), kDigits);
  if (digits.size() < kDigits || !ascii::IsNumber(digits)) return 0;
  if (at + kDigits < text.size() && ascii::IsDigit(text[at + kDigits])) return 0;
  const int64_t status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
  return status >= 400 && status < 600 ? status : 0;
}

}  // namespace

void Entries::Allow(size_t bytes) {
  room_ = std::min(room_, kSpareBytes) + static_cast<int64_t>(bytes) + 1;
}

void Entries::Add(std::string entry) {
  const bool fits = static_cast<int64_t>(entry.size()) < room_;
  if (!fits && full_) return;
  full_ = !fits;
  if (!fits) entry = kNoRoom;
  room_ -= static_cast<int64_t>(entry.size()) + 1;
  entries_.push_back(std::move(entry));
}

// Returns `json` with U+FFFD for each escape of half a surrogate pair. JavaScript writes one where
// it cut a text inside a character, such as an emoji; a JSON parser refuses the whole line for it.
std::string WithoutLoneSurrogates(std::string_view json) {
  constexpr size_t kEscapeBytes = 6;                         // \uXXXX
  const auto begins = [&](size_t at, std::string_view of) {  // \uDX..., X being one of `of`.
    return at + kEscapeBytes <= json.size() && json[at] == '\\' && json[at + 1] == 'u' &&
           ascii::ToLower(json[at + 2]) == 'd' &&
           of.find(ascii::ToLower(json[at + 3])) != std::string_view::npos;
  };
  std::string text;
  text.reserve(json.size());
  for (size_t at = 0; at < json.size();) {
    const bool first = begins(at, "89ab");
    size_t bytes = json[at] == '\\' ? 2 : 1;
    if (first && begins(at + kEscapeBytes, "cdef")) bytes = 2 * kEscapeBytes;
    if (bytes == 2 && (first || begins(at, "cdef"))) {
      text += "\\ufffd";
      at += kEscapeBytes;
      continue;
    }
    text += json.substr(at, bytes);
    at += bytes;
  }
  return text;
}

std::optional<Json> ParseEvent(std::string_view line, Entries* entries) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
  constexpr codec::JsonBounds kBounds = {.bytes_max = size_t{16} << 20, .values_max = 200000};
  Result<Json> parsed = codec::ParseJson(line, kBounds);
  if (!parsed.ok()) parsed = codec::ParseJson(WithoutLoneSurrogates(line), kBounds);
  if (parsed.ok()) {
    Json event = std::move(parsed).value();
    if (event.object() != nullptr) return event;
  }
  entries->Add(std::string(line));
  return std::nullopt;
}

int64_t CountAt(const Json& json, std::string_view name) {
  return std::clamp<int64_t>(json.IntegerAt(name), 0, kCountMax);
}

const Json& ObjectAt(const Json& json, std::string_view name) {
  static const Json kNothing;
  const Json* member = json.Find(name);
  return member != nullptr && member->object() != nullptr ? *member : kNothing;
}

const Json::Array& ItemsAt(const Json& json, std::string_view name) {
  static const Json::Array kNothing;
  const Json* member = json.Find(name);
  return member != nullptr && member->array() != nullptr ? *member->array() : kNothing;
}

Tokens& operator+=(Tokens& sum, const Tokens& more) {
  sum.input = std::min(sum.input + more.input, kCountMax);
  sum.output = std::min(sum.output + more.output, kCountMax);
  sum.cache_read = std::min(sum.cache_read + more.cache_read, kCountMax);
  sum.cache_write = std::min(sum.cache_write + more.cache_write, kCountMax);
  return sum;
}

Tokens WithoutCached(int64_t input, int64_t output, int64_t cached) {
  return {std::max<int64_t>(input - cached, 0), output, cached, 0};
}

std::optional<double> DollarsAt(const Json& json, std::string_view name) {
  const Json* cost = json.Find(name);
  if (cost == nullptr || !cost->number()) return std::nullopt;
  return std::clamp(*cost->number(), 0.0, 1e9);
}

std::string DescribeTool(const std::string& name, const Json* input) {
  constexpr std::array<std::string_view, 13> kTelling = {
      "command", "cmd",     "file_path", "filePath", "absolute_path", "notebook_path", "path",
      "pattern", "dirPath", "url",       "query",    "description",   "skill"};
  std::string out = codec::CutUtf8(name, kToolNameBytesMax);
  if (input == nullptr) return out;
  for (std::string_view member : kTelling) {
    if (const std::string argument = input->StringAt(member); !argument.empty()) {
      return out + " " + codec::CutUtf8(argument, kToolBytesMax);
    }
  }
  return out;
}

void AppendLines(std::string_view text, const std::string& indent, Entries* entries) {
  for (size_t lines = 0; !text.empty(); ++lines) {
    const size_t line_end = text.find('\n');
    const std::string_view line = text.substr(0, line_end);
    text.remove_prefix(line_end == std::string_view::npos ? text.size() : line_end + 1);
    if (lines == kTextLinesMax) {
      entries->Add(indent + "(...)");
      return;
    }
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    entries->Add(indent + LogEntry(line));
  }
}

void AppendThought(std::string_view text, Entries* entries) { AppendLines(text, "~ ", entries); }

void AppendTool(const std::string& name, const Json* input, const std::string& indent,
                Entries* entries) {
  entries->Add(indent + "> " + LogEntry(DescribeTool(name, input)));
}

void AppendFailure(std::string_view text, Entries* entries) {
  entries->Add("  failed: " + LogEntry(codec::CutUtf8(text, kFailureBytesMax)));
}

std::string EndEntry(const AgentSummary& summary, bool failed) {
  char line[200];
  int size = std::snprintf(
      line, sizeof line, "%s after %lld turn%s, %lld tool call%s", failed ? "failed" : "done",
      static_cast<long long>(summary.turns), summary.turns == 1 ? "" : "s",
      static_cast<long long>(summary.tool_calls), summary.tool_calls == 1 ? "" : "s");
  if (summary.cost_usd) {
    std::snprintf(line + size, sizeof line - static_cast<size_t>(size), ", $%.4f",
                  *summary.cost_usd);
  }
  return line;
}

int64_t StatusIn(std::string_view message) {
  if (const int64_t status = StatusAt(message, 0)) return status;
  for (std::string_view sign : {"\"code\":", "\"code\": ", "status ", "HTTP ",
                                "status: ", "status code ", "statusCode\":", "status code: "}) {
    for (size_t at = message.find(sign); at != std::string_view::npos;
         at = message.find(sign, at + 1)) {
      if (const int64_t status = StatusAt(message, at + sign.size())) return status;
    }
  }
  return 0;
}

std::string DescribeModelError(int64_t status, std::string_view message) {
  std::string reason = status > 0 ? "the model responded with " + std::to_string(status)
                                  : "the agent reports an error";
  if (!message.empty()) reason += ": " + codec::NeutralLine(message, kReasonBytesMax);
  return reason;
}

void Conclude(bool failed, const std::string& error, int exit_status, AgentSummary* summary) {
  if (failed) {
    summary->api_error_status = StatusIn(error);
    summary->reason = DescribeModelError(summary->api_error_status, error);
  } else if (exit_status != 0) {
    summary->reason = DescribeStatus(exit_status) + (error.empty() ? "" : "; " + error);
  } else if (!summary->saw_result) {
    summary->reason = kNoResult;
  }
  summary->succeeded = summary->reason.empty();
}

}  // namespace agent
