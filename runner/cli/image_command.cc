// SPDX-License-Identifier: Apache-2.0
#include "cli/image_command.h"

#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "base/sys.h"
#include "change/repository.h"
#include "cli/output.h"
#include "codec/data/json.h"
#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "forge/open/open.h"
#include "image/open_source.h"
#include "image/progress.h"
#include "image/pull.h"
#include "run/image.h"
#include "run/task_request.h"
#include "run/trusted/config.h"
#include "run/trusted/trust.h"
#include "session/snapshot/snapshot_list.h"

namespace cli {
namespace {

constexpr std::chrono::minutes kTimeLimit{5};  // The time for manifests and signatures.
constexpr size_t kPasswordBytesMax = 65536;

using codec::Json;

// The options of every command about one image: where it is, and who may have signed it.
class Setup {
 public:
  static Result<std::unique_ptr<Setup>> Read(const Arguments& arguments, std::string_view command);

  image::PullRequest pull;

 private:
  run::Config config_;  // `pull` points into it.
  Secret password_;
};

// Gives the whole work tree as well.
Result<run::Config> ReadConfig(const Arguments& arguments, std::string* top) {
  forge::Event event = TRY(forge::ReadEvent(sys::Environment));
  std::string checkout = TRY(sys::RealPath(arguments.Get("workdir", ".")));
  Result<change::Repository> repository = change::Repository::Open(checkout);
  if (!repository.ok() && repository.error().code != Code::kNotFound) {
    return std::move(repository).error();
  }
  *top = repository.ok() ? repository.value().top() : checkout;
  if (*top == "/") top->clear();  // Not a checkout, and every program is in it.
  run::TrustedRef ref = TRY(run::FindTrustedRef(event, arguments.Get("policy-ref")));
  return run::LoadConfig(repository.ok() ? &repository.value() : nullptr, checkout, ref,
                         run::CheckBy(TaskOptionRules()));
}

// "linux/arm64/v8".
Result<image::Platform> ParsePlatform(const std::string& text) {
  size_t first = text.find('/');
  size_t second = first == std::string::npos ? first : text.find('/', first + 1);
  image::Platform platform;
  platform.os = text.substr(0, first);
  if (first != std::string::npos) {
    platform.architecture = text.substr(first + 1, second - first - 1);
  }
  if (second != std::string::npos) platform.variant = text.substr(second + 1);
  if (platform.os.empty() || platform.architecture.empty()) {
    return Error{Code::kUsage, "--platform: '" + text + "' is not OS/ARCHITECTURE[/VARIANT]",
                 "--platform linux/arm64"};
  }
  return platform;
}

Result<std::unique_ptr<Setup>> Setup::Read(const Arguments& arguments, std::string_view command) {
  if (arguments.operands.size() != 1) {
    return Error{Code::kUsage, std::string(command) + " needs exactly one image",
                 "agentic-ci " + std::string(command) + " ghcr.io/OWNER/IMAGE@sha256:..."};
  }
  auto setup = std::make_unique<Setup>();
  std::string checkout;
  setup->config_ = TRY(ReadConfig(arguments, &checkout));
  run::Request request;
  request.image = arguments.operands.front();
  request.image_key = arguments.Get("image-key");
  request.image_identity = arguments.Get("image-identity");
  request.image_issuer = arguments.Get("image-issuer");
  request.image_bundles = arguments.All("image-bundle");
  request.trusted_root = arguments.Get("trusted-root");
  request.insecure_registries = arguments.All("insecure-registry");
  request.ca_file = arguments.Get("ca-file");
  setup->pull = TRY(run::PreparePull(request, checkout, &setup->config_));
  if (arguments.Has("platform")) {
    setup->pull.verify.platform = TRY(ParsePlatform(arguments.Get("platform")));
  }
  if (arguments.Has("username") != arguments.Has("password-stdin")) {
    return Error{Code::kUsage, "--username and --password-stdin go together"};
  }
  if (arguments.Has("username")) {
    std::string password = TRY(sys::ReadAll(STDIN_FILENO, kPasswordBytesMax));
    while (password.ends_with('\n') || password.ends_with('\r')) password.pop_back();
    setup->password_ = Secret(password);
    setup->pull.source.password_host = setup->pull.verify.reference.host;
    setup->pull.source.username = arguments.Get("username");
    setup->pull.source.password = &setup->password_;
  }
  return setup;
}

// A line for a person: what registries and certificates say is anybody's.
std::string Fact(std::string_view name, std::string_view value) {
  std::string line(name);
  line.resize(11, ' ');
  return line + codec::NeutralLine(value) + "\n";
}

Json AsJson(const image::VerifiedImage& image) {
  Json json;
  json.Set("verified", true);
  json.Set("reference", image.reference.ToString());
  json.Set("digest", image.digest);
  json.Set("manifest_digest", image.manifest_digest);
  json.Set("signed_digest", image.signed_digest);
  json.Set("platform", image::RenderPlatform(image.config.platform));
  json.Set("signer", image.signer);
  json.Set("issuer", image.issuer);
  json.Set("signature", image.where);
  json.Set("predicate_type", image.predicate_type);
  Json indices = Json::EmptyArray();
  for (int64_t index : image.log_indices) indices.Push(std::to_string(index));
  json.Set("log_indices", std::move(indices));
  return json;
}

Json AsJson(const image::ImageRefusal& refusal) {
  Json json;
  json.Set("verified", false);
  json.Set("reference", refusal.reference);
  json.Set("digest", refusal.digest);
  json.Set("kind", image::Render(refusal.kind));
  json.Set("reason", refusal.what);
  json.Set("failures", Json::FromStrings(refusal.failures));
  Json rejected = Json::EmptyArray();
  for (const image::RejectedCandidate& one : refusal.rejected) {
    Json entry;
    entry.Set("digest", one.digest);
    entry.Set("signature", one.where);
    entry.Set("rule", one.rule);
    entry.Set("reason", sigstore::Render(one.rejection.reason));
    entry.Set("detail", one.rejection.detail);
    entry.Set("identity", one.rejection.identity);
    entry.Set("issuer", one.rejection.issuer);
    rejected.Push(std::move(entry));
  }
  json.Set("rejected", std::move(rejected));
  return json;
}

std::string AsText(const image::VerifiedImage& image) {
  std::string text = Fact("image", image.reference.ToString()) + Fact("digest", image.digest) +
                     Fact("manifest", image.manifest_digest) +
                     Fact("platform", image::RenderPlatform(image.config.platform)) +
                     Fact("signer", image.signer);
  if (!image.issuer.empty()) text += Fact("issuer", image.issuer);
  text += Fact("signature", image.where);
  for (int64_t index : image.log_indices) text += Fact("log index", std::to_string(index));
  return text;
}

Json DescribeJson(const image::Manifest& manifest, const image::ImageConfig& config) {
  Json json;
  json.Set("platform", image::RenderPlatform(config.platform));
  json.Set("user", config.user);
  json.Set("working_dir", config.working_dir);
  json.Set("entrypoint", Json::FromStrings(config.entrypoint));
  json.Set("command", Json::FromStrings(config.command));
  json.Set("env", Json::FromStrings(config.env));
  Json layers = Json::EmptyArray();
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    Json layer;
    layer.Set("digest", manifest.layers[i].digest);
    layer.Set("media_type", manifest.layers[i].media_type);
    layer.Set("bytes", manifest.layers[i].size);
    layers.Push(std::move(layer));
  }
  json.Set("layers", std::move(layers));
  return json;
}

}  // namespace

