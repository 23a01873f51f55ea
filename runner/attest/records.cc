// SPDX-License-Identifier: Apache-2.0
#include "attest/records.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/free_with.h"
#include "base/sys.h"
#include "codec/data/digest.h"
#include "codec/text/utf8.h"
#include "policy/decide/hosted_decide.h"
#include "record/integrity.h"
#include "record/ocsf.h"
#include "report/event_lines.h"
#include "report/read.h"
#include "sigstore/trust/merkle.h"

namespace attest {
namespace {

constexpr size_t kFilesMax = 100'000;
constexpr int64_t kFileBytesMax = int64_t{1} << 30;
constexpr size_t kEventsMax = 2'000'000;
constexpr int kDepthMax = 32;
constexpr size_t kHostsMax = 1000;
constexpr size_t kToolsMax = 100;
constexpr std::string_view kEventDomain = "agentic-ci event v1\n";

using DirectoryOwner = std::unique_ptr<DIR, FreeWith<::closedir>>;

Status ListBelow(int parent, const std::string& prefix, int depth,
                 std::vector<RecordFile>* records) {
  if (depth > kDepthMax) return Error{Code::kInvalid, prefix + ": too deep"};
  Fd fd = TRY(
      sys::OpenBeneath(parent, prefix.empty() ? "." : prefix, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  const DirectoryOwner entries(::fdopendir(fd.get()));
  if (entries == nullptr) return Errno("fdopendir");
  (void)fd.Take();
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = prefix.empty() ? name : prefix + "/" + name;
    if (path == report::kStatementFile || path == report::kUnsignedFile) continue;
    if (codec::FindInvalidUtf8(path) != std::string_view::npos) {
      return Error{Code::kInvalid, "a file of the report has a name that is not UTF-8"};
    }
    struct stat facts {};
    if (::fstatat(parent, path.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return Errno("stat");
    if (S_ISDIR(facts.st_mode)) {
      TRY(ListBelow(parent, path, depth + 1, records));
      continue;
    }
    if (!S_ISREG(facts.st_mode)) return Error{Code::kInvalid, path + ": not a regular file"};
    if (records->size() == kFilesMax) return Error{Code::kInvalid, "too many files"};
    const Fd file = TRY(sys::OpenBeneath(parent, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    records->push_back(TRY(DigestFile(file, path)));
  }
  return Ok();
}

void Count(const record::Event& event, Events* events) {
  using Outcome = record::Event::Outcome;
  if (event.engine == record::Engine::kDns && event.outcome != Outcome::kDenied) return;
  if (event.outcome == Outcome::kDenied && event.engine == record::Engine::kCredentials) {
    ++events->refused_credentials;
  }
  const std::pair<std::string, int> server(event.host, event.port);
  if (events->hosts.size() >= kHostsMax && !events->hosts.contains(server)) {
    ++events->dropped;
    return;
  }
  HostUse& use = events->hosts[server];
  if (event.outcome == Outcome::kAllowed || event.outcome == Outcome::kAudited) ++use.allowed;
  if (event.outcome == Outcome::kDenied) ++use.refused;
  if (event.outcome == Outcome::kFailed) ++use.failed;
  if (event.protocol != policy::kHostedProtocol || event.outcome == Outcome::kDenied) return;
  for (const policy::Operation& one : event.operations) {
    if (events->hosted_tools.size() < kToolsMax) {
      events->hosted_tools.insert(OperationText(one));
    } else if (!events->hosted_tools.contains(OperationText(one))) {
      ++events->dropped;
    }
  }
}

}  // namespace

Result<RecordFile> DigestFile(const Fd& file, std::string name) {
  RecordFile record{std::move(name), 0, {}};
  codec::Sha256 hash;
  std::string block(size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t size = ::read(file.get(), block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Errno("read " + record.name);
    if (size == 0) break;
    hash.Update({block.data(), static_cast<size_t>(size)});
    record.bytes += size;
    if (record.bytes > kFileBytesMax) return Error{Code::kInvalid, record.name + ": too large"};
  }
  record.sha256 = hash.Hex();
  return record;
}

std::string EventLeaf(std::string_view line) {
  return sigstore::LeafHash(std::string(kEventDomain).append(line));
}

Result<std::vector<RecordFile>> ListRecords(int directory) {
  std::vector<RecordFile> records;
  TRY(ListBelow(directory, "", 0, &records).Context("reading the report"));
  std::sort(records.begin(), records.end(),
            [](const RecordFile& a, const RecordFile& b) { return a.name < b.name; });
  return records;
}

Result<Events> ReadEvents(int directory, const std::string& chain) {
  Events events;
  record::IntegrityChain links(chain);
  bool too_many = false;
  const auto take = [&](std::string_view line, bool whole) {
    if (events.leaves.size() == kEventsMax) too_many = true;
    if (too_many) return;
    events.leaves.push_back(EventLeaf(line));
    (void)links.Link(line);  // An incomplete line has no link in the chain.
    const std::optional<record::Record> parsed =
        whole ? record::ParseOcsf(line) : std::optional<record::Record>();
    if (!parsed) {
      ++events.dropped;
    } else if (const auto* event = std::get_if<record::Event>(&*parsed)) {
      Count(*event, &events);
    } else if (const auto* notice = std::get_if<record::Notice>(&*parsed)) {
      if (notice->kind == record::Notice::Kind::kConfig) ++events.policies_replaced;
    }
  };
  TRY(report::ForEachEventLine("/proc/self/fd/" + std::to_string(directory), take));
  if (too_many) return Error{Code::kInvalid, "events.ocsf.jsonl: too many lines"};
  events.head = links.head();
  return events;
}

}  // namespace attest
