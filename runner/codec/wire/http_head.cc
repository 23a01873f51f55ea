// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/http_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "base/ascii.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

// RFC 9110, 5.6.2.
constexpr std::array<bool, 256> kTokenChars = [] {
  std::array<bool, 256> chars{};
  for (char c = '0'; c <= '9'; ++c) chars[static_cast<unsigned char>(c)] = true;
  for (char c = 'a'; c <= 'z'; ++c) chars[static_cast<unsigned char>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) chars[static_cast<unsigned char>(c)] = true;
  for (char c : std::string_view("!#$%&'*+-.^_`|~")) chars[static_cast<unsigned char>(c)] = true;
  return chars;
}();

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

std::string_view TrimSpace(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsUtf8(std::string_view text) {
  bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
  return ascii || FindInvalidUtf8(text) == std::string_view::npos;
}

// Every element of a comma-separated list; empty elements are given too.
template <typename Visit>
void ForEachElement(std::string_view list, Visit visit) {
  for (;;) {
    size_t comma = list.find(',');
    visit(TrimSpace(list.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
}

// The same of all fields called `name`.
template <typename Visit>
void ForEachElement(const HttpFields& fields, std::string_view name, Visit visit) {
  for (const HttpField& field : fields) {
    if (EqualIgnoringCase(field.name, name)) ForEachElement(field.value, visit);
  }
}

// Takes one line off `rest`, which ScanHead has seen to end in CRLF throughout.
std::string_view TakeLine(std::string_view& rest) {
  size_t end = rest.find("\r\n");
  ENSURE(end != std::string_view::npos);
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return line;
}

Result<HttpFields> ParseFields(std::string_view rest) {
  HttpFields fields;
  fields.reserve(16);
  for (;;) {
    std::string_view line = TakeLine(rest);
    if (line.empty()) break;
    if (line.front() == ' ' || line.front() == '\t') return Invalid("folded header line");
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) return Invalid("header line without a colon");
    std::string_view name = line.substr(0, colon);
    if (!IsToken(name)) return Invalid("invalid header name");
    std::string_view value = TrimSpace(line.substr(colon + 1));
    bool clean = std::all_of(value.begin(), value.end(),
                             [](char c) { return c == '\t' || !ascii::IsControl(c); });
    if (!clean) return Invalid("control character in a header value");
    fields.push_back({std::string(name), std::string(value)});
  }
  if (!rest.empty()) return Invalid("data after the head");
  return fields;
}

Result<int> ParseVersion(std::string_view version) {
  if (version == "HTTP/1.1") return 1;
  if (version == "HTTP/1.0") return 0;
  return Invalid("unsupported HTTP version");
}

Status CheckUnderscores(const HttpFields& fields) {
  for (const HttpField& field : fields) {
    if (MayBeReadAsFraming(field.name)) return Invalid("a framing header with an underscore");
  }
  return Ok();
}

// Connection must be a list of tokens and may not make the peer drop what frames or routes the
// message.
Status CheckConnectionField(const HttpFields& fields) {
  constexpr std::array<std::string_view, 3> kNeeded = {"host", "content-length",
                                                       "transfer-encoding"};
  Status status = Ok();
  ForEachElement(fields, "connection", [&](std::string_view element) {
    if (!IsToken(element)) status = Invalid("invalid Connection header");
    for (std::string_view needed : kNeeded) {
      if (EqualIgnoringCase(element, needed))
        status = Invalid("Connection lists a header that it must not list");
    }
  });
  return status;
}

Status CheckHostField(const RequestHead& head) {
  size_t hosts = 0;
  for (const HttpField& field : head.fields) {
    if (EqualIgnoringCase(field.name, "host")) ++hosts;
  }
  if (hosts > 1) return Invalid("more than one Host header");
  if (hosts == 0 && head.minor_version == 1) return Invalid("missing Host header");
  return Ok();
}

// Returns nullopt without a Content-Length.
Result<std::optional<uint64_t>> ParseContentLength(const HttpFields& fields) {
  std::optional<uint64_t> length;
  for (const HttpField& field : fields) {
    if (!EqualIgnoringCase(field.name, "content-length")) continue;
    const std::string& text = field.value;
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > INT64_MAX) {
      return Invalid("invalid Content-Length");
    }
    if (length.has_value() && *length != value)
      return Invalid("conflicting Content-Length headers");
    length = value;
  }
  return length;
}

// Returns true for chunked, false without a Transfer-Encoding.
Result<bool> ParseTransferEncoding(const HttpFields& fields, int minor_version) {
  bool chunked = false;
  for (const HttpField& field : fields) {
    if (!EqualIgnoringCase(field.name, "transfer-encoding")) continue;
    if (chunked) return Invalid("more than one Transfer-Encoding header");
    if (!EqualIgnoringCase(field.value, "chunked")) {
      return Invalid("unsupported Transfer-Encoding");
    }
    if (minor_version == 0) return Invalid("Transfer-Encoding in HTTP/1.0");
    chunked = true;
  }
  return chunked;
}

// Parses what both kinds of message share; returns kNone if neither field is there.
Result<BodyFraming> ParseFraming(const HttpFields& fields, int minor_version) {
  bool any_coding = FindField(fields, "transfer-encoding") != nullptr;
  if (any_coding && FindField(fields, "content-length") != nullptr) {
    return Invalid("both Content-Length and Transfer-Encoding");
  }
  bool chunked = TRY(ParseTransferEncoding(fields, minor_version));
  if (chunked) return BodyFraming{BodyFraming::kChunked, 0};
  std::optional<uint64_t> length = TRY(ParseContentLength(fields));
  if (length.has_value()) return BodyFraming{BodyFraming::kLength, *length};
  return BodyFraming{};
}

bool MayBeReadAsOneOf(std::string_view spelling, std::span<const std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return MayBeReadAs(spelling, name); });
}

