// SPDX-License-Identifier: Apache-2.0
#include "gateway/key_exchange.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <openssl/tls1.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/free_with.h"
#include "gateway/limits.h"
#include "gateway/openssl_owner.h"

namespace gateway {
namespace {

constexpr char kExchangeName[] = "X25519";
constexpr char kProviderName[] = "agentic-ci";
constexpr char kTheirs[] = "provider=default";  // Who does the arithmetic.
constexpr int kKeyBytes = 32;
constexpr int kKeyBits = 253;
constexpr int kSecurityBits = 128;

using Clock = std::chrono::steady_clock;
using KeyContextOwner = std::unique_ptr<EVP_PKEY_CTX, FreeWith<EVP_PKEY_CTX_free>>;
using PublicKey = std::array<unsigned char, kKeyBytes>;

// What OpenSSL holds of us as a key: one of ours with its secret half, or a peer's, or (as the
// parameters of a key) nothing yet.
struct Key {
  PublicKey bytes{};
  KeyOwner secret;
};

KeyOwner Share(EVP_PKEY* key) {
  return KeyOwner(key != nullptr && EVP_PKEY_up_ref(key) == 1 ? key : nullptr);
}

KeyContextOwner DerivationWith(EVP_PKEY* secret) {
  KeyContextOwner context(EVP_PKEY_CTX_new_from_pkey(nullptr, secret, kTheirs));
  if (context && EVP_PKEY_derive_init(context.get()) != 1) context.reset();
  return context;
}

// The pair of this second, with what a derivation needs made once.
class SharedPair {
 public:
  // Gives `key` the pair of this second.
  bool GiveTo(Key& key) {
    if (!IsFresh() && !Renew()) return false;
    key.bytes = public_;
    key.secret = Share(secret_.get());
    return key.secret != nullptr;
  }

  void WipeWhenStale() {
    if (IsFresh()) return;
    derivation_.reset();
    secret_.reset();
  }

  // kKeyBytes to `out`. False also for a peer that leaves no secret (RFC 7748, 6.1).
  bool Derive(EVP_PKEY* secret, const PublicKey& peer, unsigned char* out) {
    if (!peer_) peer_.reset(NewPeer(peer));
    bool taken =
        peer_ && EVP_PKEY_set1_encoded_public_key(peer_.get(), peer.data(), peer.size()) == 1;
    if (!taken) return false;
    if (secret == secret_.get()) return Finish(derivation_.get(), out);
    // Of an earlier second: TLS 1.2 derives when the client answers.
    return Finish(DerivationWith(secret).get(), out);
  }

 private:
  bool IsFresh() const { return secret_ && Clock::now() - made_ < kKeyPairAge; }

  bool Renew() {
    KeyOwner secret(EVP_PKEY_Q_keygen(nullptr, kTheirs, kExchangeName));
    size_t size = public_.size();
    bool made = secret && EVP_PKEY_get_raw_public_key(secret.get(), public_.data(), &size) == 1;
    if (!made) return false;
    derivation_ = DerivationWith(secret.get());
    if (!derivation_) return false;
    secret_ = std::move(secret);
    made_ = Clock::now();
    return true;
  }

  static EVP_PKEY* NewPeer(const PublicKey& bytes) {
    return EVP_PKEY_new_raw_public_key_ex(nullptr, kExchangeName, kTheirs, bytes.data(),
                                          bytes.size());
  }

  bool Finish(EVP_PKEY_CTX* derivation, unsigned char* out) {
    size_t size = kKeyBytes;
    return derivation != nullptr && EVP_PKEY_derive_set_peer_ex(derivation, peer_.get(), 0) == 1 &&
           EVP_PKEY_derive(derivation, out, &size) == 1 && size == kKeyBytes;
  }

