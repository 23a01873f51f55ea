// SPDX-License-Identifier: Apache-2.0
#include "run/native/lost_refs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/fd.h"
#include "base/sys.h"
#include "base/tree.h"
#include "codec/data/inflater.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"
#include "sandbox/host_tree.h"
#include "sandbox/mask.h"

namespace run {
namespace {

constexpr size_t kRefBytesMax = 4096;
constexpr size_t kPackedBytesMax = size_t{32} << 20;
constexpr size_t kLogBytesMax = size_t{1} << 20;
constexpr size_t kObjectBytesMax = size_t{64} << 10;
constexpr size_t kHeadBytesMax = size_t{16} << 10;  // The bytes of an inflated object.
constexpr size_t kRefsMax = 20'000;
constexpr size_t kCommitsMax = 1000;
constexpr int kDepthMax = 16;
constexpr size_t kNotesMax = 20;
constexpr size_t kNameBytesMax = 200;
constexpr size_t kTextBytesMax = 200;

constexpr std::string_view kSymbolic = "ref: ";

using Refs = std::map<std::string, std::string>;  // Full name -> object.

// A regular file beneath `directory`, at most `bytes_max` of it.
std::optional<std::string> ReadBeneath(int directory, const std::string& path, size_t bytes_max) {
  Result<Fd> file =
      sys::OpenBeneath(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat facts {};
  if (!file.ok()) return std::nullopt;
  const Fd opened = std::move(file).value();
  if (::fstat(opened.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  Result<std::string> text = sys::ReadAll(opened.get(), bytes_max);
  return text.ok() ? std::optional(std::move(text).value()) : std::nullopt;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

void ReadLoose(int git, const std::string& path, int depth, Refs* refs) {
  Result<Fd> opened = sys::OpenBeneath(git, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!opened.ok() || depth == 0) return;
  const Fd directory = std::move(opened).value();
  Result<std::vector<std::string>> names = sys::DirectoryNames(directory.get());
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    if (refs->size() >= kRefsMax) return;
    const std::string ref = path + "/" + name;
    std::optional<std::string> text = ReadBeneath(git, ref, kRefBytesMax);
    if (text && codec::IsObjectId(FirstLine(*text))) (*refs)[ref] = FirstLine(*text);
    if (!text) ReadLoose(git, ref, depth - 1, refs);
  }
}

bool IsOwn(const std::string& ref) {
  return ref.starts_with("refs/heads/") || ref.starts_with("refs/tags/") || ref == "refs/stash";
}

Refs ReadRefs(int git) {
  Refs refs;
  std::istringstream packed(ReadBeneath(git, "packed-refs", kPackedBytesMax).value_or(""));
  for (std::string line; std::getline(packed, line) && refs.size() < kRefsMax;) {
    const size_t space = line.find(' ');
    if (space == std::string::npos || !codec::IsObjectId(line.substr(0, space))) continue;
    if (IsOwn(line.substr(space + 1))) refs[line.substr(space + 1)] = line.substr(0, space);
  }
  for (const char* place : {"refs/heads", "refs/tags"}) ReadLoose(git, place, kDepthMax, &refs);
  std::optional<std::string> stash = ReadBeneath(git, "refs/stash", kRefBytesMax);
  if (stash && codec::IsObjectId(FirstLine(*stash))) refs["refs/stash"] = FirstLine(*stash);
  return refs;
}

// The beginning of a commit or a tag; empty for another object. What was just made is loose.
std::string ObjectText(int git, const std::string& object) {
  const std::string path = "objects/" + object.substr(0, 2) + "/" + object.substr(2);
  std::optional<std::string> bytes = ReadBeneath(git, path, kObjectBytesMax);
  if (!bytes) return {};
  codec::Inflater inflater(codec::Inflater::Format::kZlibOrGzip);
  std::string text(kHeadBytesMax, '\0');
  size_t size = 0;
  std::string_view in = *bytes;
  for (size_t got = 1; got > 0 && size < text.size(); size += got) {
    got = 0;
    if (inflater.Inflate(in, text.data() + size, text.size() - size, got) !=
        codec::Inflater::Progress::kMore) {
      size += got;
      break;
    }
  }
  text.resize(std::min(size, text.size()));
  return text.starts_with("commit ") || text.starts_with("tag ") ? text : "";
}

// The first line of its message.
std::string MessageOf(int git, const std::string& object) {
  const std::string text = ObjectText(git, object);
  const size_t message = text.find("\n\n");
  return message == std::string::npos ? "" : FirstLine(text.substr(message + 2));
}

// The messages of the stashes in a log, the newest first.
std::vector<std::string> ReadStashes(int git) {
  std::vector<std::string> messages;
  std::istringstream log(ReadBeneath(git, "logs/refs/stash", kLogBytesMax).value_or(""));
  for (std::string line; std::getline(log, line);) messages.push_back(line);
  std::reverse(messages.begin(), messages.end());
  return messages;
}

void AddStashes(const GitSides& sides, const std::string& newest, std::vector<LostRef>* lost) {
  const std::vector<std::string> old = ReadStashes(sides.host);
  const std::set<std::string> known(old.begin(), old.end());
  const std::vector<std::string> lines = ReadStashes(sides.inside);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (known.contains(lines[i])) continue;
    const size_t tab = lines[i].find('\t');
    lost->push_back({"stash", "stash@{" + std::to_string(i) + "}",
                     tab == std::string::npos ? "" : lines[i].substr(tab + 1)});
  }
  if (lines.empty()) lost->push_back({"stash", "stash@{0}", MessageOf(sides.inside, newest)});
}

// What HEAD is for the agent.
struct Head {
  std::string branch;  // Empty if it is detached.
  std::string commit;
};

Head HeadOf(const GitSides& sides, const Refs& host, const Refs& inside) {
  const std::string head =
      FirstLine(ReadBeneath(sides.inside, sides.head_path, kRefBytesMax).value_or(sides.head));
  if (!head.starts_with(kSymbolic)) return {"", head};
  const std::string branch = head.substr(kSymbolic.size());
  return {branch, inside.count(branch) == 1 ? inside.at(branch)
                  : host.count(branch) == 1 ? host.at(branch)
                                            : ""};
}

}  // namespace

std::vector<std::string> FindMergedCommits(const GitSides& sides) {
  std::vector<std::string> found;
  const std::string place = sides.head_path.substr(0, sides.head_path.size() - 4);
  std::istringstream begun(
      ReadBeneath(sides.inside, place + "MERGE_HEAD", kRefBytesMax).value_or(""));
  for (std::string line; std::getline(begun, line);) found.push_back(line);
  found.push_back(HeadOf(sides, ReadRefs(sides.host), ReadRefs(sides.inside)).commit);
  std::erase_if(found, [](const std::string& commit) { return !codec::IsObjectId(commit); });
  std::set<std::string> seen(found.begin(), found.end());
  for (size_t at = 0; at < found.size() && found.size() < kCommitsMax; ++at) {
    std::istringstream commit(ObjectText(sides.inside, found[at]));
    for (std::string line; std::getline(commit, line) && !line.empty();) {
      const std::string parent = line.starts_with("parent ") ? line.substr(7) : "";
      if (codec::IsObjectId(parent) && seen.insert(parent).second) found.push_back(parent);
    }
  }
  return found;
}

std::vector<LostRef> FindLostRefs(const GitSides& sides) {
  const Refs host = ReadRefs(sides.host);
  const Refs inside = ReadRefs(sides.inside);
  const auto [branch, commit] = HeadOf(sides, host, inside);
  std::vector<LostRef> lost;
  for (const auto& [ref, object] : inside) {
    auto known = host.find(ref);
    if ((known != host.end() && known->second == object) || ref == branch) continue;
    if (ref == "refs/stash") {
      AddStashes(sides, object, &lost);
      continue;
    }
    const bool tag = ref.starts_with("refs/tags/");
    // The commit of a moved branch is in the working tree, too.
    if (!tag && known != host.end() && object == commit) continue;
    std::string text = MessageOf(sides.inside, object);
    if (text.empty()) text = MessageOf(sides.host, object);
    lost.push_back({tag ? "tag" : "branch", ref.substr(ref.find('/', 5) + 1), std::move(text)});
  }
  return lost;
}

std::vector<report::Finding> DescribeLostRefs(const std::vector<LostRef>& refs) {
  std::vector<report::Finding> notes;
  auto note = [&](std::string message) {
    report::Finding finding;
    finding.rule = report::kLostRefRule;
    finding.severity = report::Severity::kWarning;
    finding.message = codec::RedactTokens(std::move(message));
    notes.push_back(std::move(finding));
  };
  for (size_t i = 0; i < std::min(refs.size(), kNotesMax); ++i) {
    const LostRef& ref = refs[i];
    std::string message = "the agent's " + ref.kind + " " +
                          codec::NeutralLine(ref.name, kNameBytesMax) + " is not part of the patch";
    if (!ref.text.empty()) message += ": " + codec::NeutralLine(ref.text, kTextBytesMax);
    note(std::move(message));
  }
  if (refs.size() > kNotesMax) {
    note(std::to_string(refs.size() - kNotesMax) +
         " more branches, tags and stashes of the agent's are not part of the patch");
  }
  return notes;
}

AgentGit ReadAgentGit(const std::string& checkout, const GitFiles& git, int upper, int layers) {
  if (git.common.empty()) return {};
  std::string place;
  int top = upper;
  if (sandbox::Beneath(git.common, checkout)) {
    place = git.common.substr(checkout.size() + 1);
  } else if (layers < 0) {
    place = ".git";  // CopyGitDirectory().
  } else {
    auto layer = std::find(git.layers.begin(), git.layers.end(), git.common);
    if (layer == git.layers.end()) return {};
    top = layers;
    place = sandbox::RepositoryScratch(static_cast<size_t>(layer - git.layers.begin())) + "/upper";
  }
  Result<Fd> host = sys::Open(git.common, O_RDONLY | O_DIRECTORY);
  Result<Fd> inside = sys::OpenBeneath(top, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!host.ok() || !inside.ok()) return {};  // The agent wrote nothing there.
  const Fd host_directory = std::move(host).value();
  const Fd inside_directory = std::move(inside).value();
  GitSides sides{host_directory.get(), inside_directory.get(), ""};
  Result<Fd> own = sys::Open(git.own, O_RDONLY | O_DIRECTORY);
  if (own.ok()) {
    const Fd directory = std::move(own).value();
    sides.head = ReadBeneath(directory.get(), "HEAD", kRefBytesMax).value_or("");
  }
  if (layers >= 0 && git.own != git.common && sandbox::Beneath(git.own, git.common)) {
    sides.head_path = git.own.substr(git.common.size() + 1) + "/HEAD";
  }
  return {FindLostRefs(sides), FindMergedCommits(sides)};
}

}  // namespace run
