// SPDX-License-Identifier: Apache-2.0
#include "session/inside_files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "base/sys.h"
#include "session/helper.h"

namespace session {
namespace {

constexpr size_t kInsideBytesMax = size_t{512} << 20;
// Until the helper has ended: a busy machine takes its time to start one.
constexpr std::chrono::milliseconds kPatience{10'000};

// Runs inside, with the agent's rights.
Status WriteFile(int checkout, const InsideFile& file) {
  const size_t slash = file.path.rfind('/');
  const std::string above = slash == std::string::npos ? "." : file.path.substr(0, slash);
  if (file.text && file.makes) (void)::mkdirat(checkout, above.c_str(), 0755);
  Result<Fd> parent = sys::OpenBeneath(checkout, above, O_RDONLY | O_DIRECTORY);
  if (!parent.ok()) return sys::IsAbsent(parent.error()) ? Ok() : Status(parent.error());
  const std::string name = file.path.substr(slash + 1);
  Result<Fd> there =
      sys::OpenAt(parent.value().get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!there.ok() && sys::IsAbsent(there.error()) && !(file.text && file.makes)) return Ok();
  if (there.ok() && file.text) {
    Result<std::string> text = sys::ReadAll(there.value().get(), kInsideBytesMax);
    if (text.ok() && text.value() == *file.text) return Ok();
    if (text.ok() && file.seen && text.value() != *file.seen) return Ok();
  }
  if (::unlinkat(parent.value().get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return Errno(file.path);
  }
  if (!file.text) return Ok();
  Fd made = TRY(
      sys::OpenAt(parent.value().get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, file.mode)
          .Context(file.path));
  return sys::WriteAll(made.get(), *file.text).Context(file.path);
}

}  // namespace

Status WriteInside(const sandbox::Sandbox& sandbox, const std::vector<InsideFile>& files) {
  if (files.empty()) return Ok();
  const sandbox::Inside inside = sandbox.inside();
  auto write = [&](const std::vector<Fd>&) -> Result<std::string> {
    Fd checkout = TRY(sys::Open(inside.plan->workdir, O_RDONLY | O_DIRECTORY));
    Fd root = TRY(sys::Open("/", O_RDONLY | O_DIRECTORY));
    for (InsideFile file : files) {
      const bool absolute = file.path.starts_with('/');
      if (absolute) file.path.erase(0, 1);
      TRY(WriteFile(absolute ? root.get() : checkout.get(), file));
    }
    return std::string();
  };
  Helper helper = TRY(Helper::Start(sandbox, inside, sandbox::Rights::kAgent, {}, write));
  pollfd ends{helper.fd(), POLLIN, 0};
  if (::poll(&ends, 1, static_cast<int>(kPatience.count())) == 0) {
    return Error{Code::kTemporary, "the sandbox's files could not be written in time"};
  }
  TRY(helper.Take());
  return Ok();
}

}  // namespace session
