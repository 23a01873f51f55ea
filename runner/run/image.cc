// SPDX-License-Identifier: Apache-2.0
#include "run/image.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>

#include "base/ascii.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "policy/load/parse.h"
#include "run/ecosystem/ecosystem.h"
#include "run/host_proxy.h"
#include "run/report_directory.h"
#include "run/signals.h"
#include "sandbox/mask.h"

namespace run {
namespace {

constexpr std::chrono::minutes kPullTimeout{30};
constexpr std::chrono::minutes kCheckTimeout{5};  // The time for manifests and signatures.
constexpr size_t kBundleBytesMax = size_t{32} << 20;
constexpr size_t kAccountsBytesMax = size_t{1} << 20;
constexpr uint32_t kIdMax = 2147483647;  // CVE-2024-40635: larger ones wrap around somewhere.
constexpr char kPasswd[] = "/etc/passwd";
constexpr char kGroup[] = "/etc/group";
// What packages of distributions consist of; links among them, as of a merged /usr, are left out.
constexpr const char* kSystemDirectories[] = {"/usr", "/etc",   "/var",   "/opt",   "/root",
                                              "/srv", "/run",   "/home",  "/bin",   "/sbin",
                                              "/lib", "/lib32", "/lib64", "/libx32"};
// OpenShell's, and its name before that.
constexpr const char* kPolicyPaths[] = {"/etc/openshell/policy.yaml", "/etc/navigator/policy.yaml"};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<uint32_t> ParseId(std::string_view text) {
  uint32_t id = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (failure != std::errc() || end != text.data() + text.size() || id > kIdMax) {
    return Error{Code::kInvalid, "the image's user has an invalid id: " + std::string(text)};
  }
  return id;
}

// One line of passwd(5) or group(5) whose field `column` is `wanted`; empty without one.
std::vector<std::string_view> FindAccount(std::string_view file, size_t column,
                                          std::string_view wanted) {
  for (std::string_view line : Split(file, '\n')) {
    std::vector<std::string_view> fields = Split(line, ':');
    if (fields.size() >= 4 && fields[column] == wanted) return fields;
  }
  return {};
}

// Without the file everybody is a number.
Result<std::string> ReadAccounts(const sandbox::ImageRoot& root, const char* path) {
  Result<std::string> text = root.Read(path, kAccountsBytesMax);
  if (!text.ok() && text.error().code == Code::kNotFound) return std::string();
  return text;
}

// "1000", "node", "node:staff", "1000:1000", "": as Docker reads it.
Status FindUser(const std::string& written, RunImage* image) {
  size_t colon = written.find(':');
  std::string_view user = std::string_view(written).substr(0, colon);
  std::string_view group =
      colon == std::string::npos ? "" : std::string_view(written).substr(colon + 1);
  if (user.empty()) return Ok();
  std::string passwd = TRY(ReadAccounts(image->root, kPasswd));
  std::vector<std::string_view> account = FindAccount(passwd, ascii::IsNumber(user) ? 2 : 0, user);
  if (account.empty() && !ascii::IsNumber(user)) {
    return Error{Code::kInvalid,
                 "the image's user " + std::string(user) + " is not in its " + kPasswd};
  }
  image->uid = TRY(ParseId(account.empty() ? user : account[2]));
  if (!account.empty()) {
    image->gid = TRY(ParseId(account[3]));
  }
  if (group.empty()) return Ok();
  std::string groups = TRY(ReadAccounts(image->root, kGroup));
  std::vector<std::string_view> entry = FindAccount(groups, ascii::IsNumber(group) ? 2 : 0, group);
  if (entry.empty() && !ascii::IsNumber(group)) {
    return Error{Code::kInvalid,
                 "the image's group " + std::string(group) + " is not in its " + kGroup};
  }
  image->gid = TRY(ParseId(entry.empty() ? group : entry[2]));
  return Ok();
}

bool IsVariable(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

// Everything it says: the signer of the image also signed its loader, and what LD_PRELOAD may name
// is in it. Our own variables take precedence (AgentEnvironment).
void TakeEnvironment(const std::vector<std::string>& entries, RunImage* image) {
  for (const std::string& entry : entries) {
    size_t equals = entry.find('=');
    std::string name = entry.substr(0, equals);
    if (equals == std::string::npos || !IsVariable(name) || entry.find('\0') != std::string::npos) {
      image->warnings.push_back("the image has an invalid environment variable: " + name);
      continue;
    }
    if (name != "PATH") {
      image->env.emplace_back(std::move(name), entry.substr(equals + 1));
      continue;
    }
    // A relative place would be the checkout's.
    for (std::string_view place : Split(std::string_view(entry).substr(equals + 1), ':')) {
      if (!place.starts_with('/')) continue;
      image->search_path += (image->search_path.empty() ? "" : ":") + std::string(place);
    }
  }
}

report::ImageRecord RecordOf(const image::VerifiedImage& verified) {
  report::ImageRecord record;
  record.reference = verified.reference.ToString();
  record.digest = verified.digest;
  record.manifest_digest = verified.manifest_digest;
  record.platform = image::RenderPlatform(verified.config.platform);
  record.signer = verified.signer;
  record.issuer = verified.issuer;
  record.signature = verified.where;
  for (int64_t index : verified.log_indices) record.log_indices.push_back(std::to_string(index));
  return record;
}

void LogSigner(const image::VerifiedImage& verified) {
  image::Reference named = verified.reference;
  named.digest.clear();  // Logged as a field of its own.
  logging::Info(
      "image verified",
      {{"image", named.ToString()}, {"digest", verified.digest}, {"signer", verified.signer}});
}

// A directory is used as it lies there. Nothing vouches for it but the user who names it, so that a
// job of a continuous integration is refused.
Result<image::PulledImage> OpenDirectory(image::Reference reference, const std::string& checkout) {
  const std::string name = reference.ToString();
  if (IsInCi()) {
    return Error{Code::kRefused,
                 name + " is not signed, and a CI job starts from signed images only",
                 "--image HOST/REPOSITORY@sha256:DIGEST"};
  }
  reference.path = TRY(ResolveNamedDirectory(reference.path).Context(name));
  for (const std::string& inside :
       {checkout, sys::Environment("HOME").value_or("/root"), image::DefaultStore()}) {
    Result<std::string> real = sys::RealPath(inside);
    if (real.ok() && sandbox::Beneath(real.value(), reference.path)) {
      return Error{Code::kInvalid, name + " contains " + inside + ", which sandboxes must not read",
                   "--image dir:DIRECTORY of a root file system of its own"};
    }
  }
  struct stat facts {};
  if (::stat(reference.path.c_str(), &facts) != 0) return Errno(name);
  // An overlay shows the sandbox's user what others own as it is, and lets it change nothing of
  // that.
  if (::geteuid() != 0 && facts.st_uid != ::geteuid()) {
    return Error{Code::kInvalid,
                 name +
                     " belongs to another user, so that a sandbox of yours could "
                     "not change a file of it",
                 "a copy of your own: tar -C " + reference.path + " -c . | tar -C COPY -x"};
  }
  image::PulledImage opened;
  opened.unpacked.layers = {reference.path};
  opened.unpacked.owner_uid = facts.st_uid;
  opened.unpacked.warnings = {"a directory without a signature: nothing was verified"};
  opened.image.reference = std::move(reference);
  return opened;
}

}  // namespace

Result<image::PullRequest> PreparePull(const Request& request, const std::string& checkout,
                                       Config* config) {
  image::PullRequest pull;
  pull.verify.reference = TRY(image::ParseReference(request.image));
  image::TrustOptions given = {request.image_key, request.image_identity, request.image_issuer,
                               request.trusted_root};
  config->trust = TRY(image::OverrideTrust(std::move(config->trust), given));
  pull.verify.trust = &config->trust;
  for (const std::string& file : request.image_bundles) {
    std::string bundle =
        TRY(ReadNamedFile(file, kBundleBytesMax).Context("reading the image's bundle"));
    pull.verify.bundles.push_back(std::move(bundle));
  }
  pull.source.ca_file = request.ca_file;
  pull.source.proxy = HostProxy();
  pull.source.insecure_registries = request.insecure_registries;
  pull.source.mirrors = config->mirrors;
  pull.source.environment = sys::Environment;
  pull.source.checkout = checkout;
  pull.store = image::DefaultStore();
  return pull;
}

Result<image::PulledImage> Pull(image::PullRequest pull, bool quiet) {
  image::ProgressLines::Options options;
  options.terminal = ::isatty(STDERR_FILENO) == 1;
  options.name = pull.verify.reference.ToString();
  options.now_ms = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               Deadline::Clock::now().time_since_epoch())
        .count();
  };
  options.write = [](std::string_view text) { (void)sys::WriteAll(STDERR_FILENO, text); };
  image::ProgressLines progress(std::move(options));
  if (!quiet) pull.progress = &progress;
  return image::PullImage(pull, Deadline::After(kPullTimeout));
}

