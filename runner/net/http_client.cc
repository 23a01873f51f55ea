// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/ascii.h"
#include "base/sys.h"
#include "net/url.h"

namespace net {
namespace {

constexpr size_t kCaBundleBytesMax = 16 * 1024 * 1024;
constexpr size_t kHeaderBytesMax = 256 * 1024;

// Text of a remote end, or of curl about one, as it may stand in an error.
std::string Printable(std::string_view text) {
  std::string printable(text.substr(0, 300));
  for (char& c : printable) {
    if (ascii::IsControl(c)) c = ' ';
  }
  return printable;
}

bool OneLine(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

// Owns the header list, and wipes it: one line of it is the authorization.
class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() {
    for (curl_slist* item = list_; item != nullptr; item = item->next) {
      ::explicit_bzero(item->data, ::strlen(item->data));
    }
    curl_slist_free_all(list_);
  }

  void Add(const char* line) {
    curl_slist* longer = curl_slist_append(list_, line);
    ENSURE(longer != nullptr);
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// Adds "NAME: SCHEMEVALUE".
Status AddSecret(HeaderList& list, std::string_view name, std::string_view scheme,
                 const Secret& value) {
  if (!OneLine(value.reveal())) return Error{Code::kSetup, "the token contains a line break"};
  constexpr std::string_view kColon = ": ";
  SecretString line;
  // No copy left behind.
  line.reserve(name.size() + kColon.size() + scheme.size() + value.reveal().size());
  line.append(name).append(kColon).append(scheme).append(value.reveal());
  list.Add(line.c_str());
  return Ok();
}

Status AddHeaders(HeaderList& list, const HttpRequest& request) {
  list.Add("expect:");  // No waiting for a 100.
  for (const auto& [name, value] : request.headers) {
    if (!OneLine(name) || !OneLine(value) || name.find(':') != std::string::npos) {
      return Error{Code::kInvalid, "a header contains a line break"};
    }
    list.Add((name + ": " + value).c_str());
  }
  constexpr std::string_view kName = "authorization";
  if (request.bearer != nullptr) TRY(AddSecret(list, kName, "Bearer ", *request.bearer));
  if (request.basic != nullptr) TRY(AddSecret(list, kName, "Basic ", *request.basic));
  if (request.authorization != nullptr) TRY(AddSecret(list, kName, "", *request.authorization));
  for (const auto& [name, value] : request.secret_headers) TRY(AddSecret(list, name, "", *value));
  return Ok();
}

// The members that the callbacks fill in.
struct Incoming {
  CURL* handle = nullptr;
  const BodySink* sink = nullptr;
  HttpResponse response;
  size_t body_bytes_max = 0;
  size_t header_bytes = 0;
  bool too_large = false;
  bool header_too_large = false;
  bool cut = false;  // An error's body, beyond the bound.
  Status sink_status = Ok();
  const HttpRequest* request = nullptr;
  Status judged = Ok();
  std::string_view unsent;  // The rest of the last piece of the request's body.
  Status source_status = Ok();
};

size_t OnBody(char* data, size_t size, size_t count, void* context) {
  auto* incoming = static_cast<Incoming*>(context);
  size_t bytes = size * count;
  long status = 0;
  curl_easy_getinfo(incoming->handle, CURLINFO_RESPONSE_CODE, &status);
  if (incoming->sink != nullptr && status >= 200 && status < 300) {
    incoming->response.status = static_cast<int>(status);
    incoming->sink_status = (*incoming->sink)(incoming->response, std::string_view(data, bytes));
    return incoming->sink_status.ok() ? bytes : 0;
  }
  size_t room = incoming->body_bytes_max - incoming->response.body.size();
  if (bytes > room) {
    (incoming->sink != nullptr ? incoming->cut : incoming->too_large) = true;
    incoming->response.body.append(data, room);
    return 0;
  }
  incoming->response.body.append(data, bytes);
  return bytes;
}

size_t OnSend(char* into, size_t size, size_t count, void* context) {
  auto* incoming = static_cast<Incoming*>(context);
  if (incoming->unsent.empty()) {
    Result<std::string_view> piece = incoming->request->body_source();
    if (!piece.ok()) {
      incoming->source_status = std::move(piece).error();
      return CURL_READFUNC_ABORT;
    }
    incoming->unsent = piece.value();
  }
  const size_t bytes = incoming->unsent.copy(into, size * count);
  incoming->unsent.remove_prefix(bytes);
  return bytes;
}

// Called on each connection, also on one that is used again.
int OnConnected(void* context, char* address, char*, int, int) {
  auto* incoming = static_cast<Incoming*>(context);
  incoming->judged = incoming->request->judge_address(address);
  return incoming->judged.ok() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

// The same question while nothing comes.
int OnProgress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto* incoming = static_cast<Incoming*>(context);
  if (!incoming->sink_status.ok()) return 1;  // curl asks once more when it is over.
  incoming->sink_status = (*incoming->sink)(incoming->response, {});
  return incoming->sink_status.ok() ? 0 : 1;
}

size_t OnHeader(char* data, size_t size, size_t count, void* context) {
  auto* incoming = static_cast<Incoming*>(context);
  std::string_view line(data, size * count);
  incoming->header_bytes += line.size();
  if (incoming->header_bytes > kHeaderBytesMax) {
    incoming->header_too_large = true;
    return 0;
  }
  size_t consumed = line.size();
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.substr(0, 5) == "HTTP/")
    incoming->response.headers.clear();  // After a 100, or a proxy's.
  size_t colon = line.find(':');
  if (colon == std::string_view::npos) return consumed;
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  incoming->response.headers.emplace(ascii::LowerCase(line.substr(0, colon)), std::string(value));
  return consumed;
}

Code Classify(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Code::kSetup;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Code::kInvalid;
    default:
      return Code::kTemporary;
  }
}

}  // namespace

std::string HttpResponse::Header(const std::string& name) const {
  auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

Result<std::string> SystemCaBundle() {
  constexpr std::array<const char*, 4> kPlaces = {
      "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Alpine, Arch.
      "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL.
      "/etc/ssl/ca-bundle.pem",              // openSUSE.
      "/etc/ssl/cert.pem",                   // Alpine's and BSD's old place.
  };
  for (const char* place : kPlaces) {
    if (sys::Exists(place)) return std::string(place);
  }
  return Error{Code::kSetup, "no CA certificates found on this machine",
               "apt-get install ca-certificates"};
}

Result<std::string> ReadCaFile(std::string ca_file) {
  if (ca_file.empty()) ca_file = TRY(SystemCaBundle());
  std::string pem =
      TRY(sys::ReadFile(ca_file, kCaBundleBytesMax).Context("reading the trusted certificates"));
  if (pem.find("-----BEGIN ") == std::string::npos) {
    return Error{Code::kSetup, "no certificates in " + ca_file};
  }
  return pem;
}

// OpenSSL's configuration file is not read: it could load code or weaken what is verified, and
// curl's own initialisation would read it.
Status InitialiseCurl() {
  static const bool initialised = OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1 &&
                                  curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  if (!initialised) return Error{Code::kBug, "libcurl does not initialise"};
  return Ok();
}

struct HttpClient::State {
  HttpClientOptions options;
  std::string ca_pem;
  CURL* handle = nullptr;
  bool reached = false;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { curl_easy_cleanup(handle); }

  // Forgets the request before, and keeps the connections. After a name that did not resolve,
  // libcurl 7.88 keeps its buffer and refuses to be told another size: such a handle is replaced.
  void Reset() {
    constexpr long kBufferBytes = 256 * 1024;  // A layer is streamed in few calls.
    curl_easy_reset(handle);
    if (curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, kBufferBytes) == CURLE_OK) return;
    curl_easy_cleanup(handle);
    handle = curl_easy_init();
    ENSURE(handle != nullptr);
    Set(CURLOPT_BUFFERSIZE, kBufferBytes);
  }

  // Everything that does not depend on the request.
  void Configure() {
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 0L);  // An authorization must not reach another host.
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_SSL_VERIFYPEER, 1L);
    Set(CURLOPT_SSL_VERIFYHOST, 2L);
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_blob ca{ca_pem.data(), ca_pem.size(), CURL_BLOB_NOCOPY};
    Set(CURLOPT_CAINFO_BLOB, &ca);
    if (!options.client_certificate.empty()) {
      Set(CURLOPT_SSLCERT, options.client_certificate.c_str());
      Set(CURLOPT_SSLKEY, options.client_key.c_str());
    }
    Set(CURLOPT_USERAGENT, options.user_agent.c_str());
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout_ms));
    Set(CURLOPT_LOW_SPEED_LIMIT, 1000L);
    Set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_seconds));
    Set(CURLOPT_WRITEFUNCTION, &OnBody);
    Set(CURLOPT_HEADERFUNCTION, &OnHeader);
  }

  void SetRequest(const HttpRequest& request, bool takes_proxy, const HeaderList& headers) {
    // "" means no proxy, and keeps libcurl from asking the environment.
    Set(CURLOPT_PROXY, takes_proxy ? options.proxy.url.c_str() : "");
    Set(CURLOPT_NOPROXY, "");
    Set(CURLOPT_URL, request.url.c_str());
    if (options.http2) {
      const bool tls = request.url.starts_with("https:");
      Set(CURLOPT_HTTP_VERSION,
          static_cast<long>(tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
    }
    Set(CURLOPT_HTTPHEADER, headers.get());
    bool has_body = !request.body.empty() || request.method == "POST" || request.method == "PUT" ||
                    request.method == "PATCH";
    if (request.method == "HEAD") {
      Set(CURLOPT_NOBODY, 1L);
    } else if (request.body_source) {
      Set(CURLOPT_POST, 1L);
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(-1));
      Set(CURLOPT_READFUNCTION, &OnSend);
    } else if (has_body) {
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      Set(CURLOPT_POSTFIELDS, request.body.c_str());
    } else {
      Set(CURLOPT_HTTPGET, 1L);
    }
    // On a connection it has used before, curl repeats a request by itself when the other end
    // closes without an answer, though that end may have acted on it. Not for requests that must
    // not be.
    bool once = request.method == "POST" || request.method == "PATCH";
    Set(CURLOPT_FRESH_CONNECT, once ? 1L : 0L);
    if (request.method != "HEAD") Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }

  template <typename Value>
  void Set(CURLoption option, Value value) {
    ENSURE(curl_easy_setopt(handle, option, value) == CURLE_OK);
  }
};

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

