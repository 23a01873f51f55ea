// SPDX-License-Identifier: Apache-2.0
#include "report/record.h"

#include "report/record_names.h"

namespace report {

std::string Render(OutcomeKind kind) { return std::string(NameOf(kOutcomeNames, kind)); }
std::string Render(ControlState state) { return std::string(NameOf(kControlNames, state)); }
std::string Render(FileState state) { return std::string(NameOf(kFileNames, state)); }
std::string Render(Severity severity) { return std::string(NameOf(kSeverityNames, severity)); }

}  // namespace report