Result<RunImage> PrepareImage(const Request& request, const std::string& checkout, Config* config) {
  image::PullRequest pull = TRY(PreparePull(request, checkout, config));
  pull.cancelled = [] { return PendingEnd().has_value(); };
  const bool is_directory = pull.verify.reference.kind == image::Reference::Kind::kDirectory;
  image::PulledImage pulled = is_directory ? TRY(OpenDirectory(pull.verify.reference, checkout))
                                           : TRY(Pull(std::move(pull), request.json));
  sandbox::ImageRoot root = TRY(sandbox::ImageRoot::Open(pulled.unpacked.layers));
  TRY(root.CheckPlaces());
  RunImage image{.pulled = std::move(pulled),
                 .root = std::move(root),
                 .env = {},
                 .search_path = {},
                 .command = {},
                 .warnings = {},
                 .system_directories = {}};
  const image::ImageConfig& said = image.pulled.image.config;
  image.warnings = image.pulled.unpacked.warnings;
  TRY(FindUser(said.user, &image).Context("reading the image's accounts"));
  if (image.uid == 0 && !said.user.empty()) {
    image.warnings.push_back("the image's user is root; the agent runs as another user");
    image.gid = 0;
  }
  TakeEnvironment(said.env, &image);
  if (TRY(ChangesSystem(config->ecosystems))) {
    for (const char* path : kSystemDirectories) {
      Result<std::string> real = image.root.RealPath(path);
      if (real.ok() && real.value() == path) image.system_directories.emplace_back(path);
    }
  }
  image.command = said.entrypoint;
  image.command.insert(image.command.end(), said.command.begin(), said.command.end());
  if (is_directory) {
    logging::Warn("image not verified", {{"image", request.image}, {"why", "a directory"}});
  } else {
    LogSigner(image.pulled.image);
  }
  return image;
}