size_t RenderedBytes(const HttpFields& fields) {
  size_t bytes = 2;
  for (const HttpField& field : fields) bytes += field.name.size() + field.value.size() + 4;
  return bytes;
}

void AppendFields(std::string& out, const HttpFields& fields) {
  for (const HttpField& field : fields) {
    out += field.name;
    out += ": ";
    out += field.value;
    out += "\r\n";
  }
}

}  // namespace

bool IsTokenChar(char c) { return kTokenChars[static_cast<unsigned char>(c)]; }

bool IsMethod(std::string_view method) {
  // The longest registered one has 17 (IANA); methods are repeated in every record.
  constexpr size_t kMethodBytesMax = 64;
  return !method.empty() && method.size() <= kMethodBytesMax &&
         std::all_of(method.begin(), method.end(),
                     [](char c) { return ascii::IsUpper(c) || c == '-' || c == '_'; });
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return ascii::ToLower(x) == ascii::ToLower(y);
         });
}

bool MayBeReadAs(std::string_view spelling, std::string_view name) {
  return spelling.size() == name.size() &&
         std::equal(spelling.begin(), spelling.end(), name.begin(), [](char x, char y) {
           return ascii::ToLower(x == '_' ? '-' : x) == ascii::ToLower(y);
         });
}

HeadScan ScanHead(std::string_view bytes) {
  size_t line_start = 0;
  for (;;) {
    size_t end = bytes.find('\n', line_start);
    std::string_view line = bytes.substr(line_start, end - line_start);
    size_t cr = line.find('\r');
    if (end == std::string_view::npos) {
      bool last = cr == std::string_view::npos || cr + 1 == line.size();
      return {last ? HeadScan::kPartial : HeadScan::kMalformed, 0};
    }
    if (line.empty() || cr != line.size() - 1) return {HeadScan::kMalformed, 0};
    if (line.size() == 1) return {HeadScan::kComplete, end + 1};
    line_start = end + 1;
  }
}

