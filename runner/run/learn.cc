// SPDX-License-Identifier: Apache-2.0
#include "run/learn.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "advise/suggest.h"
#include "base/log.h"
#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "policy/model/host_pattern.h"
#include "record/limits.h"
#include "record/ocsf.h"
#include "report/denials.h"
#include "report/event_lines.h"
#include "report/wording.h"

namespace run {
namespace {

using codec::Json;

constexpr std::string_view kBeginning = "{\"learned\":1,";
constexpr size_t kSecretsMax = 1000;
constexpr size_t kLearnedBytesMax = size_t{64} << 20;  // Hundreds of runs.

// Returns whether `text`, the beginning of a file, is that of a file of LearnFile.
bool IsLearned(std::string_view text) { return text.starts_with(kBeginning); }

std::string RenderDenial(const report::DeniedRequest& denied) {
  const advise::Denial& denial = denied.denial;
  const bool name = denial.method == advise::kNameAsked;
  record::Event event;
  if (!denial.method.empty() && !name) event.kind = record::Event::Kind::kRequest;
  event.outcome = record::Event::Outcome::kDenied;
  event.host = denial.host;
  event.port = denial.port;
  event.method = denial.method;
  event.path = denial.path;
  event.binary = denial.binary;
  event.ancestors = denial.ancestors;
  event.protocol = denial.protocol;
  event.operations = denial.operations;
  if (name) event.engine = record::Engine::kDns;  // Else none: the policy.
  event.reason = denied.reason;
  event.position = denied.deny_rule;
  event.by_deny_rule = !denied.deny_rule.empty();
  event.count = denied.count;
  return record::RenderDenial(event);
}

void TakeSecrets(std::string_view line, Learned* learned) {
  const Result<Json> json = codec::ParseJson(
      line, {.bytes_max = record::kRecordLineBytesMax, .depth_max = 4, .values_max = 5000});
  const Json* list = json.ok() ? json.value().Find("secrets") : nullptr;
  if (list == nullptr || list->array() == nullptr) return static_cast<void>(++learned->dropped);
  for (const Json& one : *list->array()) {
    advise::BoundSecret secret{one.StringAt("name"), policy::CanonicalHost(one.StringAt("host"))};
    const bool known = std::any_of(learned->secrets.begin(), learned->secrets.end(),
                                   [&](const advise::BoundSecret& other) {
                                     return other.name == secret.name && other.host == secret.host;
                                   });
    if (!known && learned->secrets.size() < kSecretsMax) {
      learned->secrets.push_back(std::move(secret));
    }
  }
}

constexpr size_t kHeadBytes = 64;

Error Refused(const std::string& path, const std::string& why) {
  return Error{Code::kRefused, "--learn " + path + ": " + why, "--learn ../learned.jsonl"};
}

// A link in the checkout would lead out of it, so no directory on the way may lie there either,
// but one that `..` follows.
Status CheckPlace(const std::string& path, const std::string& checkout) {
  std::error_code failed;
  const std::string whole = std::filesystem::absolute(path, failed).string();
  for (size_t slash = whole.find('/'); slash != std::string::npos;
       slash = whole.find('/', slash + 1)) {
    const std::string_view rest = std::string_view(whole).substr(slash + 1);
    if (rest.starts_with("../") || rest.starts_with("./") || rest.starts_with('/')) continue;
    const std::string directory =
        TRY(sys::RealPath(whole.substr(0, slash + 1)).Context("--learn " + path));
    if ((directory + "/").starts_with(checkout + "/")) {
      return Refused(path, "a file in the checkout could be the pull request's");
    }
  }
  return Ok();
}

Status CheckFile(int file, const std::string& path) {
  struct stat facts = {};
  if (::fstat(file, &facts) != 0) return Errno("fstat");
  if (!S_ISREG(facts.st_mode)) return Refused(path, "not a regular file");
  if (facts.st_uid != ::geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refused(path, "other users could have written it");
  }
  if (facts.st_size > static_cast<off_t>(kLearnedBytesMax / 2)) {
    return Error{Code::kSetup, "--learn " + path + ": the file is full",
                 "agentic-ci policy suggest " + path + ", then begin a new one"};
  }
  std::string head(kHeadBytes, '\0');
  const ssize_t got = ::pread(file, head.data(), head.size(), 0);
  if (got < 0) return Errno("read");
  head.resize(static_cast<size_t>(got));
  if (head.empty() || IsLearned(head)) return Ok();
  return Error{Code::kInvalid, "--learn " + path + ": the file is not one that --learn wrote"};
}

}  // namespace

Result<LearnFile> LearnFile::Open(const std::string& path, const std::string& checkout,
                                  std::vector<advise::BoundSecret> secrets) {
  LearnFile learn;
  learn.path_ = path;
  learn.secrets_ = std::move(secrets);
  TRY(CheckPlace(path, checkout));
  learn.file_ =
      TRY(sys::Open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600)
              .Context("--learn"));
  TRY(CheckFile(learn.file_.get(), path));
  return learn;
}

