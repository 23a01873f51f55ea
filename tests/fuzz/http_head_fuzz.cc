// SPDX-License-Identifier: Apache-2.0
// Heads of HTTP/1: what is passed on is what was judged.
#include <cstddef>
#include <cstdint>

#include "codec/wire/http_head.h"

namespace {

using codec::HeadScan;

void CheckSame(const codec::HttpFields& a, const codec::HttpFields& b) {
  ENSURE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ENSURE(a[i].name == b[i].name && a[i].value == b[i].value);
  }
}

void CheckRequest(std::string_view block) {
  Result<codec::RequestHead> head = codec::ParseRequestHead(block);
  if (!head.ok()) return;
  const codec::RequestHead& first = head.value();
  Result<codec::BodyFraming> framing = codec::RequestFraming(first);
  const std::string rendered = codec::RenderRequestHead(first.method, first.target, first.fields);
  ENSURE(codec::ScanHead(rendered).size == rendered.size());
  Result<codec::RequestHead> again = codec::ParseRequestHead(rendered);
  // HTTP/1.0 may lack a Host, which what is sent on has to have.
  if (first.minor_version == 0 && !again.ok()) return;
  ENSURE(again.ok());
  const codec::RequestHead& second = again.value();
  ENSURE(first.method == second.method && first.target == second.target);
  CheckSame(first.fields, second.fields);
  Result<codec::BodyFraming> framing_again = codec::RequestFraming(second);
  if (first.minor_version == 1) {
    ENSURE(framing.ok() == framing_again.ok());
  }
  // What frames a message never travels on with it.
  for (const codec::HttpField& field : codec::EndToEndFields(first.fields)) {
    for (const char* name : {"content-length", "transfer-encoding", "connection"}) {
      ENSURE(!codec::EqualIgnoringCase(field.name, name));
    }
  }
}

void CheckResponse(std::string_view block) {
  Result<codec::ResponseHead> head = codec::ParseResponseHead(block);
  if (!head.ok()) return;
  const codec::ResponseHead& first = head.value();
  ENSURE(first.status >= 100 &&
         first.status <= 999);  // Three digits: a client reads more than 599 as 500.
  Result<codec::BodyFraming> framing = codec::ResponseFraming(first, "GET");
  const std::string rendered = codec::RenderResponseHead(first.status, first.reason, first.fields);
  Result<codec::ResponseHead> again = codec::ParseResponseHead(rendered);
  ENSURE(again.ok() && again.value().status == first.status);
  CheckSame(first.fields, again.value().fields);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const HeadScan whole = codec::ScanHead(bytes);
  // However the bytes arrive, the head ends where it ends.
  for (size_t prefix = 0; prefix < size && prefix < 200; ++prefix) {
    const HeadScan part = codec::ScanHead(bytes.substr(0, prefix));
    if (part.state == HeadScan::kPartial) continue;
    ENSURE(part.state == whole.state);
    if (part.state == HeadScan::kComplete) ENSURE(part.size == whole.size);
  }
  if (whole.state != HeadScan::kComplete) return 0;
  ENSURE(whole.size <= size);
  CheckRequest(bytes.substr(0, whole.size));
  CheckResponse(bytes.substr(0, whole.size));
  return 0;
}
