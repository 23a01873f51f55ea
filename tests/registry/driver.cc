// SPDX-License-Identifier: Apache-2.0
// What the tests ask of image/: `registry_driver COMMAND REFERENCE [OPTION...]` prints one JSON
// object of what came, or of the error, and ends with 0 either way.
#include <cstdio>
#include <iostream>
#include <map>
#include <thread>

#include "base/sys.h"
#include "codec/data/json.h"
#include "image/open_source.h"
#include "image/signatures.h"
#include "image/source/source.h"

namespace {

using codec::Json;

struct Arguments {
  std::string command;
  std::string reference;
  std::multimap<std::string, std::string> options;

  std::string Get(const std::string& name, const std::string& otherwise = "") const {
    auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  }
  int Number(const std::string& name, int otherwise) const {
    return std::stoi(Get(name, std::to_string(otherwise)));
  }
  std::vector<std::string> All(const std::string& name) const {
    std::vector<std::string> all;
    auto [begin, end] = options.equal_range(name);
    for (auto option = begin; option != end; ++option) all.push_back(option->second);
    return all;
  }
};

Json ErrorJson(const Error& error) {
  constexpr const char* kCodes[] = {"usage",     "invalid", "not-found", "unsupported",   "io",
                                    "temporary", "refused", "setup",     "nothing-to-do", "bug"};
  Json json = Json::EmptyObject();
  json.Set("code", kCodes[static_cast<int>(error.code)]);
  json.Set("error", error.what);
  json.Set("hint", error.hint);
  return json;
}

// The image's manifest for this machine, its configuration, and every layer in a thread of its own.
Result<Json> Pull(image::Source& source, const std::string& tag_or_digest, Deadline deadline) {
  Json json = Json::EmptyObject();
  image::Document document = TRY(source.FetchManifest(tag_or_digest, deadline));
  json.Set("digest", document.digest);
  auto parsed = TRY(image::ParseManifest(document.bytes, document.media_type));
  if (const image::Index* index = std::get_if<image::Index>(&parsed)) {
    const image::Descriptor chosen = TRY(image::ChoosePlatform(*index, image::HostPlatform()));
    document = TRY(source.FetchManifest(chosen.digest, deadline));
    json.Set("platform_digest", document.digest);
    parsed = TRY(image::ParseManifest(document.bytes, document.media_type));
  }
  const image::Manifest* manifest = std::get_if<image::Manifest>(&parsed);
  if (manifest == nullptr) return Error{Code::kInvalid, "an index within an index"};
  TRY(image::CheckRunnable(*manifest));
  const std::string config_bytes =
      TRY(source.FetchBlob(manifest->config, image::kConfigBytesMax, deadline));
  const image::ImageConfig config = TRY(image::ParseImageConfig(config_bytes));
  json.Set("command", Json::FromStrings(config.command));
  json.Set("diff_ids", static_cast<int>(config.diff_ids.size()));

  std::vector<Status> results(manifest->layers.size(), Ok());
  std::vector<std::string> digests(manifest->layers.size());
  std::vector<std::thread> threads;
  for (size_t at = 0; at < manifest->layers.size(); ++at) {
    threads.emplace_back([&, at] {
      codec::Sha256 hash;
      const auto sink = [&](std::string_view bytes) {
        hash.Update(bytes);
        return Ok();
      };
      const auto restart = [&] {
        hash = codec::Sha256();
        return Ok();
      };
      results[at] = source.StreamBlob(manifest->layers[at], sink, restart, deadline);
      digests[at] = "sha256:" + hash.Hex();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t at = 0; at < results.size(); ++at) {
    TRY(std::move(results[at]));
    if (digests[at] != manifest->layers[at].digest) return Error{Code::kBug, "a wrong layer"};
  }
  json.Set("layers", Json::FromStrings(digests));
  return json;
}

Result<Json> Run(const Arguments& arguments, const Secret& password) {
  const image::Reference reference = TRY(image::ParseReference(arguments.reference));
  image::SourceOptions options;
  options.insecure_registries = arguments.All("insecure");
  options.mirrors = arguments.All("mirror");
  options.password_host = arguments.Get("password-host", reference.host);
  options.username = arguments.Get("username");
  options.password = &password;
  options.ca_file = arguments.Get("ca");
  options.stall_seconds = arguments.Number("stall", 2);
  options.attempts_max = arguments.Number("attempts", 3);
  options.checkout = arguments.Get("checkout");
  options.environment = [&](const std::string& name) -> std::optional<std::string> {
    for (const std::string& variable : arguments.All("env")) {
      if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
    }
    return std::nullopt;
  };
  const Deadline deadline =
      Deadline::After(std::chrono::milliseconds(arguments.Number("timeout-ms", 10'000)));
  std::unique_ptr<image::Source> source = TRY(image::OpenSource(reference, options));
  const std::string what = reference.digest.empty() ? reference.tag : reference.digest;
  if (arguments.command == "pull") return Pull(*source, what, deadline);
  if (arguments.command == "manifest") {
    const image::Document document = TRY(source->FetchManifest(what, deadline));
    Json json = Json::EmptyObject();
    json.Set("digest", document.digest);
    return json;
  }
  if (arguments.command == "referrers") {
    std::vector<std::string> digests;
    for (const image::Descriptor& one : TRY(source->FetchReferrers(reference.digest, deadline))) {
      digests.push_back(one.digest);
    }
    Json json = Json::EmptyObject();
    json.Set("referrers", Json::FromStrings(digests));
    return json;
  }
  if (arguments.command == "signatures") {
    const image::Lookup lookup = image::FindSignatures(*source, reference.digest, true, deadline);
    Json places = Json::EmptyArray();
    for (const image::Candidate& candidate : lookup.candidates) places.Push(candidate.where);
    Json json = Json::EmptyObject();
    json.Set("candidates", std::move(places));
    json.Set("failures", Json::FromStrings(lookup.failures));
    return json;
  }
  return Error{Code::kUsage, "no such command"};
}

}  // namespace

int main(int count, char** values) {
  if (count < 3) return 2;
  Arguments arguments{values[1], values[2], {}};
  for (int at = 3; at + 1 < count; at += 2) arguments.options.emplace(values[at], values[at + 1]);
  const Secret password(arguments.Get("password"));
  Result<Json> result = Run(arguments, password);
  const Json json = result.ok() ? result.value() : ErrorJson(result.error());
  std::cout << codec::RenderJsonLine(json) << "\n";
  return 0;
}
