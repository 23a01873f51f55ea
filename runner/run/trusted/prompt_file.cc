// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/prompt_file.h"

#include <optional>
#include <utility>

#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"

namespace run {
namespace {

constexpr size_t kPromptBytesMax = 1 << 20;
constexpr char kDirectory[] = ".agentic-ci/";

// Returns the path from the repository's top, of a file in its `.agentic-ci/`; otherwise nullopt.
std::optional<std::string> FindInDirectory(const std::string& path,
                                           const change::Repository* repository) {
  std::optional<CheckoutPath> inside = FindCheckoutPath(path);
  if (repository == nullptr || !inside) return std::nullopt;
  Result<std::string> top = sys::RealPath(inside->top);
  if (!top.ok()) return std::nullopt;
  const std::string place = top.value() + "/" + inside->below;
  const std::string above = repository->top() + "/";
  if (!place.starts_with(above + kDirectory)) return std::nullopt;
  return place.substr(above.size());
}

}  // namespace

Result<std::string> ReadPromptFile(const std::string& path, const change::Repository* repository,
                                   const TrustedRef& ref) {
  std::optional<std::string> below = FindInDirectory(path, repository);
  if (!below) return ReadNamedFile(path, kPromptBytesMax);
  TrustedFile file =
      TRY(ReadTrustedFile(repository, repository->top(), ref, *below, kPromptBytesMax));
  if (!file.text) {
    Error error{Code::kNotFound, "there is no " + *below + " at " + ref.ref};
    if (ref.assumed) error.hint = "git add " + *below + " && git commit";
    return error;
  }
  if (file.worktree_differs) {
    logging::Warn("worktree prompt ignored: commit it, or use --policy-ref worktree",
                  {{"file", *below}});
  }
  return *std::move(file.text);
}

}  // namespace run