Result<int> ImagePullCommand(const Arguments& arguments) {
  std::unique_ptr<Setup> setup = TRY(Setup::Read(arguments, "image pull"));
  bool json = arguments.Has("json");
  image::PulledImage pulled = TRY(run::Pull(setup->pull, json));
  if (json) {
    Json object = AsJson(pulled.image);
    object.Set("warnings", Json::FromStrings(pulled.unpacked.warnings));
    TRY(Print(codec::RenderJson(object)));
    return 0;
  }
  std::string text = AsText(pulled.image);
  if (pulled.unpacked.fresh) {
    for (const std::string& warning : pulled.unpacked.warnings) text += Fact("warning", warning);
  }
  TRY(Print(text));
  return 0;
}

Result<int> ImageVerifyCommand(const Arguments& arguments) {
  std::unique_ptr<Setup> setup = TRY(Setup::Read(arguments, "image verify"));
  std::unique_ptr<image::Source> source =
      TRY(image::OpenSource(setup->pull.verify.reference, setup->pull.source));
  image::SourceOpener open = [&](const image::Reference& reference) {
    return image::OpenSource(reference, setup->pull.source);
  };
  image::ImageVerdict verdict =
      TRY(image::VerifyImage(*source, open, setup->pull.verify, Deadline::After(kTimeLimit)));
  bool json = arguments.Has("json");
  if (const auto* refusal = std::get_if<image::ImageRefusal>(&verdict)) {
    if (json) TRY(Print(codec::RenderJson(AsJson(*refusal))));
    return image::ToError(*refusal);
  }
  const auto& verified = std::get<image::VerifiedImage>(verdict);
  TRY(Print(json ? codec::RenderJson(AsJson(verified)) : AsText(verified)));
  return 0;
}

