// SPDX-License-Identifier: Apache-2.0
#include "gateway/policy_wire.h"

#include <type_traits>
#include <vector>

namespace gateway {
namespace {

// Appends values; numbers as eight bytes, texts and lists behind their length.
class Writer {
 public:
  template <typename... T>
  void operator()(T&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(out_); }

 private:
  void PutNumber(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(number >> shift);
  }
  void Put(std::string& text) {
    PutNumber(text.size());
    out_ += text;
  }
  template <typename T>
  void Put(std::vector<T>& list) {
    PutNumber(list.size());
    for (T& item : list) Put(item);
  }
  template <typename T>
  void Put(T& value) {
    if constexpr (std::is_class_v<T>) {
      Visit(*this, value);
    } else {
      PutNumber(static_cast<uint64_t>(value));
    }
  }

  std::string out_;
};

// Takes the same values off, in the same order.
class WireReader {
 public:
  explicit WireReader(std::string_view in) : in_(in) {}

  template <typename... T>
  void operator()(T&... values) {
    (Get(values), ...);
  }
  bool complete() const { return good_ && in_.empty(); }

 private:
  uint64_t GetNumber() {
    uint64_t number = 0;
    good_ = good_ && in_.size() >= 8;
    if (!good_) return 0;
    for (size_t i = 0; i < 8; ++i) {
      number |= static_cast<uint64_t>(static_cast<unsigned char>(in_[i])) << (8 * i);
    }
    in_.remove_prefix(8);
    return number;
  }
  // Of a text or a list, each item of which has at least one byte.
  size_t GetSize() {
    uint64_t size = GetNumber();
    good_ = good_ && size <= in_.size();
    return good_ ? static_cast<size_t>(size) : 0;
  }
  void Get(std::string& text) {
    size_t size = GetSize();
    text = in_.substr(0, size);
    in_.remove_prefix(size);
  }
  template <typename T>
  void Get(std::vector<T>& list) {
    size_t size = GetSize();
    for (size_t i = 0; i < size && good_; ++i) Get(list.emplace_back());
  }
  template <typename T>
  void Get(T& value) {
    if constexpr (std::is_class_v<T>) {
      Visit(*this, value);
    } else {
      value = static_cast<T>(GetNumber());
    }
  }

  std::string_view in_;
  bool good_ = true;
};

// Every member of every type, once for both directions.
template <typename Archive>
void Visit(Archive& archive, codec::Position& value) {
  archive(value.line, value.column);
}
template <typename Archive>
void Visit(Archive& archive, policy::QueryMatcher& value) {
  archive(value.key, value.any);
}
template <typename Archive>
void Visit(Archive& archive, policy::HttpRule& value) {
  archive(value.method, value.path, value.query, value.operation_type, value.operation_name,
          value.fields, value.tool, value.command, value.at);
}
template <typename Archive>
void Visit(Archive& archive, policy::PersistedQuery& value) {
  archive(value.id, value.operation_type, value.operation_name, value.fields);
}
template <typename Archive>
void Visit(Archive& archive, policy::Endpoint& value) {
  archive(value.host, value.ports, value.path, value.protocol, value.protocol_implied, value.tls,
          value.enforcement, value.access, value.rules, value.deny_rules, value.allowed_ips,
          value.allow_encoded_slash, value.websocket_credential_rewrite,
          value.request_body_credential_rewrite, value.allow_uninspected_credentials, value.signing,
          value.signing_service, value.signing_region, value.credential_provider,
          value.allow_registered_queries, value.persisted_queries, value.body_bytes_max,
          value.mcp.strict_tool_names, value.mcp.allow_all_known_methods, value.at);
}
template <typename Archive>
void Visit(Archive& archive, policy::NetworkPolicy& value) {
  archive(value.key, value.name, value.endpoints, value.binaries, value.at);
}
template <typename Archive>
void Visit(Archive& archive, policy::Middleware& value) {
  archive(value.name, value.order, value.fail_open, value.include, value.exclude, value.at);
}

}  // namespace

std::string RenderPolicyWire(const policy::Policy& policy) {
  policy::Policy copy = policy;
  Writer writer;
  writer(copy.network, copy.middlewares);
  return writer.Take();
}

std::optional<policy::Policy> ParsePolicyWire(std::string_view bytes) {
  policy::Policy policy;
  WireReader reader(bytes);
  reader(policy.network, policy.middlewares);
  if (!reader.complete()) return std::nullopt;
  return policy;
}

}  // namespace gateway