bool HttpClient::reached() const { return state_->reached; }

Result<HttpClient> HttpClient::Create(HttpClientOptions options) {
  TRY(InitialiseCurl());
  auto state = std::make_unique<State>();
  state->ca_pem = TRY(ReadCaFile(options.ca_file));
  TRY(CheckProxy(options.proxy));
  state->options = std::move(options);
  state->handle = curl_easy_init();
  ENSURE(state->handle != nullptr);
  return HttpClient(std::move(state));
}

Result<HttpResponse> HttpClient::Send(const HttpRequest& request, Deadline deadline) {
  return Perform(request, nullptr, deadline);
}

Result<HttpResponse> HttpClient::Send(const HttpRequest& request, const BodySink& sink,
                                      Deadline deadline) {
  return Perform(request, &sink, deadline);
}

Result<HttpResponse> HttpClient::Perform(const HttpRequest& request, const BodySink* sink,
                                         Deadline deadline) {
  state_->reached = false;
  const bool takes_proxy = TakesProxy(state_->options.proxy, TRY(ParseUrl(request.url)).host);
  std::string doing = request.method + " " + ShownUrl(request.url);
  HeaderList headers;
  TRY(AddHeaders(headers, request).Context(doing));
  if (deadline.passed()) {
    return Error{Code::kTemporary, doing + ": the time limit passed"};
  }

  state_->Reset();
  Incoming incoming;
  incoming.handle = state_->handle;
  incoming.sink = sink;
  incoming.request = &request;
  incoming.body_bytes_max = state_->options.response_bytes_max;
  std::array<char, CURL_ERROR_SIZE> reason{};
  state_->Configure();
  state_->SetRequest(request, takes_proxy, headers);
  state_->Set(CURLOPT_WRITEDATA, static_cast<void*>(&incoming));
  state_->Set(CURLOPT_HEADERDATA, static_cast<void*>(&incoming));
  state_->Set(CURLOPT_READDATA, static_cast<void*>(&incoming));
  state_->Set(CURLOPT_ERRORBUFFER, reason.data());
  if (sink != nullptr) {
    state_->Set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
    state_->Set(CURLOPT_XFERINFODATA, static_cast<void*>(&incoming));
    state_->Set(CURLOPT_NOPROGRESS, 0L);
  }
  if (request.judge_address && !takes_proxy) {
    state_->Set(CURLOPT_PREREQFUNCTION, &OnConnected);
    state_->Set(CURLOPT_PREREQDATA, static_cast<void*>(&incoming));
  }
  if (!deadline.never()) {
    state_->Set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max(deadline.poll_ms(), 1)));
  }
  CURLcode code = curl_easy_perform(state_->handle);
  long request_bytes = 0;
  curl_easy_getinfo(state_->handle, CURLINFO_REQUEST_SIZE, &request_bytes);
  state_->reached = request_bytes > 0;
  if (incoming.too_large) {
    return Error{Code::kInvalid, doing + ": the response is larger than " +
                                     std::to_string(incoming.body_bytes_max) + " bytes"};
  }
  if (incoming.header_too_large) {
    return Error{Code::kInvalid, doing + ": the response's headers are larger than " +
                                     std::to_string(kHeaderBytesMax) + " bytes"};
  }
  if (!incoming.source_status.ok()) return std::move(incoming.source_status).error();
  if (!incoming.judged.ok()) return std::move(incoming.judged).error();
  if (!incoming.sink_status.ok()) return std::move(incoming.sink_status).error();
  if (code != CURLE_OK && !incoming.cut) {
    const char* text = reason[0] != '\0' ? reason.data() : curl_easy_strerror(code);
    Error error{Classify(code), doing + ": " + Printable(text)};
    // OpenSSL's words for what is not TLS.
    const std::string_view said = text;
    if (said.find("wrong version number") != said.npos) error.kind = ErrorKind::kNotTls;
    return error;
  }
  long status = 0;
  curl_easy_getinfo(state_->handle, CURLINFO_RESPONSE_CODE, &status);
  incoming.response.status = static_cast<int>(status);
  return std::move(incoming.response);
}

}  // namespace net
