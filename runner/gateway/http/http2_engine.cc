// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http2_engine.h"

#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gateway/async/limits.h"
#include "gateway/http/http2_head.h"
#include "gateway/http/limits.h"

namespace gateway {
namespace {

using Clock = std::chrono::steady_clock;

// A server's engine writes heads with credentials in them: nothing it frees keeps them.
void* Allocate(size_t size, void*) { return std::malloc(size); }
void* AllocateZeroed(size_t count, size_t size, void*) { return std::calloc(count, size); }

void WipeAndFree(void* memory, void*) {
  if (memory == nullptr) return;
  OPENSSL_cleanse(memory, ::malloc_usable_size(memory));
  std::free(memory);
}

void* Reallocate(void* memory, size_t size, void*) {
  void* moved = std::malloc(size);
  if (moved == nullptr || memory == nullptr) return moved;
  std::memcpy(moved, memory, std::min(size, ::malloc_usable_size(memory)));
  WipeAndFree(memory, nullptr);
  return moved;
}

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

uint8_t* Bytes(const std::string& text) {
  return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));  // nghttp2 only reads them.
}

std::vector<nghttp2_nv> NameValues(const codec::HttpFields& fields) {
  std::vector<nghttp2_nv> values;
  values.reserve(fields.size());
  for (const codec::HttpField& field : fields) {
    uint8_t flags =
        MayIndexHttp2Field(field.name) ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX;
    values.push_back(
        {Bytes(field.name), Bytes(field.value), field.name.size(), field.value.size(), flags});
  }
  return values;
}

Status Check(int result, std::string_view doing) {
  if (result == 0) return Ok();
  return Error{Code::kIo, "HTTP/2: " + std::string(doing) + ": " + nghttp2_strerror(result)};
}

}  // namespace

