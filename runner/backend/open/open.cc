// SPDX-License-Identifier: Apache-2.0
#include "backend/open/open.h"

#include <array>

#include "backend/openshell/job.h"
#include "backend/openshell/keeper.h"
#include "backend/openshell/lasting.h"
#include "run/native/native.h"

namespace backend {

std::span<const Row> Rows() {
  static const std::array<Row, 2> kRows = {{
      {run::NativeBackend(),
       [](const session::CreateRequest& request) { return session::Create(request); },
       session::Exec},
      {openshell::BackendOfRuns(), openshell::CreateLasting, openshell::Exec},
  }};
  return kRows;
}

}  // namespace backend
