// SPDX-License-Identifier: Apache-2.0
#include "cli/verify_bundle_command.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/exit_code.h"
#include "base/named_path.h"
#include "base/openssl_owner.h"
#include "base/sys.h"
#include "cli/error_text.h"
#include "cli/output.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"
#include "codec/text/shell_word.h"
#include "sigstore/verify.h"

namespace cli {
namespace {

// Bundles are kilobytes, attestations sometimes megabytes; cosign's own bound is 128 MiB.
constexpr size_t kBundleBytesMax = size_t{32} << 20;
constexpr size_t kKeyBytesMax = size_t{1} << 16;
constexpr size_t kRootBytesMax = size_t{1} << 20;
constexpr std::string_view kDigestPrefix = "sha256:";
constexpr size_t kDigestSize = kDigestPrefix.size() + 64;

// Three digests of bytes that come piece by piece.
class ArtifactHash {
 public:
  ArtifactHash() {
    for (size_t i = 0; i < contexts_.size(); ++i) {
      contexts_[i].reset(::EVP_MD_CTX_new());
      const EVP_MD* algorithms[] = {::EVP_sha256(), ::EVP_sha384(), ::EVP_sha512()};
      ENSURE(::EVP_DigestInit_ex(contexts_[i].get(), algorithms[i], nullptr) == 1);
    }
  }
  void Update(std::string_view bytes) {
    for (DigestContextOwner& context : contexts_) {
      ENSURE(::EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
    }
  }
  sigstore::Artifact Finish() { return {.sha256 = Hex(0), .sha384 = Hex(1), .sha512 = Hex(2)}; }

 private:
  std::string Hex(size_t which) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned size = 0;
    ENSURE(::EVP_DigestFinal_ex(contexts_[which].get(), digest.data(), &size) == 1);
    return codec::EncodeHex({reinterpret_cast<const char*>(digest.data()), size});
  }

