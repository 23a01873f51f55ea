// SPDX-License-Identifier: Apache-2.0
#include "attest/key.h"

#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/child.h"
#include "base/free_with.h"
#include "base/sys.h"
#include "codec/text/base64.h"
#include "codec/text/neutral.h"

namespace attest {
namespace {

constexpr size_t kSignatureBytesMax = size_t{64} << 10;
constexpr size_t kShownBytesMax = 300;

using NumberOwner = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;
using CurveSignatureOwner = std::unique_ptr<ECDSA_SIG, FreeWith<ECDSA_SIG_free>>;

Error BadKey(const std::string& what) {
  return Error{Code::kInvalid, "the signing key: " + what,
               "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out attest.pem"};
}

const EVP_MD* Algorithm(sigstore::PublicKey::Kind kind) {
  if (kind == sigstore::PublicKey::Kind::kEd25519) return nullptr;
  switch (sigstore::HashesFor(kind).front()) {
    case sigstore::Hash::kSha384:
      return ::EVP_sha384();
    case sigstore::Hash::kSha512:
      return ::EVP_sha512();
    case sigstore::Hash::kSha256:
      break;
  }
  return ::EVP_sha256();
}

// No password is asked for.
int NoPassword(char*, int, int, void*) { return 0; }

// The DER of a curve's signature that is given as two numbers of the same length.
std::optional<std::string> FromNumbers(std::string_view bytes) {
  if (bytes.empty() || bytes.size() % 2 != 0) return std::nullopt;
  const auto number = [](std::string_view part) {
    return NumberOwner(::BN_bin2bn(reinterpret_cast<const unsigned char*>(part.data()),
                                   static_cast<int>(part.size()), nullptr));
  };
  const CurveSignatureOwner signature(::ECDSA_SIG_new());
  NumberOwner r = number(bytes.substr(0, bytes.size() / 2));
  NumberOwner s = number(bytes.substr(bytes.size() / 2));
  ENSURE(signature != nullptr && r != nullptr && s != nullptr);
  ENSURE(::ECDSA_SIG_set0(signature.get(), r.release(), s.release()) == 1);
  unsigned char* der = nullptr;
  const int size = ::i2d_ECDSA_SIG(signature.get(), &der);
  return sigstore::TakeDer(der, size);
}

// Returns every signature that the output of a signing program may be meant as: the bytes as they
// are, decoded from base64, and each of these as two numbers.
std::vector<std::string> Readings(const std::string& output) {
  std::vector<std::string> readings = {output};
  std::string text = output;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  if (text.starts_with("vault:v")) text = text.substr(text.rfind(':') + 1);
  while (!text.empty() && text.size() % 4 != 0) text += '=';
  if (std::optional<std::string> bytes = codec::DecodeBase64(text)) {
    readings.push_back(*std::move(bytes));
  }
  while (text.ends_with('=')) text.pop_back();
  if (std::optional<std::string> bytes = codec::DecodeBase64Url(text)) {
    readings.push_back(*std::move(bytes));
  }
  for (size_t i = 0, count = readings.size(); i < count; ++i) {
    if (std::optional<std::string> der = FromNumbers(readings[i])) {
      readings.push_back(*std::move(der));
    }
  }
  return readings;
}

// The whole environment of this process but PATH, for a program that its owner named.
std::vector<std::pair<std::string, std::string>> OwnEnvironment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || text.substr(0, equals) == "PATH") continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

// A file without a name that holds `bytes`.
Result<Fd> Anonymous(std::string_view bytes) {
  Fd file(::memfd_create("signed", MFD_CLOEXEC));
  if (!file.valid()) return Errno("memfd_create");
  TRY(sys::WriteAll(file.get(), bytes));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Errno("lseek");
  return file;
}

Result<std::string> ReadBack(const Fd& file) {
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Errno("lseek");
  return sys::ReadAll(file.get(), kSignatureBytesMax);
}

// It is started in the root directory, so that no relative path leads into the checkout.
Result<std::string> RunCommand(const std::string& command, std::string_view message,
                               Deadline deadline) {
  const Fd input = TRY(Anonymous(message));
  const Fd errors(::memfd_create("errors", MFD_CLOEXEC));
  const Fd output(::memfd_create("signature", MFD_CLOEXEC));
  if (!errors.valid() || !output.valid()) return Errno("memfd_create");
  Child::Command run;
  run.argv = {"sh", "-c", command};
  run.environment = OwnEnvironment();
  run.environment.emplace_back(
      "AGENTIC_CI_SHA256", codec::EncodeBase64(sigstore::Digest(sigstore::Hash::kSha256, message)));
  run.input = input.get();
  run.log = output.get();
  run.error_log = errors.get();
  const ProgramPlaces places(sys::Environment("PATH").value_or("/usr/bin:/bin"), "");
  Child child = TRY(Child::Start(places, run));
  const int status = TRY(child.Wait(deadline).Context("the signing command"));
  if (status == 0) return ReadBack(output);
  const Result<std::string> said = ReadBack(errors);
  Error error{Code::kSetup, "the signing command ended with " + std::to_string(status), command};
  if (said.ok() && !said.value().empty()) {
    error.what += ": " + codec::NeutralLine(said.value(), kShownBytesMax);
  }
  return error;
}

}  // namespace