// The callbacks of nghttp2; each casts its `user` back to the engine.
struct Http2Callbacks {
  static Http2Engine& Engine(void* user) { return *static_cast<Http2Engine*>(user); }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
    bool ends = (head->flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (head->type) {
      case NGHTTP2_HEADERS:
        break;
      case NGHTTP2_DATA:
        if (head->length == 0 && !ends) Engine(user).Spend(1);
        break;
      case NGHTTP2_RST_STREAM:
        Engine(user).Spend(kHttp2ResetCost);  // CVE-2023-44487: it undoes what a head has begun.
        break;
      default:
        Engine(user).Spend(1);
        break;
    }
    return 0;
  }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame*, void* user) {
    Engine(user).block_.clear();
    Engine(user).block_bytes_ = 0;
    Engine(user).head_since_ = Clock::now();
    return 0;
  }

  // Refuses the stream; the rest of its head is read for HPACK's sake alone.
  static int RefuseHead(Http2Engine& engine, int32_t stream, std::string_view why) {
    engine.head_since_.reset();
    engine.block_.clear();
    engine.ReportMalformed(stream, why);
    engine.Reset(stream, Http2Code::kProtocolError);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Http2Engine& engine = Engine(user);
    bool server = engine.role_ == Http2Engine::Role::kServer;
    size_t most = server ? kRequestHeadBytesMax : kResponseHeadBytesMax;
    engine.block_bytes_ += name_size + value_size + kHttp2FieldOverhead;
    if (engine.block_bytes_ > most) {
      return RefuseHead(engine, frame->hd.stream_id,
                        "head longer than " + std::to_string(most) + " bytes");
    }
    engine.block_.push_back(
        {std::string(View(name, name_size)), std::string(View(value, value_size))});
    return 0;
  }

  // nghttp2 would leave such a field out and go on: fine for what a server sends, not for what is
  // judged.
  static int OnInvalidHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t*, size_t,
                             const uint8_t*, size_t, uint8_t, void* user) {
    Http2Engine& engine = Engine(user);
    if (engine.role_ == Http2Engine::Role::kClient) return 0;
    return RefuseHead(engine, frame->hd.stream_id, "invalid header");
  }

  static void OnHeadersFrame(Http2Engine& engine, const nghttp2_frame* frame) {
    engine.head_since_.reset();
    int32_t stream = frame->hd.stream_id;
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    codec::HttpFields block = std::exchange(engine.block_, {});
    bool server = engine.role_ == Http2Engine::Role::kServer;
    bool head = server ? frame->headers.cat == NGHTTP2_HCAT_REQUEST
                       : !block.empty() && block.front().name == ":status";
    if (head) {
      engine.listener_.OnHead(stream, std::move(block), end);
      return;
    }
    Status sound = server ? CheckHttp2Trailers(block) : Ok();
    if (sound.ok() && end) {
      engine.listener_.OnEnd(stream, std::move(block));
      return;
    }
    engine.ReportMalformed(stream, sound.ok() ? "trailers without END_STREAM" : sound.error().what);
    engine.Reset(stream, Http2Code::kProtocolError);
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Engine& engine = Engine(user);
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS) OnHeadersFrame(engine, frame);
    if (frame->hd.type == NGHTTP2_DATA && end) engine.listener_.OnEnd(frame->hd.stream_id, {});
    return 0;
  }

  static int OnInvalidFrame(nghttp2_session*, const nghttp2_frame* frame, int error, void* user) {
    Http2Engine& engine = Engine(user);
    bool of_stream = error == NGHTTP2_ERR_HTTP_HEADER || error == NGHTTP2_ERR_HTTP_MESSAGING;
    engine.head_since_.reset();
    if (of_stream) engine.ReportMalformed(frame->hd.stream_id, "malformed HTTP/2 message");
    if (!of_stream && error != NGHTTP2_ERR_REFUSED_STREAM && engine.failure_.empty()) {
      engine.failure_ = nghttp2_strerror(error);
    }
    return 0;
  }

  static int OnDataChunk(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes,
                         size_t size, void* user) {
    Http2Engine& engine = Engine(user);
    engine.Earn(1);
    bool kept = engine.listener_.OnData(stream, View(bytes, size));
    if (!kept) engine.Consume(stream, size);
    return 0;
  }

  static int OnStreamClose(nghttp2_session*, int32_t stream, uint32_t code, void* user) {
    Engine(user).listener_.OnClose(stream, static_cast<Http2Code>(code));
    return 0;
  }

  static int OnFrameNotSent(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      // The peer's GOAWAY overtook it: it has no stream, and so none that is closed.
      Engine(user).listener_.OnClose(frame->hd.stream_id, Http2Code::kRefusedStream);
    } else {
      Engine(user).Reset(frame->hd.stream_id, Http2Code::kInternalError);  // The peer waits for it.
    }
    return 0;
  }

  static int OnFrameSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Http2Engine& engine = Engine(user);
    int32_t stream = frame->hd.stream_id;
    if (frame->hd.type == NGHTTP2_DATA) engine.Earn(3);
    if (frame->hd.type == NGHTTP2_RST_STREAM &&
        frame->rst_stream.error_code == NGHTTP2_PROTOCOL_ERROR) {
      engine.ReportMalformed(stream, "body and Content-Length differ");
    }
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR &&
        engine.failure_.empty()) {
      engine.failure_ = nghttp2_http2_strerror(frame->goaway.error_code);
    }
    bool of_message = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    bool ended = of_message && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (!ended || engine.role_ == Http2Engine::Role::kClient) return 0;
    engine.Earn(kHttp2ResetCost);
    // Answered before the request was over: the rest of it is not wanted (RFC 9113, 8.1).
    if (nghttp2_session_get_stream_remote_close(session, stream) == 0) {
      engine.Reset(stream, Http2Code::kNoError);
    }
    return 0;
  }

  static ssize_t Take(nghttp2_session* session, int32_t stream, uint8_t* out, size_t size,
                      uint32_t* flags, nghttp2_data_source*, void* user) {
    Http2Engine& engine = Engine(user);
    Http2Engine::Taken taken = engine.listener_.OnTake(stream, reinterpret_cast<char*>(out), size);
    if (taken.size == 0 && !taken.end) return NGHTTP2_ERR_DEFERRED;
    if (taken.end) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (taken.end && !taken.trailers.empty()) {
      std::vector<nghttp2_nv> values = NameValues(taken.trailers);
      int result = nghttp2_submit_trailer(session, stream, values.data(), values.size());
      if (result != 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    return static_cast<ssize_t>(taken.size);
  }

  static void Set(nghttp2_session_callbacks* callbacks) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, OnBeginFrame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, OnInvalidHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, OnInvalidFrame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnDataChunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClose);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, OnFrameNotSent);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, OnFrameSent);
  }
};

void Http2Engine::Deleter::operator()(nghttp2_session* session) const {
  nghttp2_session_del(session);
}

Http2Engine::Http2Engine(Role role, Listener& listener)
    : role_(role), listener_(listener), patience_(kHttp2Patience), patience_at_(Clock::now()) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* options = nullptr;
  ENSURE(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&options) == 0);
  Http2Callbacks::Set(callbacks);
  nghttp2_option_set_no_auto_window_update(options, 1);
  nghttp2_option_set_no_closed_streams(options, 1);
  nghttp2_option_set_max_outbound_ack(options, kHttp2UnsentAcksMax);
  nghttp2_option_set_max_send_header_block_length(options, kHttp2SentHeadBytesMax);
  nghttp2_session* session = nullptr;
  int result = 0;
  if (role == Role::kServer) {
    result = nghttp2_session_server_new2(&session, callbacks, this, options);
  } else {
    nghttp2_mem memory{nullptr, Allocate, WipeAndFree, AllocateZeroed, Reallocate};
    result = nghttp2_session_client_new3(&session, callbacks, this, options, &memory);
  }
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_option_del(options);
  ENSURE(result == 0);
  session_.reset(session);
  SendSettings();
}

Http2Engine::~Http2Engine() = default;

