// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/upstream.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/sys.h"
#include "codec/data/json.h"

namespace redteam {
namespace {

constexpr size_t kConnectionsMax = 200;
constexpr size_t kRequestBytesMax = size_t{64} << 10;
constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct Open {
  Fd fd;
  std::string bytes;
};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Takes a line from the front of `rest`, whatever ends it; nullopt if it has no end yet.
std::optional<std::string_view> TakeLine(std::string_view* rest) {
  size_t end = rest->find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = Trim(rest->substr(0, end));
  rest->remove_prefix(end + 1);
  return line;
}

template <int kBase>
size_t NumberAt(std::string_view text) {
  size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, kBase);
  return number;
}

// Returns false if the body is not there yet.
bool SkipChunks(std::string_view* rest) {
  while (true) {
    std::optional<std::string_view> size_line = TakeLine(rest);
    if (!size_line) return false;
    size_t size = NumberAt<16>(*size_line);
    if (size == 0) return TakeLine(rest).has_value();
    if (rest->size() < size) return false;
    rest->remove_prefix(size);
    if (!TakeLine(rest)) return false;
  }
}

bool SkipLength(std::string_view* rest, size_t length) {
  if (rest->size() < length) return false;
  rest->remove_prefix(length);
  return true;
}

// Takes one request from the front of `rest`; nullopt if it is not whole.
std::optional<Arrival> TakeRequest(std::string_view* rest) {
  std::optional<std::string_view> line = TakeLine(rest);
  while (line && line->empty()) line = TakeLine(rest);
  if (!line) return std::nullopt;
  Arrival arrival;
  size_t blank = line->find(' ');
  arrival.method = line->substr(0, blank);
  if (blank != std::string_view::npos) {
    std::string_view target = line->substr(blank + 1);
    arrival.target = target.substr(0, target.find(' '));
    if (target.find(' ') == std::string_view::npos) return arrival;  // A request of HTTP/0.9.
  }
  bool chunked = false;
  std::optional<size_t> length;
  for (line = TakeLine(rest); line && !line->empty(); line = TakeLine(rest)) {
    size_t colon = std::min(line->find(':'), line->size());
    const std::string name = ascii::LowerCase(Trim(line->substr(0, colon)));
    const std::string_view value = Trim(line->substr(std::min(colon + 1, line->size())));
    if (name == "host") arrival.host = value;
    if (name == "upgrade") arrival.upgrade = value;
    if (name == "transfer-encoding") {
      chunked = ascii::LowerCase(value).find("chunked") != std::string::npos;
    }
    if (name == "content-length" && !length) length = NumberAt<10>(value);
  }
  if (!line) return std::nullopt;
  if (chunked ? !SkipChunks(rest) : !SkipLength(rest, length.value_or(0))) return std::nullopt;
  return arrival;
}

std::string LineOf(const Arrival& arrival) {
  codec::Json json;
  json.Set("arrived", arrival.method)
      .Set("target", arrival.target)
      .Set("host", arrival.host)
      .Set("upgrade", arrival.upgrade);
  return codec::RenderJsonLine(json) + "\n";
}

// Returns false if the connection has ended.
Result<bool> Answer(Open* open) {
  char buffer[4096];
  ssize_t got = ::recv(open->fd.get(), buffer, sizeof buffer, 0);
  if (got <= 0 || open->bytes.size() > kRequestBytesMax) return false;
  open->bytes.append(buffer, static_cast<size_t>(got));
  for (const Arrival& arrival : TakeRequests(&open->bytes)) {
    TRY(sys::WriteAll(STDOUT_FILENO, LineOf(arrival)));
    if (!sys::WriteAll(open->fd.get(), kAnswer).ok()) return false;
  }
  return true;
}

}  // namespace

std::vector<Arrival> TakeRequests(std::string* bytes) {
  std::vector<Arrival> arrivals;
  std::string_view rest = *bytes;
  std::string_view left = rest;
  for (std::optional<Arrival> one = TakeRequest(&rest); one; one = TakeRequest(&rest)) {
    arrivals.push_back(std::move(*one));
    left = rest;
  }
  *bytes = std::string(left);
  return arrivals;
}

Status Serve(const Fd& listener) {
  std::vector<Open> all;
  while (true) {
    std::vector<pollfd> waited = {{listener.get(), POLLIN, 0}};
    for (const Open& one : all) waited.push_back({one.fd.get(), POLLIN, 0});
    if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) return Errno("poll");
    for (size_t i = all.size(); i > 0; --i) {
      if (waited[i].revents == 0) continue;
      bool goes_on = TRY(Answer(&all[i - 1]));
      if (!goes_on) all.erase(all.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (waited[0].revents == 0) continue;
    Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.valid() && all.size() < kConnectionsMax) all.push_back({std::move(accepted), ""});
  }
}

std::vector<Arrival> ReadArrivals(std::string_view log) {
  std::vector<Arrival> arrivals;
  while (!log.empty()) {
    std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    Result<codec::Json> json = codec::ParseJson(line);
    if (!json.ok() || json.value().Find("arrived") == nullptr) continue;
    arrivals.push_back({json.value().StringAt("arrived"), json.value().StringAt("target"),
                        json.value().StringAt("host"), json.value().StringAt("upgrade")});
  }
  return arrivals;
}

bool IsForbidden(const Arrival& arrival, std::string_view id, std::string_view host) {
  if (!arrival.target.ends_with("/" + std::string(id))) return false;
  const bool allowed = arrival.method == "GET" && arrival.target == "/open/" + std::string(id) &&
                       arrival.host == host && arrival.upgrade.empty();
  return !allowed;
}

}  // namespace redteam
