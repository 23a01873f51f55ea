// SPDX-License-Identifier: Apache-2.0
// `agentic-ci serve`: the protocol of docs/reference/serve.md.
#pragma once

#include "serve/loop.h"

namespace serve {

class Server final : public Loop {
 public:
  using Loop::Loop;

 private:
  void Take(const Request& request) override;
  void TakeEnd(const std::string& sandbox) override;
  void TakeNotice(const Request& request);
  Status Begin(const Request& request);
  Status TakeControl(const Request& request, codec::Json* result);
  codec::Json Introduce() const;

  bool initialized_ = false;
};

}  // namespace serve
