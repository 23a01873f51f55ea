// SPDX-License-Identifier: Apache-2.0
// HTTP/1 heads, parsed strictly: where two parsers disagree about one byte, a request can be
// smuggled, so anything malformed is refused, and what is passed on is rendered anew from these
// values. Rules: RFC 9110 and 9112, narrowed as OpenShell narrows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/secret.h"

namespace codec {

struct HttpField {
  // The name as sent; compare with FindField or FieldHasToken, which ignore case.
  std::string name;
  std::string value;  // The value without the white space around it.
};
using HttpFields = std::vector<HttpField>;

// Fields that may hold credentials: their values are wiped with them.
struct SecretFields : HttpFields {
  using HttpFields::HttpFields;
  SecretFields(HttpFields fields) : HttpFields(std::move(fields)) {}
  SecretFields(SecretFields&&) = default;
  SecretFields& operator=(SecretFields&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SecretFields() {
    for (HttpField& field : *this) Wipe(field.value);
  }
};

struct RequestHead {
  std::string method;
  std::string target;
  int minor_version = 1;  // HTTP/1.0 or HTTP/1.1.
  HttpFields fields;
};

struct ResponseHead {
  int minor_version = 1;
  int status = 0;  // 100 to 599.
  std::string reason;
  HttpFields fields;
};

// The extent of a head in bytes that still arrive.
struct HeadScan {
  enum State { kPartial, kComplete, kMalformed };  // kMalformed: a line that does not end in CRLF.
  State state = kPartial;
  size_t size = 0;  // With kComplete: bytes up to and with the empty line.
};
HeadScan ScanHead(std::string_view bytes);

// True for a character of a token: of a method, or of the name of a field (RFC 9110, 5.6.2).
bool IsTokenChar(char c);

// True for a method that every reader takes for the same: capitals, with '-' and '_'. Methods are
// case-sensitive (RFC 9110, 9.1), and servers that read "get" as GET exist.
bool IsMethod(std::string_view method);

// Parse a block that ScanHead calls complete. Fail with kInvalid and what is wrong, never with the
// bytes themselves. A request head is checked for its Host field and its Connection field too.
Result<RequestHead> ParseRequestHead(std::string_view block);
Result<ResponseHead> ParseResponseHead(std::string_view block);

// Returns the first field of that name, or nullptr.
const HttpField* FindField(const HttpFields& fields, std::string_view name);
// True if a comma-separated field of that name lists `token`, in any of its lines.
bool FieldHasToken(const HttpFields& fields, std::string_view name, std::string_view token);
bool EqualIgnoringCase(std::string_view a, std::string_view b);
// Returns whether servers behind CGI and its heirs, which take "_" for "-", may read the field
// `spelling` as the one that is named `name` (RFC 3875, 4.1.18).
bool MayBeReadAs(std::string_view spelling, std::string_view name);
// True for spellings such as "content_length" that some servers take for the header that frames the
// message. No request has one.
bool MayBeReadAsFraming(std::string_view name);

// Returns the codings of a body, as all fields called `name` say together, and those that some
// servers read as it: in lower case, without "identity". Empty if the body is as it is.
std::vector<std::string> CodingsOf(const HttpFields& fields,
                                   std::string_view name = "content-encoding");
// Returns the one field that says a body's type; nullptr if there is none, more than one, or one
// that only some servers read as it.
const HttpField* FindContentType(const HttpFields& fields);

// True if some servers take a field of that name for the method, or for the path, in place of the
// request line's.
bool StandsForMethod(std::string_view name);
bool StandsForPath(std::string_view name);
// False if a field of that name, or of one that is read as it, has no place behind a body: it
// frames, routes, authenticates or describes the message (RFC 9110, 6.5.1), or stands for a part of
// its request line.
bool MayBeTrailer(std::string_view name);

struct BodyFraming {
  enum Kind { kNone, kLength, kChunked, kUntilClose };
  Kind kind = kNone;
  uint64_t length = 0;  // With kLength.
};
// Fails with kInvalid where two readers could disagree: Content-Length beside Transfer-Encoding,
// differing or malformed lengths, any coding but a single `chunked`.
Result<BodyFraming> RequestFraming(const RequestHead& head);
Result<BodyFraming> ResponseFraming(const ResponseHead& head, std::string_view request_method);

// Returns the fields that travel on: neither hop-by-hop ones, nor those that Connection nominates,
// nor the framing, which the sender writes itself.
HttpFields EndToEndFields(const HttpFields& fields);
// Leaves only those in `fields`.
void KeepEndToEnd(HttpFields& fields);

// Parses the lines behind a chunked body, up to and with the empty one. Leaves out the fields that
// are not MayBeTrailer.
Result<HttpFields> ParseTrailers(std::string_view block);

// Renders "METHOD target HTTP/1.1", the fields and the empty line. `more` are fields like the
// others.
std::string RenderRequestHead(std::string_view method, std::string_view target,
                              const HttpFields& fields, const HttpFields& more = {});
std::string RenderResponseHead(int status, std::string_view reason, const HttpFields& fields,
                               const HttpFields& more = {});

}  // namespace codec