Result<KeyOwner> ParsePrivateKey(std::string_view pem) {
  const BioOwner bio(::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  ENSURE(bio != nullptr);
  KeyOwner key(::PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  ::ERR_clear_error();
  if (key == nullptr) {
    const bool locked = pem.find("ENCRYPTED") != std::string_view::npos;
    return BadKey(locked ? "it has a password" : "not a private key in PEM");
  }
  sigstore::Checked<sigstore::PublicKey> half =
      sigstore::PublicKey::FromSpki(SpkiOf(key.get()), sigstore::Reason::kBadKey);
  if (!half.ok()) return BadKey(sigstore::Render(half.error()));
  return key;
}

Result<KeyOwner> MakeKey() {
  KeyOwner key(::EVP_EC_gen("P-256"));
  if (key == nullptr) return Error{Code::kBug, "a key could not be made"};
  return key;
}

std::string SpkiOf(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = ::i2d_PUBKEY(key, &der);
  return sigstore::TakeDer(der, size);
}

Result<std::string> Sign(EVP_PKEY* key, std::string_view message) {
  sigstore::Checked<sigstore::PublicKey> half =
      sigstore::PublicKey::FromSpki(SpkiOf(key), sigstore::Reason::kBadKey);
  if (!half.ok()) return BadKey(sigstore::Render(half.error()));
  const DigestContextOwner context(::EVP_MD_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  size_t size = 0;
  if (::EVP_DigestSignInit(context.get(), nullptr, Algorithm(half.value().kind()), nullptr, key) !=
          1 ||
      ::EVP_DigestSign(context.get(), nullptr, &size, bytes, message.size()) != 1) {
    ::ERR_clear_error();
    return BadKey("it cannot sign");
  }
  std::string signature(size, '\0');
  if (::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       bytes, message.size()) != 1) {
    ::ERR_clear_error();
    return BadKey("it cannot sign");
  }
  signature.resize(size);
  return signature;
}

Result<Signature> SignByCommand(const std::string& command, const std::string& public_key_pem,
                                std::string_view message, Deadline deadline) {
  sigstore::Checked<sigstore::PublicKey> key =
      sigstore::PublicKey::FromPem(public_key_pem, sigstore::Reason::kBadKey);
  if (!key.ok()) return BadKey(sigstore::Render(key.error()));
  const std::string output = TRY(RunCommand(command, message, deadline));
  std::optional<std::string> signature;
  for (const std::string& reading : Readings(output)) {
    for (sigstore::Hash hash : sigstore::HashesFor(key.value().kind())) {
      if (!signature && key.value().Verifies(hash, message, reading)) signature = reading;
    }
  }
  ::ERR_clear_error();
  if (signature) return Signature{*std::move(signature), {}, key.value().spki()};
  return Error{Code::kSetup,
               "what the signing command printed is not a signature by the public key", command};
}

}  // namespace attest
