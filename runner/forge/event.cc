// SPDX-License-Identifier: Apache-2.0
#include "forge/event.h"

namespace forge {

std::string Event::JobKey(std::string_view task) const {
  std::string key = workflow + "/" + job;
  const std::string& part = leg.empty() ? matrix_job : leg;
  if (!part.empty()) key += "/" + part;
  if (!task.empty()) key += ":" + std::string(task);
  return key;
}

}  // namespace forge