void Http2Engine::SendSettings() {
  bool server = role_ == Role::kServer;
  size_t stream_window = server ? kHttp2UploadWindow : kHttp2AnswerWindow;
  size_t window = server ? kHttp2ClientWindow : kHttp2UpstreamWindow;
  size_t head = server ? kRequestHeadBytesMax : kResponseHeadBytesMax;
  std::array<nghttp2_settings_entry, 4> settings = {{
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(head)},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(stream_window)},
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
  }};
  if (server) {
    // Every answer gets its share (see SubmitResponse), whatever tree a client would build of them.
    settings[2] = {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1};
    settings[3] = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                   static_cast<uint32_t>(kHttp2StreamsMax)};
  }
  ENSURE(nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(),
                                 settings.size()) == 0);
  ENSURE(nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0,
                                               static_cast<int32_t>(window)) == 0);
}

Status Http2Engine::Feed(std::string_view bytes) {
  ssize_t taken = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (taken >= 0) return Ok();
  if (failure_.empty()) failure_ = nghttp2_strerror(static_cast<int>(taken));
  return Error{Code::kIo, "HTTP/2: " + failure_};
}

bool Http2Engine::wants_more() const { return nghttp2_session_want_read(session_.get()) != 0; }

Result<std::string_view> Http2Engine::Next() {
  const uint8_t* bytes = nullptr;
  ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
  if (size < 0) {
    return Error{Code::kIo, std::string("HTTP/2: ") + nghttp2_strerror(static_cast<int>(size))};
  }
  return View(bytes, static_cast<size_t>(size));
}

Result<int32_t> Http2Engine::SubmitRequest(const codec::HttpFields& fields, bool end) {
  std::vector<nghttp2_nv> values = NameValues(fields);
  nghttp2_data_provider provider{{.ptr = nullptr}, Http2Callbacks::Take};
  int32_t stream = nghttp2_submit_request(session_.get(), nullptr, values.data(), values.size(),
                                          end ? nullptr : &provider, nullptr);
  if (stream < 0) TRY(Check(stream, "sending a request"));
  return stream;
}

Status Http2Engine::SubmitResponse(int32_t stream, const codec::HttpFields& fields, bool end) {
  std::vector<nghttp2_nv> values = NameValues(fields);
  nghttp2_data_provider provider{{.ptr = nullptr}, Http2Callbacks::Take};
  // All take turns alike: otherwise one long answer holds up all others (RFC 9218, 4.2).
  nghttp2_extpri priority{NGHTTP2_EXTPRI_DEFAULT_URGENCY, 1};
  nghttp2_session_change_extpri_stream_priority(session_.get(), stream, &priority, 1);
  return Check(nghttp2_submit_response(session_.get(), stream, values.data(), values.size(),
                                       end ? nullptr : &provider),
               "sending a response");
}

Status Http2Engine::SubmitInterim(int32_t stream, const codec::HttpFields& fields) {
  std::vector<nghttp2_nv> values = NameValues(fields);
  int32_t result = nghttp2_submit_headers(session_.get(), NGHTTP2_FLAG_NONE, stream, nullptr,
                                          values.data(), values.size(), nullptr);
  return Check(result, "sending an interim response");
}

// An unknown stream is one that was closed meanwhile, in these three.
void Http2Engine::Resume(int32_t stream) { nghttp2_session_resume_data(session_.get(), stream); }

void Http2Engine::Reset(int32_t stream, Http2Code code) {
  if (code == Http2Code::kProtocolError) told_ = stream;
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream, static_cast<uint32_t>(code));
}

void Http2Engine::Consume(int32_t stream, size_t bytes) {
  nghttp2_session_consume(session_.get(), stream, bytes);
}

void Http2Engine::Finish(Http2Code code) {
  nghttp2_session_terminate_session(session_.get(), static_cast<uint32_t>(code));
}

bool Http2Engine::may_open() const {
  return nghttp2_session_check_request_allowed(session_.get()) != 0 &&
         nghttp2_session_get_next_stream_id(session_.get()) <= INT32_MAX;
}

size_t Http2Engine::streams_max() const {
  size_t peers =
      nghttp2_session_get_remote_settings(session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  return std::min(peers, kHttp2StreamsMax);
}

void Http2Engine::ReportMalformed(int32_t stream, std::string_view why) {
  if (std::exchange(told_, stream) == stream) return;
  Spend(1);
  listener_.OnMalformed(stream, why);
}

void Http2Engine::Spend(double cost) {
  Clock::time_point now = Clock::now();
  Earn(std::chrono::duration<double>(now - patience_at_).count() * kHttp2PatiencePerSecond);
  patience_at_ = now;
  patience_ -= cost;
  if (patience_ >= 0 || !failure_.empty()) return;
  failure_ = "flood of control frames";
  Finish(Http2Code::kEnhanceYourCalm);
}

void Http2Engine::Earn(double credit) { patience_ = std::min(patience_ + credit, kHttp2Patience); }

}  // namespace gateway