  KeyOwner secret_;
  PublicKey public_{};
  KeyContextOwner derivation_;  // With secret_.
  KeyOwner peer_;               // Its bytes change with each derivation.
  Clock::time_point made_;
};

// Never freed: OpenSSL may ask for it until the process ends.
SharedPair* Shared() {
  static SharedPair* const shared = std::make_unique<SharedPair>().release();
  return shared;
}

// A key in the making: of a pair, or of parameters only.
struct Generation {
  bool pair;
};

struct Exchange {
  KeyOwner secret;
  std::optional<PublicKey> peer;
};

// Their types are OpenSSL's, so that a wrong one does not compile.
OSSL_FUNC_keymgmt_new_fn NewKey;
OSSL_FUNC_keymgmt_free_fn FreeKey;
OSSL_FUNC_keymgmt_dup_fn DuplicateKey;
OSSL_FUNC_keymgmt_has_fn KeyHas;
OSSL_FUNC_keymgmt_get_params_fn GetKeyParameters;
OSSL_FUNC_keymgmt_gettable_params_fn GettableKeyParameters;
OSSL_FUNC_keymgmt_set_params_fn SetKeyParameters;
OSSL_FUNC_keymgmt_settable_params_fn SettableKeyParameters;
OSSL_FUNC_keymgmt_gen_init_fn BeginGeneration;
OSSL_FUNC_keymgmt_gen_set_params_fn SetGenerationParameters;
OSSL_FUNC_keymgmt_gen_settable_params_fn SettableGenerationParameters;
OSSL_FUNC_keymgmt_gen_fn Generate;
OSSL_FUNC_keymgmt_gen_cleanup_fn EndGeneration;
OSSL_FUNC_keyexch_newctx_fn NewExchange;
OSSL_FUNC_keyexch_freectx_fn FreeExchange;
OSSL_FUNC_keyexch_init_fn BeginExchange;
OSSL_FUNC_keyexch_set_peer_fn SetPeer;
OSSL_FUNC_keyexch_derive_fn DeriveSecret;
OSSL_FUNC_provider_query_operation_fn Query;
OSSL_FUNC_provider_get_capabilities_fn GetCapabilities;

void* NewKey(void*) { return std::make_unique<Key>().release(); }

void FreeKey(void* key) { std::unique_ptr<Key>(static_cast<Key*>(key)).reset(); }

void* DuplicateKey(const void* from, int selection) {
  const Key& source = *static_cast<const Key*>(from);
  auto key = std::make_unique<Key>();
  if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) != 0) key->bytes = source.bytes;
  if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0) key->secret = Share(source.secret.get());
  return key.release();
}

int KeyHas(const void* key, int selection) {
  if (key == nullptr) return 0;  // Asked of a key that has only its type so far.
  bool secret = (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0;
  return !secret || static_cast<const Key*>(key)->secret ? 1 : 0;
}

int GetKeyParameters(void* key, OSSL_PARAM wanted[]) {
  const PublicKey& bytes = static_cast<const Key*>(key)->bytes;
  OSSL_PARAM* encoded = OSSL_PARAM_locate(wanted, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY);
  if (encoded != nullptr && OSSL_PARAM_set_octet_string(encoded, bytes.data(), bytes.size()) != 1) {
    return 0;
  }
  for (auto [name, value] : {std::pair{OSSL_PKEY_PARAM_BITS, kKeyBits},
                             std::pair{OSSL_PKEY_PARAM_SECURITY_BITS, kSecurityBits},
                             std::pair{OSSL_PKEY_PARAM_MAX_SIZE, kKeyBytes}}) {
    OSSL_PARAM* found = OSSL_PARAM_locate(wanted, name);
    if (found != nullptr && OSSL_PARAM_set_int(found, value) != 1) return 0;
  }
  return 1;
}

const OSSL_PARAM* GettableKeyParameters(void*) {
  static const OSSL_PARAM kAll[] = {
      OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, nullptr, 0),
      OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, nullptr),
      OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, nullptr),
      OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, nullptr), OSSL_PARAM_END};
  return kAll;
}

