// SPDX-License-Identifier: Apache-2.0
#include "serve/task.h"

#include "serve/message.h"

namespace serve {

void Task::Conclude(const Result<codec::Json>& result) {
  done_ = true;
  if (answer_) return answer_(result);
  output_.Write(result.ok() ? RenderResult(id_, result.value()) : RenderError(id_, result.error()));
}

Error Cancelled() { return {Code::kIo, "the request was cancelled"}; }

}  // namespace serve