Result<RequestHead> ParseRequestHead(std::string_view block) {
  HeadScan scan = ScanHead(block);
  if (scan.state != HeadScan::kComplete) return Invalid("incomplete head");
  if (!IsUtf8(block)) return Invalid("head is not UTF-8");
  std::string_view rest = block;
  std::string_view line = TakeLine(rest);
  if (line.empty()) return Invalid("empty request line");
  size_t first = line.find(' ');
  size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) return Invalid("request line does not have three parts");
  RequestHead head;
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, second - first - 1);
  if (!IsMethod(head.method)) {
    return Invalid("invalid method");
  }
  if (head.target.empty() ||
      std::any_of(head.target.begin(), head.target.end(), ascii::IsControl)) {
    return Invalid("invalid request target");
  }
  head.minor_version = TRY(ParseVersion(line.substr(second + 1)));
  head.fields = TRY(ParseFields(rest));
  TRY(CheckHostField(head));
  TRY(CheckUnderscores(head.fields));
  TRY(CheckConnectionField(head.fields));
  return head;
}

Result<ResponseHead> ParseResponseHead(std::string_view block) {
  HeadScan scan = ScanHead(block);
  if (scan.state != HeadScan::kComplete) return Invalid("incomplete head");
  std::string_view rest = block;
  std::string_view line = TakeLine(rest);
  // "HTTP/1.1 200 reason"; the space before an empty reason is left out by some servers.
  if (line.size() < 12 || line[8] != ' ') return Invalid("invalid status line");
  ResponseHead head;
  head.minor_version = TRY(ParseVersion(line.substr(0, 8)));
  std::string_view digits = line.substr(9, 3);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + 3, head.status);
  if (error != std::errc() || end != digits.data() + 3) return Invalid("invalid status line");
  // Above 599 no status is defined; a client treats it as 500 (RFC 9110, 15).
  if (head.status < 100) return Invalid("invalid status");
  if (line.size() > 12) {
    if (line[12] != ' ') return Invalid("invalid status line");
    head.reason = line.substr(13);
    if (std::any_of(head.reason.begin(), head.reason.end(),
                    [](char c) { return c != '\t' && ascii::IsControl(c); })) {
      return Invalid("control character in the status line");
    }
  }
  head.fields = TRY(ParseFields(rest));
  TRY(CheckConnectionField(head.fields));
  return head;
}

bool MayBeReadAsFraming(std::string_view name) {
  return name.find('_') != std::string_view::npos &&
         (MayBeReadAs(name, "content-length") || MayBeReadAs(name, "transfer-encoding"));
}

const HttpField* FindField(const HttpFields& fields, std::string_view name) {
  auto found = std::find_if(fields.begin(), fields.end(), [&](const HttpField& field) {
    return EqualIgnoringCase(field.name, name);
  });
  return found == fields.end() ? nullptr : &*found;
}

bool FieldHasToken(const HttpFields& fields, std::string_view name, std::string_view token) {
  bool found = false;
  ForEachElement(fields, name, [&](std::string_view element) {
    if (EqualIgnoringCase(element, token)) found = true;
  });
  return found;
}

std::vector<std::string> CodingsOf(const HttpFields& fields, std::string_view name) {
  std::vector<std::string> codings;
  for (const HttpField& field : fields) {
    if (!MayBeReadAs(field.name, name)) continue;
    ForEachElement(field.value, [&](std::string_view element) {
      std::string coding = ascii::LowerCase(element);
      if (!coding.empty() && coding != "identity") codings.push_back(std::move(coding));
    });
  }
  return codings;
}

const HttpField* FindContentType(const HttpFields& fields) {
  constexpr std::string_view kName = "content-type";
  auto says = [&](const HttpField& field) { return MayBeReadAs(field.name, kName); };
  if (std::count_if(fields.begin(), fields.end(), says) != 1) return nullptr;
  return FindField(fields, kName);
}

Result<BodyFraming> RequestFraming(const RequestHead& head) {
  return ParseFraming(head.fields, head.minor_version);
}

