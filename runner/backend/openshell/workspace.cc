// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/workspace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/tree.h"
#include "run/environment.h"
#include "run/shown/git_files.h"
#include "sandbox/tree_copy.h"

namespace openshell {
namespace {

constexpr int64_t kFilesMax = 2'000'000;

// Returns the path of `path` in the checkout; empty if it lies elsewhere, or is the checkout.
std::string Inside(const std::string& path, const std::string& checkout) {
  return path.starts_with(checkout + "/") ? path.substr(checkout.size() + 1) : "";
}

// No link of the checkout is followed.
Status Remove(int root, const std::string& path) {
  const size_t slash = path.rfind('/');
  Result<Fd> parent = slash == std::string::npos
                          ? sys::OpenAt(root, ".", O_RDONLY | O_DIRECTORY)
                          : sys::OpenBeneath(root, path.substr(0, slash), O_RDONLY | O_DIRECTORY);
  if (!parent.ok()) {
    if (sys::IsAbsent(parent.error())) return Ok();
    return std::move(parent).error();
  }
  Status removed = sys::RemoveTree(parent.value().get(),
                                   slash == std::string::npos ? path : path.substr(slash + 1));
  if (!removed.ok() && removed.error().code == Code::kNotFound) return Ok();
  return removed;
}

Status Replace(int root, const sandbox::WorkspaceFile& file) {
  TRY(Remove(root, file.path));
  if (file.gone) return Ok();
  for (size_t slash = file.path.find('/'); slash != std::string::npos;
       slash = file.path.find('/', slash + 1)) {
    const std::string directory = file.path.substr(0, slash);
    Result<Fd> there = sys::OpenBeneath(root, directory, O_RDONLY | O_DIRECTORY);
    if (there.ok()) continue;
    TRY(Remove(root, directory));
    if (::mkdirat(root, directory.c_str(), 0755) != 0) return Errno("mkdir " + directory);
  }
  Fd out = TRY(sys::OpenBeneath(root, file.path, O_WRONLY | O_CREAT | O_EXCL, 0644));
  return sys::WriteAll(out.get(), file.content.get());
}

}  // namespace

std::vector<std::string> HiddenPaths(const run::Plan& plan, const run::Request& request,
                                     const std::string& report_dir) {
  std::vector<std::string> hidden = run::HostSecrets();
  hidden.insert(hidden.end(), plan.credentials.files.begin(), plan.credentials.files.end());
  if (!request.gateway_tls.empty()) hidden.push_back(request.gateway_tls);
  for (std::string& path : hidden) {
    Result<std::string> real = sys::RealPath(path);
    if (real.ok()) path = std::move(real).value();
  }
  hidden.push_back(report_dir);
  return hidden;
}

Status StageWorkspace(const run::Plan& plan, const std::vector<std::string>& hidden,
                      int64_t bytes_max, const std::string& to) {
  const std::string& checkout = plan.checkout.path;
  TRY(sys::MakeDirectories(to, 0700));
  Fd from = TRY(sys::Open(checkout, O_RDONLY | O_DIRECTORY));
  Fd root = TRY(sys::Open(to, O_RDONLY | O_DIRECTORY));
  TRY(sandbox::CopyTree(from.get(), root.get(), {bytes_max, kFilesMax}, std::nullopt,
                        sandbox::LogCopying()));
  for (const sandbox::WorkspaceFile& file : plan.git.in_checkout) {
    TRY(Replace(root.get(), file).Context(file.path));
  }
  for (const sandbox::WorkspaceFile& file : plan.replaced) {
    TRY(Replace(root.get(), file).Context(file.path));
  }
  for (const std::string& path : hidden) {
    const std::string inside = Inside(path, checkout);
    if (!inside.empty()) TRY(Remove(root.get(), inside).Context(inside));
  }
  // It belongs to the agent, as every file there does.
  if (::chmod(to.c_str(), 0755) != 0) return Errno("chmod " + to);
  return Ok();
}

}  // namespace openshell
