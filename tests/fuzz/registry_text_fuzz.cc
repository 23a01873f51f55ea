// SPDX-License-Identifier: Apache-2.0
// References, challenges and credentials files: a reference that is taken is written and read again
// as the same, and nothing of it can change the meaning of an address it is put into.
#include <cstddef>
#include <cstdint>

#include "image/registry/challenge.h"
#include "image/registry/docker_config.h"
#include "image/source/reference.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<image::Reference> reference = image::ParseReference(text);
  if (reference.ok()) {
    const image::Reference& value = reference.value();
    Result<image::Reference> again = image::ParseReference(value.ToString());
    ENSURE(again.ok() && again.value().ToString() == value.ToString());
    ENSURE(value.digest.empty() || image::IsDigest(value.digest));
    if (value.kind == image::Reference::Kind::kRegistry) {
      ENSURE(image::IsTag(value.tag) || (value.tag.empty() && !value.digest.empty()));
      ENSURE(value.Name().find_first_of("@?#%\\ \"\r\n") == std::string::npos);
      ENSURE(("/" + value.Name() + "/").find("/../") == std::string::npos);
      ENSURE(value.Name().size() <= 255);
    }
  }
  for (const image::Challenge& challenge : image::ParseChallenges(text)) {
    ENSURE(!challenge.scheme.empty() && challenge.parameters.size() <= 64);
  }
  Result<image::DockerConfig> config = image::ParseDockerConfig(text);
  if (config.ok()) {
    ENSURE(config.value().store.find('/') == std::string::npos);
    for (const auto& entry : config.value().entries) ENSURE(entry.credential.known());
    static_cast<void>(config.value().Find("ghcr.io", "acme/agent"));
  }
  Result<std::optional<image::Credential>> answer = image::ParseHelperAnswer(text);
  ENSURE(!answer.ok() || !answer.value() || answer.value()->known());
  return 0;
}