int SetKeyParameters(void* key, const OSSL_PARAM given[]) {
  const OSSL_PARAM* encoded = OSSL_PARAM_locate_const(given, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY);
  if (encoded == nullptr) return 1;
  if (encoded->data_type != OSSL_PARAM_OCTET_STRING || encoded->data_size != kKeyBytes) return 0;
  std::memcpy(static_cast<Key*>(key)->bytes.data(), encoded->data, kKeyBytes);
  return 1;
}

const OSSL_PARAM* SettableKeyParameters(void*) {
  static const OSSL_PARAM kAll[] = {
      OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, nullptr, 0), OSSL_PARAM_END};
  return kAll;
}

void* BeginGeneration(void*, int selection, const OSSL_PARAM[]) {
  bool pair = (selection & OSSL_KEYMGMT_SELECT_KEYPAIR) != 0;
  return std::make_unique<Generation>(Generation{pair}).release();
}

// libssl names the group again, though there is one only.
int SetGenerationParameters(void*, const OSSL_PARAM given[]) {
  const OSSL_PARAM* group = OSSL_PARAM_locate_const(given, OSSL_PKEY_PARAM_GROUP_NAME);
  return group == nullptr ||
         OPENSSL_strcasecmp(static_cast<const char*>(group->data), kExchangeName) == 0;
}

const OSSL_PARAM* SettableGenerationParameters(void*, void*) {
  static const OSSL_PARAM kAll[] = {OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, nullptr, 0),
                                    OSSL_PARAM_END};
  return kAll;
}

void* Generate(void* generation, OSSL_CALLBACK*, void*) {
  auto key = std::make_unique<Key>();
  bool pair = static_cast<Generation*>(generation)->pair;
  if (pair && !Shared()->GiveTo(*key)) return nullptr;
  return key.release();
}

void EndGeneration(void* generation) {
  std::unique_ptr<Generation>(static_cast<Generation*>(generation)).reset();
}

void* NewExchange(void*) { return std::make_unique<Exchange>().release(); }

void FreeExchange(void* exchange) {
  std::unique_ptr<Exchange>(static_cast<Exchange*>(exchange)).reset();
}

int BeginExchange(void* exchange, void* key, const OSSL_PARAM[]) {
  KeyOwner& secret = static_cast<Exchange*>(exchange)->secret;
  secret = Share(static_cast<const Key*>(key)->secret.get());
  return secret ? 1 : 0;
}

int SetPeer(void* exchange, void* key) {
  static_cast<Exchange*>(exchange)->peer = static_cast<const Key*>(key)->bytes;
  return 1;
}

int DeriveSecret(void* exchange, unsigned char* out, size_t* size, size_t size_max) {
  const auto& [secret, peer] = *static_cast<Exchange*>(exchange);
  *size = kKeyBytes;
  if (out == nullptr) return 1;
  if (!secret || !peer || size_max < kKeyBytes) return 0;
  return Shared()->Derive(secret.get(), *peer, out) ? 1 : 0;
}

template <typename Function>
OSSL_DISPATCH Entry(int number, Function* function) {
  return {number, reinterpret_cast<void (*)()>(function)};
}