sandbox::ImageRequest PlanImage(const RunImage& image) {
  sandbox::ImageRequest request;
  request.layers = image.pulled.unpacked.layers;
  request.owner = image.pulled.unpacked.owner_uid;
  request.uid = image.uid;
  request.gid = image.gid;
  request.system_directories = image.system_directories;
  request.kind = [&image](const std::string& path) { return image.root.Kind(path); };
  return request;
}

report::ImageRecord Record(const RunImage& image) {
  report::ImageRecord record = RecordOf(image.pulled.image);
  record.warnings = image.warnings;
  return record;
}

Result<CheckedImage> CheckImage(const Request& request, const std::string& checkout,
                                Config* config) {
  image::PullRequest pull = TRY(PreparePull(request, checkout, config));
  pull.cancelled = [] { return PendingEnd().has_value(); };
  image::VerifiedImage verified = TRY(image::CheckImage(pull, Deadline::After(kCheckTimeout)));
  image::Reference named = verified.reference;
  named.tag.clear();
  named.digest = verified.digest;
  LogSigner(verified);
  return CheckedImage{named.ToString(), RecordOf(verified)};
}

Result<std::optional<ImagePolicy>> ReadImagePolicy(const RunImage& image) {
  for (const char* path : kPolicyPaths) {
    Result<std::string> text = image.root.Read(path, policy::kPolicyBytesMax);
    if (text.ok()) return std::optional<ImagePolicy>({path, std::move(text).value()});
    if (text.error().code != Code::kNotFound) return std::move(text).error();
  }
  return std::optional<ImagePolicy>();
}

}  // namespace run
