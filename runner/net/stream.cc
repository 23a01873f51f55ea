// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include <curl/curl.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "base/sys.h"
#include "net/http_client.h"

namespace net {

struct Stream::State {
  std::string name;  // "HOST:PORT", for errors.
  std::string ca_pem;
  std::array<char, CURL_ERROR_SIZE> reason{};
  CURL* handle = curl_easy_init();

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    // What the other end said by itself (tickets of TLS 1.3) must be read: a connection that is
    // closed with bytes in it is reset, and what was written last may be lost.
    std::array<char, 1024> said{};
    size_t got = 0;
    while (connected && curl_easy_recv(handle, said.data(), said.size(), &got) == CURLE_OK) {
      if (got == 0) break;
    }
    curl_easy_cleanup(handle);
  }

  template <typename Value>
  void Set(CURLoption option, Value value) {
    ENSURE(curl_easy_setopt(handle, option, value) == CURLE_OK);
  }

  bool connected = false;
};

Stream::Stream(std::unique_ptr<State> state) : state_(std::move(state)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

Result<Stream> Stream::Connect(const StreamOptions& options, Deadline deadline) {
  TRY(InitialiseCurl());
  auto state = std::make_unique<State>();
  ENSURE(state->handle != nullptr);
  const bool is_v6 = options.host.find(':') != std::string::npos;
  state->name =
      (is_v6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
  state->Set(CURLOPT_URL, ((options.tls ? "https://" : "http://") + state->name).c_str());
  state->Set(CURLOPT_CONNECT_ONLY, 1L);
  state->Set(CURLOPT_NOSIGNAL, 1L);
  state->Set(CURLOPT_PROXY, "");  // Keeps libcurl from asking the environment.
  state->Set(CURLOPT_ERRORBUFFER, state->reason.data());
  if (options.tls) {
    state->ca_pem = TRY(ReadCaFile(options.ca_file));
    curl_blob ca{state->ca_pem.data(), state->ca_pem.size(), CURL_BLOB_NOCOPY};
    state->Set(CURLOPT_CAINFO_BLOB, &ca);
    state->Set(CURLOPT_SSL_VERIFYPEER, 1L);
    state->Set(CURLOPT_SSL_VERIFYHOST, 2L);
    state->Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    state->Set(CURLOPT_SSL_ENABLE_ALPN, 0L);
  }
  if (!deadline.never()) {
    state->Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max(deadline.poll_ms(), 1)));
  }
  const CURLcode code = curl_easy_perform(state->handle);
  if (code != CURLE_OK) {
    const bool trust = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    const char* why = state->reason[0] != '\0' ? state->reason.data() : curl_easy_strerror(code);
    return Error{trust ? Code::kSetup : Code::kTemporary, state->name + ": " + why};
  }
  state->connected = true;
  return Stream(std::move(state));
}

Status Stream::Write(std::string_view bytes, Deadline deadline) {
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(state_->handle, CURLINFO_ACTIVESOCKET, &socket);
  while (!bytes.empty()) {
    size_t sent = 0;
    const CURLcode code = curl_easy_send(state_->handle, bytes.data(), bytes.size(), &sent);
    if (code == CURLE_OK) {
      bytes.remove_prefix(sent);
      continue;
    }
    if (code != CURLE_AGAIN) {
      return Error{Code::kTemporary, state_->name + ": " + curl_easy_strerror(code)};
    }
    pollfd ready{socket, POLLOUT, 0};
    if (deadline.passed() || ::poll(&ready, 1, deadline.poll_ms()) == 0) {
      return Error{Code::kTemporary, state_->name + ": the time limit passed"};
    }
  }
  return Ok();
}

}  // namespace net