const OSSL_ALGORITHM* Query(void*, int operation, int* uncached) {
  static const OSSL_DISPATCH kKeys[] = {
      Entry(OSSL_FUNC_KEYMGMT_NEW, NewKey),
      Entry(OSSL_FUNC_KEYMGMT_FREE, FreeKey),
      Entry(OSSL_FUNC_KEYMGMT_DUP, DuplicateKey),
      Entry(OSSL_FUNC_KEYMGMT_HAS, KeyHas),
      Entry(OSSL_FUNC_KEYMGMT_GET_PARAMS, GetKeyParameters),
      Entry(OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, GettableKeyParameters),
      Entry(OSSL_FUNC_KEYMGMT_SET_PARAMS, SetKeyParameters),
      Entry(OSSL_FUNC_KEYMGMT_SETTABLE_PARAMS, SettableKeyParameters),
      Entry(OSSL_FUNC_KEYMGMT_GEN_INIT, BeginGeneration),
      Entry(OSSL_FUNC_KEYMGMT_GEN_SET_PARAMS, SetGenerationParameters),
      Entry(OSSL_FUNC_KEYMGMT_GEN_SETTABLE_PARAMS, SettableGenerationParameters),
      Entry(OSSL_FUNC_KEYMGMT_GEN, Generate),
      Entry(OSSL_FUNC_KEYMGMT_GEN_CLEANUP, EndGeneration),
      {}};
  static const OSSL_DISPATCH kExchanges[] = {
      Entry(OSSL_FUNC_KEYEXCH_NEWCTX, NewExchange),  Entry(OSSL_FUNC_KEYEXCH_FREECTX, FreeExchange),
      Entry(OSSL_FUNC_KEYEXCH_INIT, BeginExchange),  Entry(OSSL_FUNC_KEYEXCH_SET_PEER, SetPeer),
      Entry(OSSL_FUNC_KEYEXCH_DERIVE, DeriveSecret), {}};
  static constexpr char kProperties[] = "provider=agentic-ci";
  static const OSSL_ALGORITHM kKeyAlgorithms[] = {{kExchangeName, kProperties, kKeys, nullptr}, {}};
  static const OSSL_ALGORITHM kExchangeAlgorithms[] = {
      {kExchangeName, kProperties, kExchanges, nullptr}, {}};
  *uncached = 0;
  if (operation == OSSL_OP_KEYMGMT) return kKeyAlgorithms;
  return operation == OSSL_OP_KEYEXCH ? kExchangeAlgorithms : nullptr;
}

// libssl takes a group from the provider of its keys only, so it is named here as well
// (provider-base(7), "TLS-GROUP").
int GetCapabilities(void*, const char* capability, OSSL_CALLBACK* take, void* argument) {
  if (std::string_view(capability) != "TLS-GROUP") return 1;
  char name[] = "x25519";
  char algorithm[] = "X25519";
  unsigned int number = 0x1d;  // RFC 8446, 4.2.7.
  unsigned int security_bits = kSecurityBits;
  int tls_least = TLS1_VERSION;
  int tls_most = 0;  // No bound.
  int dtls = -1;     // Not for DTLS.
  OSSL_PARAM group[] = {
      OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME, name, sizeof name),
      OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME_INTERNAL, algorithm, sizeof algorithm),
      OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_ALG, algorithm, sizeof algorithm),
      OSSL_PARAM_uint(OSSL_CAPABILITY_TLS_GROUP_ID, &number),
      OSSL_PARAM_uint(OSSL_CAPABILITY_TLS_GROUP_SECURITY_BITS, &security_bits),
      OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MIN_TLS, &tls_least),
      OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MAX_TLS, &tls_most),
      OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MIN_DTLS, &dtls),
      OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MAX_DTLS, &dtls),
      OSSL_PARAM_END};
  return take(group, argument);
}

int InitProvider(const OSSL_CORE_HANDLE*, const OSSL_DISPATCH*, const OSSL_DISPATCH** out,
                 void** provider) {
  static const OSSL_DISPATCH kFunctions[] = {
      Entry(OSSL_FUNC_PROVIDER_QUERY_OPERATION, Query),
      Entry(OSSL_FUNC_PROVIDER_GET_CAPABILITIES, GetCapabilities),
      {}};
  *out = kFunctions;
  *provider = Shared();
  return 1;
}

}  // namespace

Status InstallKeyExchange() {
  // Loaded until the process ends. Whoever asks for no provider must get the default one's, so
  // that is said first.
  static OSSL_PROVIDER* const provider = [] {
    bool added = EVP_set_default_properties(nullptr, "?provider=default") == 1 &&
                 OSSL_PROVIDER_add_builtin(nullptr, kProviderName, InitProvider) == 1;
    return added ? OSSL_PROVIDER_try_load(nullptr, kProviderName, 1) : nullptr;
  }();
  if (provider == nullptr) return SslFailed("adding a key exchange to OpenSSL");
  return Ok();
}

void WipeStaleKeyPair() { Shared()->WipeWhenStale(); }

}  // namespace gateway
