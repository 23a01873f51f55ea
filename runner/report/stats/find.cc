// SPDX-License-Identifier: Apache-2.0
#include "report/stats/find.h"

#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "base/sys.h"
#include "base/tree.h"
#include "report/read.h"

namespace report::stats {
namespace {

constexpr int kDepthMax = 8;

void Walk(const Fd& place, const std::string& path, int depth,
          const std::function<void(const std::string&, Result<RunFile>)>& take) {
  Result<RunFile> run = ReadRun(place.get());
  if (run.ok() || run.error().code != Code::kNotFound) return take(path, std::move(run));
  if (depth == kDepthMax) return;
  Result<std::vector<std::string>> names = sys::DirectoryNames(place.get());
  if (!names.ok()) return take(path, std::move(names).error());
  std::sort(names.value().begin(), names.value().end());
  for (const std::string& name : names.value()) {
    Result<Fd> below = sys::OpenBeneath(place.get(), name, O_RDONLY | O_DIRECTORY);
    if (below.ok()) Walk(below.value(), path + "/" + name, depth + 1, take);
  }
}

}  // namespace

Status ForEachReport(const std::string& directory,
                     const std::function<void(const std::string&, Result<RunFile>)>& take) {
  const Fd place = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY).Context("reading reports"));
  Walk(place, directory, 0, take);
  return Ok();
}

}  // namespace report::stats