Result<BodyFraming> ResponseFraming(const ResponseHead& head, std::string_view request_method) {
  // Framing fields are checked even where no body follows: a server that contradicts itself in the
  // answer to HEAD does so in the next one as well.
  BodyFraming framing = TRY(ParseFraming(head.fields, head.minor_version));
  if (request_method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304) {
    return BodyFraming{};
  }
  if (framing.kind == BodyFraming::kNone) framing.kind = BodyFraming::kUntilClose;
  return framing;
}

HttpFields EndToEndFields(const HttpFields& fields) {
  HttpFields kept = fields;
  KeepEndToEnd(kept);
  return kept;
}

void KeepEndToEnd(HttpFields& fields) {
  constexpr std::array<std::string_view, 12> kHopByHop = {"connection",
                                                          "keep-alive",
                                                          "proxy-connection",
                                                          "proxy-authenticate",
                                                          "proxy-authorization",
                                                          "te",
                                                          "trailer",
                                                          "transfer-encoding",
                                                          "upgrade",
                                                          "expect",
                                                          "content-length",
                                                          "http2-settings"};
  // The fields that Connection nominates, before it is gone itself.
  std::vector<std::string> nominated;
  ForEachElement(fields, "connection",
                 [&](std::string_view element) { nominated.emplace_back(element); });
  std::erase_if(fields, [&](const HttpField& field) {
    auto is_its_name = [&](std::string_view name) { return EqualIgnoringCase(name, field.name); };
    return std::any_of(kHopByHop.begin(), kHopByHop.end(), is_its_name) ||
           std::any_of(nominated.begin(), nominated.end(), is_its_name);
  });
}

bool StandsForMethod(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames = {"x-http-method-override", "x-http-method",
                                                      "x-method-override"};
  return MayBeReadAsOneOf(name, kNames);
}

bool StandsForPath(std::string_view name) {
  constexpr std::array<std::string_view, 2> kNames = {"x-original-url", "x-rewrite-url"};
  return MayBeReadAsOneOf(name, kNames);
}

bool MayBeTrailer(std::string_view name) {
  constexpr std::array<std::string_view, 30> kNotHere = {
      "age",
      "authorization",
      "cache-control",
      "connection",
      "content-encoding",
      "content-length",
      "content-range",
      "content-type",
      "cookie",
      "date",
      "expect",
      "expires",
      "host",
      "http2-settings",
      "keep-alive",
      "location",
      "max-forwards",
      "pragma",
      "proxy-authenticate",
      "proxy-authorization",
      "proxy-connection",
      "range",
      "retry-after",
      "set-cookie",
      "te",
      "trailer",
      "transfer-encoding",
      "upgrade",
      "vary",
      "www-authenticate",
  };
  return !MayBeReadAsOneOf(name, kNotHere) && !StandsForMethod(name) && !StandsForPath(name);
}

Result<HttpFields> ParseTrailers(std::string_view block) {
  HttpFields fields = TRY(ParseFields(block));
  std::erase_if(fields, [](const HttpField& field) { return !MayBeTrailer(field.name); });
  return fields;
}

std::string RenderRequestHead(std::string_view method, std::string_view target,
                              const HttpFields& fields, const HttpFields& more) {
  std::string out;
  // Reserves all at once: a text that grows leaves copies behind, and this one may hold
  // credentials.
  out.reserve(method.size() + target.size() + 12 + RenderedBytes(fields) + RenderedBytes(more));
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
  AppendFields(out, fields);
  AppendFields(out, more);
  out += "\r\n";
  return out;
}

std::string RenderResponseHead(int status, std::string_view reason, const HttpFields& fields,
                               const HttpFields& more) {
  std::string out;
  out.reserve(reason.size() + 16 + RenderedBytes(fields) + RenderedBytes(more));
  out.append("HTTP/1.1 ").append(std::to_string(status)).append(" ");
  out.append(reason).append("\r\n");
  AppendFields(out, fields);
  AppendFields(out, more);
  out += "\r\n";
  return out;
}

}  // namespace codec