  std::array<DigestContextOwner, 3> contexts_;
};

// The digest that the operand is, or those of the file it names. As sigstore-conformance tells them
// apart: a digest is written "sha256:" and 64 digits, and no file is called that.
Result<sigstore::Artifact> ArtifactOf(const std::string& operand) {
  if (operand.starts_with(kDigestPrefix) && operand.size() == kDigestSize &&
      !sys::Exists(operand)) {
    std::string hex = operand.substr(kDigestPrefix.size());
    if (!codec::DecodeHex(hex)) {
      return Error{Code::kUsage, "'" + operand + "' is neither a digest nor a file"};
    }
    return sigstore::Artifact{.sha256 = hex};
  }
  Fd file = TRY(sys::Open(operand, O_RDONLY).Context("reading the artifact"));
  ArtifactHash hash;
  std::string block(size_t{1} << 16, '\0');
  for (;;) {
    ssize_t size = ::read(file.get(), block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Errno("read " + operand);
    if (size == 0) return hash.Finish();
    hash.Update({block.data(), static_cast<size_t>(size)});
  }
}

// A layer of a `sha256-<hex>.sig` manifest, with its descriptor's annotations.
Result<sigstore::LegacySignature> ReadLegacyLayer(const std::string& file) {
  std::string text = TRY(ReadNamedFile(file, kBundleBytesMax).Context("reading the layer"));
  codec::Json layer = TRY(codec::ParseJson(text, {.bytes_max = kBundleBytesMax}).Context(file));
  std::optional<std::string> payload = codec::DecodeBase64(layer.StringAt("payload"));
  const codec::Json* annotations = layer.Find("annotations");
  if (!payload || annotations == nullptr || annotations->object() == nullptr) {
    return Error{Code::kInvalid,
                 file + ": not a layer; expected {\"payload\": base64, \"annotations\": {}}"};
  }
  return sigstore::LegacySignature{
      .payload = *std::move(payload),
      .signature = annotations->StringAt("dev.cosignproject.cosign/signature"),
      .certificate = annotations->StringAt("dev.sigstore.cosign/certificate"),
      .chain = annotations->StringAt("dev.sigstore.cosign/chain"),
      .bundle = annotations->StringAt("dev.sigstore.cosign/bundle"),
      .timestamp = annotations->StringAt("dev.sigstore.cosign/rfc3161timestamp")};
}

Result<sigstore::VerifyOptions> ReadOptions(const Arguments& arguments) {
  sigstore::VerifyOptions options =
      TRY(ReadAcceptedSigner("verify-bundle", arguments, ReadNamedFile));
  options.predicate_types = arguments.All("predicate-type");
  options.any_predicate = options.predicate_types.empty();
  options.require_timestamp = arguments.Has("require-timestamp");
  return options;
}

codec::Json AsJson(const sigstore::Verified& verified) {
  codec::Json object;
  object.Set("verified", true);
  object.Set("signer", verified.signer);
  object.Set("issuer", verified.issuer);
  object.Set("predicate_type", verified.predicate_type);
  // The indices in decimal, as the record of a run has them.
  codec::Json indices = codec::Json::EmptyArray();
  for (int64_t index : verified.log_indices) indices.Push(std::to_string(index));
  object.Set("log_indices", indices);
  codec::Json times = codec::Json::EmptyArray();
  for (int64_t time : verified.times) times.Push(time);
  object.Set("times", times);
  return object;
}

codec::Json AsJson(const sigstore::Rejection& rejection) {
  codec::Json object;
  object.Set("verified", false);
  object.Set("reason", sigstore::Render(rejection.reason));
  object.Set("detail", rejection.detail);
  object.Set("identity", rejection.identity);
  object.Set("issuer", rejection.issuer);
  return object;
}

std::string AsText(const sigstore::Verified& verified) {
  // Anyone may have chosen the text of a certificate.
  auto fact = [](const char* name, const std::string& value) {
    return value.empty() ? "" : name + codec::NeutralLine(value) + "\n";
  };
  std::string text = "verified\n" + fact("signer: ", verified.signer) +
                     fact("issuer: ", verified.issuer) +
                     fact("predicate: ", verified.predicate_type);
  for (int64_t index : verified.log_indices) text += "log index: " + std::to_string(index) + "\n";
  for (int64_t time : verified.times) text += "time: " + std::to_string(time) + "\n";
  return text;
}

// Returns what was found instead, as the options that would accept it; or a key of a kind that is
// accepted. A branch may be called anything, and an identity has its name in it.
std::string HintFor(const sigstore::Rejection& rejection) {
  if (rejection.reason == sigstore::Reason::kKeyAlgorithm) return "cosign generate-key-pair";
  if (rejection.identity.empty()) return {};
  return "--certificate-identity " + codec::ShellWord(rejection.identity) +
         " --certificate-oidc-issuer " + codec::ShellWord(rejection.issuer);
}

Result<int> Report(const sigstore::Verdict& verdict, bool json) {
  if (const sigstore::Verified* verified = std::get_if<sigstore::Verified>(&verdict)) {
    TRY(Print(json ? codec::RenderJson(AsJson(*verified)) : AsText(*verified)));
    return 0;
  }
  const sigstore::Rejection& rejection = std::get<sigstore::Rejection>(verdict);
  if (json) TRY(Print(codec::RenderJson(AsJson(rejection))));
  return Error{Code::kRefused, sigstore::Render(rejection), HintFor(rejection)};
}

// Spares the library preparations that take as long as some signatures. Its messages are not read
// here. The first cipher would have it construct all, and none is needed but for the random numbers
// that blind a curve's points: from a hash they are as good (SP 800-90A). Called before anything of
// the library is used; if it comes too late, verifying is merely slower.
void DoWithoutCiphers() {
  (void)::OPENSSL_init_crypto(OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS,
                              nullptr);
  (void)::RAND_set_DRBG_type(nullptr, "HASH-DRBG", nullptr, nullptr, "SHA256");
}

}  // namespace

Result<sigstore::VerifyOptions> ReadAcceptedSigner(const std::string& command,
                                                   const Arguments& arguments,
                                                   const ReadText& read) {
  sigstore::VerifyOptions options;
  std::string key = arguments.Get("key");
  std::string identity = arguments.Get("certificate-identity");
  std::string issuer = arguments.Get("certificate-oidc-issuer");
  if (!key.empty()) {
    if (!identity.empty() || !issuer.empty()) {
      return Error{Code::kUsage, "--key and --certificate-identity are mutually exclusive"};
    }
    std::string pem = TRY(read(key, kKeyBytesMax).Context("reading the key"));
    TRY(sigstore::CheckKey(pem).Context(key));
    options.signer = sigstore::KeyRule{std::move(pem), arguments.Has("require-log")};
    return options;
  }
  if (identity.empty() || issuer.empty()) {
    return Error{Code::kUsage, command + " needs a signer: a key, or an identity and its issuer",
                 "--certificate-identity ID --certificate-oidc-issuer URL"};
  }
  options.signer = sigstore::IdentityRule{issuer, identity, {}};
  options.require_log = !arguments.Has("no-log");
  return options;
}

Result<std::optional<sigstore::TrustedRoot>> ReadTrustedRoot(const Arguments& arguments,
                                                             const ReadText& read) {
  const std::string file = arguments.Get("trusted-root");
  if (file.empty()) return std::optional<sigstore::TrustedRoot>();
  const std::string text = TRY(read(file, kRootBytesMax).Context("reading the trusted root"));
  sigstore::TrustedRoot parsed = TRY(sigstore::ParseTrustedRoot(text));
  return std::optional(std::move(parsed));
}

Result<int> VerifyBundleCommand(const Arguments& arguments) {
  DoWithoutCiphers();
  std::string bundle_file = arguments.Get("bundle");
  std::string layer_file = arguments.Get("legacy-layer");
  if (bundle_file.empty() == layer_file.empty()) {
    return Error{Code::kUsage, "verify-bundle needs a bundle", "--bundle FILE"};
  }
  if (arguments.operands.size() != 1) {
    return Error{Code::kUsage, "verify-bundle needs exactly one artifact: a file, or sha256:DIGEST",
                 "agentic-ci verify-bundle --help"};
  }
  sigstore::VerifyOptions options = TRY(ReadOptions(arguments));
  std::string root_file = arguments.Get("trusted-root");
  if (arguments.Has("staging") && root_file.empty()) {
    return Error{Code::kUsage, "the trusted root of the staging instance is not built in",
                 "--trusted-root FILE"};
  }
  const std::optional<sigstore::TrustedRoot> given = TRY(ReadTrustedRoot(arguments, ReadNamedFile));
  const sigstore::TrustedRoot& root = given ? *given : sigstore::EmbeddedTrustedRoot();
  sigstore::Artifact artifact = TRY(ArtifactOf(arguments.operands.front()));
  bool json = arguments.Has("json");
  if (!layer_file.empty()) {
    sigstore::LegacySignature layer = TRY(ReadLegacyLayer(layer_file));
    return Report(sigstore::VerifyLegacy(layer, artifact.sha256, options, &root), json);
  }
  std::string bundle =
      TRY(ReadNamedFile(bundle_file, kBundleBytesMax).Context("reading the bundle"));
  return Report(sigstore::VerifyBundle(bundle, artifact, options, &root), json);
}

}  // namespace cli
