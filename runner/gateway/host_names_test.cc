// SPDX-License-Identifier: Apache-2.0
// A generated corpus of odd host names at each place where a client gives one: what is accepted is
// what a resolver reads, to the byte, and so is what the policy's patterns are compared with.
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "codec/wire/dns_message.h"
#include "gateway/client_hello.h"
#include "gateway/http/authority.h"
#include "policy/decide/compiled.h"
#include "policy/load/parse.h"

namespace gateway {
namespace {

std::string Number(size_t value, int width) {
  std::string out;
  for (int i = width; i-- > 0;) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string Prefixed(const std::string& bytes, int width) {
  return Number(bytes.size(), width) + bytes;
}

std::string Hello(const std::string& name) {
  const std::string list = Prefixed(Number(0, 1) + Prefixed(name, 2), 2);
  const std::string body = Number(0x0303, 2) + std::string(32, 'r') + Prefixed("session", 1) +
                           Prefixed("\x13\x01\x13\x02", 2) + Prefixed(std::string(1, '\0'), 1) +
                           Prefixed(Number(0, 2) + Prefixed(list, 2), 2);
  return Number(22, 1) + Number(0x0301, 2) + Prefixed(Number(1, 1) + Prefixed(body, 3), 2);
}

// The name as labels, split at '.'; what is longer than a length can say is left out.
std::string Query(const std::string& name) {
  std::string question;
  for (size_t from = 0; from <= name.size();) {
    const size_t dot = std::min(name.find('.', from), name.size());
    const std::string label = name.substr(from, std::min<size_t>(dot - from, 63));
    if (label.empty()) break;
    question += Prefixed(label, 1);
    from = dot + 1;
  }
  return Number(1, 2) + Number(0x0100, 2) + Number(1, 2) + Number(0, 6) + question + Number(0, 1) +
         Number(codec::kDnsTypeA, 2) + Number(codec::kDnsClassIn, 2);
}

// Texts that some readers take for a dot, for the end of a name, or for nothing.
const std::vector<std::string>& Oddities() {
  static const std::vector<std::string> kOdd = [] {
    std::vector<std::string> odd = {"%00",
                                    "%2e",
                                    "%2E",
                                    "%0d%0a",
                                    "%09",
                                    "\\u0000",
                                    "\\",
                                    "\\.",
                                    "..",
                                    "@",
                                    ":",
                                    ":443@",
                                    "/",
                                    "//",
                                    "#",
                                    "?",
                                    "[",
                                    "]",
                                    "\r\nHost: x",
                                    "\xe3\x80\x82",
                                    "\xef\xbc\x8e",
                                    "\xef\xbd\xa1",
                                    "\xc2\xad",
                                    "\xe2\x80\x8b",
                                    "\xc0\xae",
                                    "\xc0\x80",
                                    "\xe2\x84\xaa",
                                    "\xc3\x9f",
                                    "xn--a",
                                    "XN--",
                                    "*",
                                    "_",
                                    "-",
                                    "0x7f",
                                    "127.0.0.1",
                                    "1",
                                    "%c0%ae",
                                    "&#46;",
                                    " . ",
                                    ". ",
                                    "\xef\xbf\xbd",
                                    "\xf0\x9d\x92\x90"};
    for (int byte = 0; byte < 256; ++byte) odd.emplace_back(1, static_cast<char>(byte));
    return odd;
  }();
  return kOdd;
}

// Two names with an oddity between, before, behind and inside.
std::set<std::string> Corpus() {
  std::set<std::string> corpus;
  const std::string allowed = ".allowed.example";
  for (const std::string& odd : Oddities()) {
    for (const std::string& host : {std::string("evil.test"), std::string("a"), std::string()}) {
      for (const std::string& name :
           {host + odd + allowed, odd + host + allowed, host + allowed + odd,
            host + odd + odd + allowed, host + allowed + odd + "evil.test",
            host + "." + odd + allowed, host + odd + "." + host + allowed,
            host + ".al" + odd + "lowed.example", host + allowed.substr(0, 8) + odd + ".example",
            host + allowed + "." + odd, host + odd + "x" + odd + allowed,
            odd + odd + host + allowed, host + ".allowed.exam" + odd,
            host + odd + "allowed.example"}) {
        corpus.insert(name);
      }
    }
  }
  return corpus;
}

// Letters, digits, '-', '_' and single dots: every reader takes such a text for the same name.
bool IsPlain(const std::string& host) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  return !host.empty() && host.find_first_not_of(kPlain) == std::string::npos &&
         host.find("..") == std::string::npos && host.front() != '.' && host.back() != '.' &&
         std::strlen(host.c_str()) == host.size();
}

bool EndsAllowed(const std::string& host) { return host.ends_with(".allowed.example"); }

class Judge {
 public:
  Judge() : compiled_(Parse()), match_(compiled_.MatchCaller(caller_)) {}

  bool Allows(const std::string& host) const {
    return compiled_.FindRoute(match_, host, 443).connection().allowed;
  }

 private:
  static policy::Policy Parse() {
    Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(
        "version: 1\nnetwork_policies:\n  a:\n    endpoints: [{host: '**.allowed.example', "
        "port: 443, protocol: rest, access: full}]\n    binaries: [{path: '/**'}]\n",
        {.file = "policy"});
    REQUIRE(parsed.ok());
    return parsed.value().policy;
  }

  policy::Caller caller_{"/usr/bin/curl", {}, {}};
  policy::CompiledPolicy compiled_;
  policy::CallerMatch match_;
};

}  // namespace

TEST_CASE("No host name is judged as one and resolved as another") {
  const Judge judge;
  CHECK(judge.Allows("a.allowed.example"));
  CHECK_FALSE(judge.Allows("evil.test"));
  const std::set<std::string> corpus = Corpus();
  CHECK(corpus.size() >= 10000);
  size_t accepted = 0;
  size_t differ = 0;
  std::string first;
  auto check = [&](const std::string& host, const std::string& written) {
    ++accepted;
    // The resolver is given this very text; the kernel's and libraries' readers end it at a NUL.
    const bool same = IsPlain(host) && judge.Allows(host) == EndsAllowed(host);
    if (!same && differ++ == 0) first = written;
  };
  for (const std::string& name : corpus) {
    // CONNECT and Host, and the absolute form.
    const auto connect = ParseAuthority(name + ":443", std::nullopt);
    if (connect && connect->host.find(':') == std::string::npos) check(connect->host, name);
    const auto host = ParseAuthority(name, 443);
    if (host && host->host.find(':') == std::string::npos) check(host->host, name);
    const auto target = ParseAbsoluteTarget("http://" + name + "/");
    const auto absolute = target ? ParseAuthority(target->authority, 443) : std::nullopt;
    if (absolute && absolute->host.find(':') == std::string::npos) check(absolute->host, name);
    // A name server's question: an odd one has no name, which no policy matches.
    Result<codec::DnsQuery> query = codec::ParseDnsQuery(Query(name));
    if (query.ok() && !query.value().name.empty()) check(query.value().name, name);
    // A ClientHello must name the authority that was judged, byte for byte.
    Result<std::optional<std::string>> hello = PeekServerName(Hello(name));
    const bool named = hello.ok() && hello.value().has_value() && !hello.value()->empty();
    if (named && connect && *hello.value() == connect->host) check(*hello.value(), name);
  }
  INFO("the first of " << differ << ": " << first);
  CHECK(differ == 0);
  CHECK(accepted >= 500);  // The controls: plain letters and digits among the oddities.
}

}  // namespace gateway
