// SPDX-License-Identifier: Apache-2.0
// Stands in for `agentic-ci image`: unpacks an image into a store without asking who signed it.
// Product code only through its headers.
//
//   unpack_driver STORE unpack REFERENCE [--bytes N] [--entries N] [--ratio N] [--ms N]
//       [--insecure HOST:PORT] [--hold]
//       "layer PATH" for each, the uppermost first; "warning TEXT"; "owner UID"; "us MICROSECONDS".
//       --hold: keeps the layers until standard input ends.
//   unpack_driver STORE prune BYTES      "freed BYTES LAYERS", "left BYTES"
//   unpack_driver STORE verify           "wrong TEXT" for each
//
// Exit status 1 and "error CODE TEXT" when something failed.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "image/source.h"
#include "image/store.h"

namespace {

int64_t Number(const std::string& text) {
  int64_t value = 0;
  ENSURE(std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc());
  return value;
}

struct Fetched {
  image::Manifest manifest;
  image::ImageConfig config;
};

Result<Fetched> Fetch(image::Source& source, const image::Reference& reference, Deadline deadline) {
  std::string name = reference.digest.empty() ? reference.tag : reference.digest;
  image::Document document = TRY(source.FetchManifest(name, deadline));
  auto parsed = TRY(image::ParseManifest(document.bytes, document.media_type));
  if (const image::Index* index = std::get_if<image::Index>(&parsed)) {
    image::Descriptor chosen = TRY(image::ChoosePlatform(*index, image::HostPlatform()));
    document = TRY(source.FetchManifest(chosen.digest, deadline));
    parsed = TRY(image::ParseManifest(document.bytes, document.media_type));
  }
  Fetched fetched;
  fetched.manifest = std::get<image::Manifest>(parsed);
  std::string config =
      TRY(source.FetchBlob(fetched.manifest.config, image::kConfigBytesMax, deadline));
  fetched.config = TRY(image::ParseImageConfig(config));
  return fetched;
}

Status Unpack(image::Store& store, const std::string& name,
              std::map<std::string, std::string> options) {
  Deadline deadline = options.contains("--ms")
                          ? Deadline::After(std::chrono::milliseconds(Number(options["--ms"])))
                          : Deadline::After(std::chrono::minutes(10));
  image::UnpackLimits limits;
  if (options.contains("--bytes")) limits.bytes_max = Number(options["--bytes"]);
  if (options.contains("--entries")) limits.entries_max = Number(options["--entries"]);
  if (options.contains("--ratio")) limits.ratio_max = static_cast<int>(Number(options["--ratio"]));
  image::SourceOptions source_options;
  if (options.contains("--insecure")) {
    source_options.insecure_registries.push_back(options["--insecure"]);
  }
  image::Reference reference = TRY(image::ParseReference(name));
  std::unique_ptr<image::Source> source = TRY(image::OpenSource(reference, source_options));
  Fetched fetched = TRY(Fetch(*source, reference, deadline));
  auto start = std::chrono::steady_clock::now();
  image::UnpackedImage image =
      TRY(store.Unpack(*source, fetched.manifest, fetched.config, limits, deadline));
  auto span = std::chrono::steady_clock::now() - start;
  for (const std::string& layer : image.layers) std::printf("layer %s\n", layer.c_str());
  for (const std::string& warning : image.warnings) std::printf("warning %s\n", warning.c_str());
  std::printf("owner %u\n", image.owner_uid);
  std::printf(
      "us %lld\n",
      static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(span).count()));
  std::fflush(stdout);
  char byte;
  while (options.contains("--hold") && ::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return Ok();
}

Status Run(const std::vector<std::string>& arguments) {
  image::Store store = TRY(image::Store::Open(arguments[0]));
  const std::string& verb = arguments[1];
  if (verb == "verify") {
    std::vector<std::string> wrong = TRY(store.Verify());
    for (const std::string& what : wrong) std::printf("wrong %s\n", what.c_str());
    return Ok();
  }
  if (verb == "prune") {
    image::PruneResult result = TRY(store.Prune(Number(arguments[2])));
    std::printf("freed %lld %d\nleft %lld\n", static_cast<long long>(result.bytes_freed),
                result.layers_freed, static_cast<long long>(result.bytes_left));
    return Ok();
  }
  std::map<std::string, std::string> options;
  for (size_t i = 3; i < arguments.size(); ++i) {
    bool alone = arguments[i] == "--hold";
    options[arguments[i]] = alone ? "" : arguments[i + 1];
    if (!alone) ++i;
  }
  return Unpack(store, arguments[2], options);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  Status status = Run(std::vector<std::string>(arguments + 1, arguments + count));
  if (status.ok()) return 0;
  std::printf("error %d %s\n", static_cast<int>(status.error().code), status.error().what.c_str());
  return 1;
}
