// SPDX-License-Identifier: Apache-2.0
#include "serve/task.h"

#include "serve/message.h"

namespace serve {

void Task::Succeed(const codec::Json& result) {
  done_ = true;
  output_.Write(RenderResult(id_, result));
}

void Task::Fail(const Error& error) {
  done_ = true;
  output_.Write(RenderError(id_, error));
}

Error Cancelled() { return {Code::kIo, "the request was cancelled"}; }

}  // namespace serve
