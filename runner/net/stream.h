// SPDX-License-Identifier: Apache-2.0
// A connection to a configured service whose protocol is not HTTP, over libcurl: TCP, or TLS, which
// is always verified. No proxy is used.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"

namespace net {

struct StreamOptions {
  std::string host;  // A name or an address; an IPv6 address without brackets.
  uint16_t port = 0;
  bool tls = false;
  std::string ca_file;  // PEM; if empty, SystemCaBundle().
};

class Stream {
 public:
  // Fails with kTemporary if no connection came about until `deadline`, with kSetup if the
  // certificate does not verify.
  static Result<Stream> Connect(const StreamOptions& options, Deadline deadline);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  // Ends TLS and the connection.
  ~Stream();

  // Writes all of `bytes`. Fails with kTemporary once `deadline` has passed, or the other end is
  // gone.
  Status Write(std::string_view bytes, Deadline deadline);

 private:
  struct State;
  explicit Stream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace net