Status LearnFile::Append(const std::vector<report::DeniedRequest>& denials,
                         const codec::SecretMask& mask) const {
  std::string text = mask.Mask(RenderLearned(denials, secrets_));
  while (::flock(file_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return Errno("locking " + path_);
  }
  // A run that was killed while it wrote left a part of a line.
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file_.get(), &last, 1, size - 1) != 1) return Errno("read");
  if (last != '\n') text.insert(0, "\n");
  Status written = sys::WriteAll(file_.get(), text).Context("writing " + path_);
  (void)::flock(file_.get(), LOCK_UN);
  TRY(written);
  logging::Info("refusals remembered",
                {{"file", path_}, {"next", "agentic-ci policy suggest " + path_}});
  return Ok();
}

std::string RenderLearned(const std::vector<report::DeniedRequest>& denials,
                          const std::vector<advise::BoundSecret>& secrets) {
  Json list = Json::EmptyArray();
  for (const advise::BoundSecret& secret : secrets) {
    Json one;
    one.Set("name", secret.name);
    one.Set("host", secret.host);
    list.Push(one);
  }
  std::string text = std::string(kBeginning) + "\"secrets\":" + codec::RenderJsonLine(list) + "}\n";
  for (const report::DeniedRequest& denied : denials) {
    if (denied.by_policy) text += RenderDenial(denied) + "\n";
  }
  return text;
}

Result<Learned> ReadLearned(const std::string& file) {
  Learned learned;
  bool first = true;
  bool ours = true;  // A run that was refused nothing, or ended early, left an empty one.
  TRY(sys::Open(file, O_RDONLY | O_NOFOLLOW).Context("reading " + file));
  const auto take = [&](std::string_view line, bool) {
    const bool begins = IsLearned(line);
    if (std::exchange(first, false)) ours = begins;
    if (begins) TakeSecrets(line, &learned);
  };
  TRY(report::ForEachLine(file, record::kRecordLineBytesMax, kLearnedBytesMax, take)
          .Context("reading " + file));
  if (!ours) {
    return Error{Code::kInvalid, file + ": neither a file of `agentic-ci run --learn` nor a report",
                 "agentic-ci run --learn " + file + " ..."};
  }
  report::DenialList list = TRY(report::ReadDenialsIn(file));
  learned.dropped += list.dropped;
  learned.denials = std::move(list.denials);
  std::erase_if(learned.denials, [](const report::DeniedRequest& one) { return !one.by_policy; });
  return learned;
}

Result<Learned> ReadRefusals(const std::string& path) {
  constexpr std::string_view kEvents = "events.ocsf.jsonl";
  struct stat facts = {};
  const bool directory = ::stat(path.c_str(), &facts) != 0 || S_ISDIR(facts.st_mode);
  if (!directory && !path.ends_with(kEvents)) return ReadLearned(path);
  std::string events = directory ? path + "/" + std::string(kEvents) : path;
  TRY(sys::Open(events, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).Context("reading " + events));
  Learned learned;
  learned.denials = TRY(report::ReadDenialsIn(events)).denials;
  // No policy allows what something else refused (a malformed request, a budget).
  std::erase_if(learned.denials, [](const report::DeniedRequest& one) { return !one.by_policy; });
  return learned;
}

namespace {

// A wider rule for a host that a credential goes to would be one for the credential, too.
std::string SecretFor(const advise::Denial& denial, const Learned& refusals) {
  for (const advise::BoundSecret& secret : refusals.secrets) {
    if (policy::HostMatches(secret.host, denial.host)) return secret.name;
  }
  return {};
}

}  // namespace

std::string TakeSecretHosts(Learned* refusals) {
  std::string notes;
  std::erase_if(refusals->denials, [&](const report::DeniedRequest& one) {
    const std::string secret = SecretFor(one.denial, *refusals);
    if (secret.empty()) return false;
    notes += "# " + codec::NeutralLine(report::DescribeAttempt(one.denial)) + ": " +
             advise::DescribeOrigin({one.denial}) + ". Not suggested, since " +
             codec::NeutralLine(secret) +
             " is sent to this host: if it should, write it by hand.\n";
    return true;
  });
  return notes;
}

std::string RenderFragment(const std::vector<report::DeniedRequest>& refused) {
  std::string notes;
  std::vector<advise::Denial> denials;
  for (const report::DeniedRequest& one : refused) {
    if (one.deny_rule.empty()) {
      denials.push_back(one.denial);
    } else {
      notes += "# " + codec::NeutralLine(report::DescribeAttempt(one.denial)) +
               ": no addition would allow it: " + codec::NeutralLine(report::DescribeRefusal(one)) +
               "\n";
    }
  }
  std::string fragment = advise::SuggestPolicy(denials);
  if (fragment.empty()) fragment = "# No refused request could be allowed by a policy.\n";
  return notes + fragment;
}

}  // namespace run
