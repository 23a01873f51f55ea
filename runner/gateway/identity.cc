// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "base/sys.h"
#include "gateway/process_table.h"
#include "gateway/socket_table.h"

namespace gateway {
namespace {

constexpr size_t kSocketTableBytesMax = size_t{16} << 20;
constexpr size_t kAncestorsMax = 64;  // OpenShell's bound.
// The largest agent is about 250 MB; beyond this nothing is trusted.
constexpr off_t kExecutableBytesMax = off_t{2} << 30;
// More programs than a run has any use for: then new ones are refused.
constexpr size_t kExecutablesMax = 65536;

// Looked at for one question: under a second. The supervisor watches the limits of the run in
// the same loop, and a sandbox may have a thousand processes with 65536 descriptors each.
constexpr size_t kDescriptorsMax = size_t{64} << 10;

constexpr std::string_view kViolation = "Binary integrity violation";

// A refusal may still name the program, for the record.
Answer Refused(uint64_t number, std::string why) {
  Answer answer;
  answer.number = number;
  answer.refusal = std::move(why);
  return answer;
}

Result<std::array<uint8_t, 32>> HashFile(int fd) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!hash || EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1) {
    return Error{Code::kBug, "SHA-256 does not start"};
  }
  std::vector<char> chunk(size_t{256} << 10);
  off_t at = 0;
  for (;;) {
    ssize_t n = ::pread(fd, chunk.data(), chunk.size(), at);
    if (n < 0) return Errno("pread");
    if (n == 0) break;
    EVP_DigestUpdate(hash.get(), chunk.data(), static_cast<size_t>(n));
    at += n;
    if (at > kExecutableBytesMax) return Error{Code::kInvalid, "the executable is too large"};
  }
  std::array<uint8_t, 32> digest{};
  EVP_DigestFinal_ex(hash.get(), digest.data(), nullptr);
  return digest;
}

IdentityCache::Fingerprint FingerprintOf(const struct stat& st) {
  IdentityCache::Fingerprint print;
  print.size = static_cast<uint64_t>(st.st_size);
  print.modified_ns = int64_t{st.st_mtim.tv_sec} * 1000000000 + st.st_mtim.tv_nsec;
  print.changed_ns = int64_t{st.st_ctim.tv_sec} * 1000000000 + st.st_ctim.tv_nsec;
  print.device = st.st_dev;
  print.inode = st.st_ino;
  return print;
}

std::optional<uint64_t> FindInode(const Question& question, pid_t init) {
  for (const char* name : {"/net/tcp", "/net/tcp6"}) {
    Result<std::string> table =
        sys::ReadFile("/proc/" + std::to_string(init) + name, kSocketTableBytesMax);
    if (!table.ok()) continue;
    std::optional<uint64_t> inode = FindSocketInode(table.value(), question.local, question.remote);
    if (inode.has_value()) return inode;
  }
  return std::nullopt;
}

// One owner looked at: its program and those above it, each the same as when first seen.
struct Examined {
  policy::Caller caller;
  std::string refusal;
};

Examined Examine(pid_t pid, pid_t init, const std::vector<ProcessEntry>& processes,
                 IdentityCache& cache) {
  Examined examined;
  pid_t current = pid;
  for (size_t depth = 0; current != 0 && depth <= kAncestorsMax; ++depth) {
    // The sandbox's pid 1 is this program, not one of the sandbox's.
    if (current == init && depth > 0) break;
    std::optional<std::string> path = ExecutableOf(current);
    Fd executable = OpenExecutable(current);
    if (!path.has_value() || !executable.valid()) {
      if (depth > 0) break;  // An ancestor that ended meanwhile grants nothing.
      examined.refusal = "the process that owns the connection is gone";
      return examined;
    }
    Result<bool> unchanged = cache.Unchanged(*path, executable.get());
    if (depth == 0) {
      examined.caller.binary = *path;
      examined.caller.cmdline = AbsoluteArguments(current);
    } else {
      examined.caller.ancestors.push_back(*path);
    }
    if (!unchanged.ok()) examined.refusal = *path + ": " + unchanged.error().what;
    if (unchanged.ok() && !unchanged.value()) {
      examined.refusal = std::string(kViolation) + ": " + *path + " is not what it was";
    }
    if (!examined.refusal.empty()) return examined;
    auto entry = std::find_if(processes.begin(), processes.end(),
                              [&](const ProcessEntry& process) { return process.pid == current; });
    current = entry == processes.end() ? 0 : entry->parent;
  }
  return examined;
}

bool SameForPolicy(const policy::Caller& a, const policy::Caller& b) {
  return a.binary == b.binary && a.ancestors == b.ancestors;
}

}  // namespace

Result<bool> IdentityCache::Unchanged(const std::string& path, int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Errno("fstat");
  Fingerprint print = FingerprintOf(st);
  auto found = seen_.find(path);
  if (found != seen_.end() && found->second.fingerprint == print) return true;
  std::array<uint8_t, 32> digest = TRY(HashFile(fd));
  if (found == seen_.end()) {
    if (seen_.size() >= kExecutablesMax) return Error{Code::kInvalid, "too many executables"};
    seen_.emplace(path, Seen{print, digest});
    return true;
  }
  if (found->second.sha256 != digest) return false;
  found->second.fingerprint = print;
  return true;
}

Answer Identify(const Question& question, pid_t init, IdentityCache& cache) {
  if (init <= 0) return Refused(question.number, "the sandbox has not started");
  std::optional<uint64_t> inode = FindInode(question, init);
  if (!inode.has_value()) {
    return Refused(question.number, "no socket of the sandbox has this connection");
  }
  std::vector<ProcessEntry> processes = ListDescendants(init);
  Answer answer;
  answer.number = question.number;
  bool found = false;
  size_t budget = kDescriptorsMax;
  for (const ProcessEntry& process : processes) {
    bool holds = HoldsSocket(process.pid, *inode, &budget);
    if (budget == 0) return Refused(question.number, "the sandbox has too many descriptors open");
    if (!holds) continue;
    Examined examined = Examine(process.pid, init, processes, cache);
    if (!found || !examined.refusal.empty()) {
      answer.pid = InnermostPid(process.pid);
      answer.caller = std::move(examined.caller);
      answer.refusal = std::move(examined.refusal);
    } else if (!SameForPolicy(answer.caller, examined.caller)) {
      answer.refusal = "ambiguous shared socket ownership";
    }
    found = true;
    if (!answer.refusal.empty()) return answer;
  }
  if (!found) return Refused(question.number, "no process of the sandbox owns the connection");
  return answer;
}

Status AnswerIdentity(int socket, pid_t init, IdentityCache& cache) {
  sys::Message message =
      TRY(sys::ReceiveMessage(socket, kQuestionBytes, Deadline::After(std::chrono::seconds(1))));
  if (message.bytes.empty()) return Error{Code::kIo, "the gateway is gone"};
  std::optional<Question> question = ParseQuestion(message.bytes);
  if (!question.has_value()) return Error{Code::kInvalid, "the gateway asked nonsense"};
  Answer answer = Identify(*question, init, cache);
  return sys::SendMessage(socket, RenderAnswer(answer)).Context("answering the gateway");
}

}  // namespace gateway
