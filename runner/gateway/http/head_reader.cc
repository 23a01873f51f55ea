// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/head_reader.h"

#include <memory>

#include "codec/wire/http_head.h"
#include "gateway/async/limits.h"

namespace gateway {

Task<HeadText> ReadHead(Stream& stream, HeadBounds bounds) {
  HeadText head;
  Deadline deadline = bounds.first_byte;
  bool started = false;
  for (;;) {
    codec::HeadScan scan = codec::ScanHead(stream.buffered());
    if (scan.state == codec::HeadScan::kMalformed) {
      head.kind = HeadText::kMalformed;
      head.why = "a line of the head does not end in CRLF";
      co_return head;
    }
    bool complete = scan.state == codec::HeadScan::kComplete;
    if ((complete ? scan.size : stream.buffered().size()) > bounds.bytes_max) {
      head.kind = HeadText::kTooLong;
      head.why = "head longer than " + std::to_string(bounds.bytes_max) + " bytes";
      co_return head;
    }
    if (complete) {
      head.kind = HeadText::kHead;
      head.text = stream.buffered().substr(0, scan.size);
      stream.Consume(scan.size);
      co_return head;
    }
    if (!started && !stream.buffered().empty()) {
      started = true;
      deadline = Deadline::After(kHeadTimeout);
    }
    Result<size_t> read = co_await stream.Fill(deadline);
    if (!read.ok()) {
      head.why = read.error().what;
      co_return head;
    }
    if (read.value() == 0) {
      head.kind = stream.buffered().empty() ? HeadText::kEnd : HeadText::kMalformed;
      head.why = "connection closed in the middle of a head";
      co_return head;
    }
  }
}

Task<HeadText> ReadProxyHead(Stream& stream) {
  HeadText head;
  Deadline deadline = Deadline::After(kHeadTimeout);
  std::unique_ptr<char[]> chunk(new char[kRequestHeadBytesMax]);  // Not cleared.
  for (;;) {
    Result<size_t> peeked = co_await stream.Peek(chunk.get(), kRequestHeadBytesMax, deadline);
    if (!peeked.ok()) {
      head.why = peeked.error().what;
      co_return head;
    }
    if (peeked.value() == 0) {
      head.kind = head.text.empty() ? HeadText::kEnd : HeadText::kMalformed;
      head.why = "connection closed in the middle of a head";
      co_return head;
    }
    size_t held = head.text.size();
    head.text.append(chunk.get(), peeked.value());
    codec::HeadScan scan = codec::ScanHead(head.text);
    bool complete = scan.state == codec::HeadScan::kComplete;
    size_t size = complete ? scan.size : head.text.size();
    // Takes what was looked at, up to the end of the head: it is there, so this cannot wait.
    Result<size_t> taken = co_await stream.Read(chunk.get(), size - held, deadline);
    if (!taken.ok() || taken.value() != size - held) co_return head;
    head.text.resize(size);
    bool connect = head.text.compare(0, 8, "CONNECT ") == 0;
    size_t bytes_max = connect ? kConnectHeadBytesMax : kRequestHeadBytesMax;
    if (scan.state == codec::HeadScan::kMalformed) {
      head.kind = HeadText::kMalformed;
      head.why = "a line of the head does not end in CRLF";
      co_return head;
    }
    if (size > bytes_max) {
      head.kind = HeadText::kTooLong;
      head.why = "head longer than " + std::to_string(bytes_max) + " bytes";
      co_return head;
    }
    if (complete) {
      head.kind = HeadText::kHead;
      co_return head;
    }
  }
}

}  // namespace gateway
