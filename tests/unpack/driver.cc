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
//   unpack_driver - inflate FILE...      "us MICROSECONDS": hashing, inflating and hashing again on
//       all processors, nothing else: what no way of unpacking can be faster than.
//
// Exit status 1 and "error CODE TEXT" when something failed.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/sys.h"
#include "codec/data/digest.h"
#include "image/open_source.h"
#include "image/source/source.h"
#include "image/store.h"
#include "image/unpack/inflate.h"

namespace {

int64_t Number(const std::string& text) {
  int64_t value = 0;
  ENSURE(std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc());
  return value;
}

void PrintSpan(std::chrono::steady_clock::time_point start) {
  auto span = std::chrono::steady_clock::now() - start;
  std::printf(
      "us %lld\n",
      static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(span).count()));
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
  for (const std::string& layer : image.layers) std::printf("layer %s\n", layer.c_str());
  for (const std::string& warning : image.warnings) std::printf("warning %s\n", warning.c_str());
  std::printf("owner %u\n", image.owner_uid);
  PrintSpan(start);
  std::fflush(stdout);
  char byte;
  while (options.contains("--hold") && ::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return Ok();
}

Status InflateFile(const std::string& path) {
  Fd fd = TRY(sys::Open(path, O_RDONLY));
  codec::Sha256 packed;
  codec::Sha256 unpacked;
  std::string in(256 << 10, '\0');
  std::string out(256 << 10, '\0');
  std::unique_ptr<image::Inflater> inflater =
      TRY(image::Inflater::Open([&]() -> Result<std::string_view> {
        ssize_t n = ::read(fd.get(), in.data(), in.size());
        if (n < 0) return Errno("read");
        packed.Update(std::string_view(in).substr(0, static_cast<size_t>(n)));
        return std::string_view(in).substr(0, static_cast<size_t>(n));
      }));
  for (;;) {
    size_t n = TRY(inflater->Read(out));
    if (n == 0) return Ok();
    unpacked.Update(std::string_view(out).substr(0, n));
  }
}

Status InflateAlone(const std::vector<std::string>& files) {
  auto start = std::chrono::steady_clock::now();
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < files.size(); at = next++) {
        if (!InflateFile(files[at]).ok()) failed = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failed) return Error{Code::kIo, "a blob cannot be inflated"};
  PrintSpan(start);
  return Ok();
}

Status Run(const std::vector<std::string>& arguments) {
  if (arguments[1] == "inflate") {
    return InflateAlone(std::vector<std::string>(arguments.begin() + 2, arguments.end()));
  }
  image::Store store = TRY(image::Store::Open(arguments[0]));
  const std::string& verb = arguments[1];
  if (verb == "verify") {
    image::StoreCheck check = TRY(store.Check(false));
    for (const std::string& what : check.damaged) std::printf("wrong %s\n", what.c_str());
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