Result<int> ImageInspectCommand(const Arguments& arguments) {
  std::unique_ptr<Setup> setup = TRY(Setup::Read(arguments, "image inspect"));
  const image::Reference& reference = setup->pull.verify.reference;
  Deadline deadline = Deadline::After(kTimeLimit);
  std::unique_ptr<image::Source> source = TRY(image::OpenSource(reference, setup->pull.source));
  image::ResolvedManifest resolved =
      TRY(image::ResolveManifest(*source, setup->pull.verify, deadline));
  std::string bytes =
      TRY(source->FetchBlob(resolved.manifest.config, image::kConfigBytesMax, deadline));
  image::ImageConfig config = TRY(image::ParseImageConfig(bytes));
  Json json = DescribeJson(resolved.manifest, config);
  json.Set("reference", reference.ToString());
  json.Set("digest", resolved.top.digest);
  json.Set("manifest_digest", resolved.leaf.digest);
  if (arguments.Has("json")) {
    TRY(Print(codec::RenderJson(json)));
    return 0;
  }
  std::string text = Fact("image", reference.ToString()) + Fact("digest", resolved.top.digest) +
                     Fact("manifest", resolved.leaf.digest) +
                     Fact("platform", image::RenderPlatform(config.platform)) +
                     Fact("user", config.user);
  for (const image::Descriptor& layer : resolved.manifest.layers) {
    text += Fact("layer", layer.digest + " " + image::ShownBytes(layer.size));
  }
  TRY(Print(text + "none of this was verified\n"));
  return 0;
}

Result<int> ImageCheckCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    return Error{Code::kUsage, "image check does not take an image", "agentic-ci image check"};
  }
  bool remove = arguments.Has("remove");
  image::Store store = TRY(image::Store::Open(image::DefaultStore()));
  image::StoreCheck check = TRY(store.Check(remove));
  if (arguments.Has("json")) {
    Json json;
    json.Set("layers", check.layers);
    json.Set("damaged", Json::FromStrings(check.damaged));
    json.Set("removed", remove);
    TRY(Print(codec::RenderJson(json)));
  } else {
    std::string text = Fact("layers", std::to_string(check.layers));
    for (const std::string& one : check.damaged) text += Fact(remove ? "removed" : "damaged", one);
    TRY(Print(text));
  }
  if (check.damaged.empty() || remove) return 0;
  return Error{Code::kIo,
               std::to_string(check.damaged.size()) + " of " + std::to_string(check.layers) +
                   " layers have changed since they were unpacked",
               "agentic-ci image check --remove"};
}

Result<int> ImagePruneCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    return Error{Code::kUsage, "image prune does not take an image",
                 "agentic-ci image prune --keep 10GiB"};
  }
  int64_t keep = 0;
  if (arguments.Has("keep")) {
    keep = TRY(codec::ParseSize(arguments.Get("keep")).Context("--keep"));
  }
  image::Store store = TRY(image::Store::Open(image::DefaultStore()));
  image::ForgetVerdicts(image::DefaultStore());
  image::PruneResult pruned = TRY(store.Prune(keep));
  session::SnapshotRoom snapshots = TRY(session::PruneSnapshots());
  if (arguments.Has("json")) {
    Json json;
    json.Set("bytes_freed", pruned.bytes_freed);
    json.Set("bytes_left", pruned.bytes_left);
    json.Set("layers_freed", pruned.layers_freed);
    json.Set("snapshot_bytes_freed", snapshots.bytes_freed);
    json.Set("snapshot_bytes_left", snapshots.bytes_left);
    TRY(Print(codec::RenderJson(json)));
    return 0;
  }
  std::string text = "freed " + image::ShownBytes(pruned.bytes_freed) + " of " +
                     std::to_string(pruned.layers_freed) + " layers; " +
                     image::ShownBytes(pruned.bytes_left) + " remain\n";
  if (snapshots.bytes_freed + snapshots.bytes_left > 0) {
    text += "freed " + image::ShownBytes(snapshots.bytes_freed) + " of snapshots; " +
            image::ShownBytes(snapshots.bytes_left) + " remain (agentic-ci sandbox snapshots)\n";
  }
  TRY(Print(text));
  return 0;
}

}  // namespace cli
