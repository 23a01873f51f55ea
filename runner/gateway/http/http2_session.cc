// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http2_session.h"

#include <algorithm>

#include "gateway/async/limits.h"
#include "gateway/http/limits.h"

namespace gateway {

Http2Session::Http2Session(EventLoop& loop, Stream& stream, Acceptor* acceptor)
    : loop_(loop),
      stream_(stream),
      acceptor_(acceptor),
      engine_(acceptor != nullptr ? Http2Engine::Role::kServer : Http2Engine::Role::kClient, *this),
      idle_deadline_(Deadline::After(kKeepAliveTimeout)),
      work_(loop),
      released_(loop),
      writer_done_(loop) {}

Http2Session::~Http2Session() { ENSURE(streams_.empty()); }

Http2Stream* Http2Session::Find(int32_t id) {
  auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

Http2Stream& Http2Session::Add(int32_t id) {
  std::unique_ptr<Http2Stream>& slot = streams_[id];
  slot.reset(new Http2Stream(*this, id));
  ++opened_count_;
  return *slot;
}

void Http2Session::OnHead(int32_t id, codec::HttpFields fields, bool end) {
  Http2Stream* stream = Find(id);
  if (acceptor_ == nullptr) {
    if (stream == nullptr) return;
    bool flood = stream->heads_.size() >= kInterimAnswersMax;
    if (flood) return engine_.Reset(id, Http2Code::kEnhanceYourCalm);
    stream->heads_.push_back({std::move(fields), end});
    stream->answered_ = true;
    stream->ended_ = end;
    return stream->arrival_.Set();
  }
  // Those that the client has reset and that are still being given up count too.
  bool full = closing_ || streams_.size() >= kHttp2StreamsMax;
  if (full) return engine_.Reset(id, Http2Code::kRefusedStream);
  Http2Stream& opened = Add(id);
  opened.heads_.push_back({std::move(fields), end});
  opened.ended_ = end;
  opened_.push_back(id);
}

bool Http2Session::OnData(int32_t id, std::string_view bytes) {
  Http2Stream* stream = Find(id);
  if (stream == nullptr || stream->cancelled_) return false;
  stream->arrived_.append(bytes);
  stream->arrival_.Set();
  return true;
}

void Http2Session::OnEnd(int32_t id, codec::HttpFields trailers) {
  Http2Stream* stream = Find(id);
  if (stream == nullptr) return;
  stream->trailers_ = std::move(trailers);
  stream->ended_ = true;
  stream->arrival_.Set();
}

void Http2Session::OnClose(int32_t id, Http2Code code) {
  Http2Stream* stream = Find(id);
  if (stream == nullptr) return;
  stream->closed_ = true;
  stream->refused_ = code == Http2Code::kRefusedStream;
  bool orderly = stream->ended_ && stream->finished_;
  if (!orderly) stream->Break({Code::kIo, "the stream was reset"});
}

void Http2Session::OnMalformed(int32_t id, std::string_view why) {
  Http2Stream* stream = Find(id);
  if (stream != nullptr) return stream->Break({Code::kInvalid, std::string(why)});
  if (acceptor_ != nullptr) acceptor_->OnMalformed(why);
}

Http2Engine::Taken Http2Session::OnTake(int32_t id, char* out, size_t size) {
  Http2Engine::Taken taken;
  Http2Stream* stream = Find(id);
  if (stream == nullptr) return taken;
  taken.size = stream->sending_.copy(out, size);
  stream->sending_.remove_prefix(taken.size);
  if (!stream->sending_.empty()) return taken;
  taken.end = stream->finishing_;
  if (taken.end) {
    stream->finished_ = true;
    taken.trailers = std::move(stream->last_fields_);
  }
  stream->departure_.Set();
  return taken;
}

Task<void> Http2Session::Run() {
  loop_.Spawn(WriteAll());
  co_await ReadAll();
  over_ = true;
  std::string why = engine_.failure().empty() ? why_ : engine_.failure();
  for (const auto& [id, stream] : streams_) stream->Break({Code::kIo, why});
  if (acceptor_ != nullptr && !engine_.failure().empty()) {
    acceptor_->OnMalformed("HTTP/2: " + engine_.failure());
  }
  work_.Set();
  bool left = co_await writer_done_.Within(Deadline::After(kHttp2FarewellTimeout));
  if (!left) stream_.Abort();
  co_await writer_done_.Within(Deadline::Never());
  // Unread bytes would make the kernel throw the farewell away.
  if (left && acceptor_ != nullptr) co_await stream_.Linger();
  while (!streams_.empty()) {
    released_.Clear();
    co_await released_.Within(Deadline::Never());
  }
}

bool Http2Session::Feed(std::string_view bytes) {
  Status fed = engine_.Feed(bytes);
  ServeOpened();
  work_.Set();
  return fed.ok() && engine_.wants_more();
}

Task<void> Http2Session::ReadAll() {
  std::string buffer(kStreamBufferBytes, '\0');
  bool more = Feed(stream_.buffered());
  stream_.Consume(stream_.buffered().size());
  while (more && !closing_) {
    Deadline deadline = Deadline::After(kHttp2CheckEvery);
    Result<size_t> read = co_await stream_.Read(buffer.data(), buffer.size(), deadline);
    if (!read.ok() && read.error().code == Code::kTemporary) {
      more = engine_.wants_more() && MayGoOn();
      if (!more) engine_.Finish(Http2Code::kNoError);
      continue;
    }
    why_ = read.ok() ? "connection closed" : read.error().what;
    if (!read.ok() || read.value() == 0) break;
    more = Feed(std::string_view(buffer).substr(0, read.value()));
  }
}

bool Http2Session::MayGoOn() const {
  if (streams_.empty() && idle_deadline_.passed()) return false;
  std::optional<std::chrono::steady_clock::time_point> since = engine_.head_since();
  return !since.has_value() || std::chrono::steady_clock::now() - *since < kHeadTimeout;
}

Task<void> Http2Session::WriteAll() {
  SecretString out;
  bool finished = false;
  for (;;) {
    while (out.size() < kHttp2WriteBytes) {
      Result<std::string_view> next = engine_.Next();
      if (!next.ok() || next.value().empty()) break;
      out.append(next.value());
    }
    if (!out.empty()) {
      Status written = co_await stream_.Write(out);
      Wipe(out);
      if (written.ok()) continue;
      stream_.Abort();  // Wakes the reader.
      break;
    }
    if (over_) break;
    // That was our farewell: the peer closes, or is closed at the next look at it.
    if (!engine_.wants_more() && !std::exchange(finished, true)) stream_.FinishWriting();
    work_.Clear();
    co_await work_.Within(Deadline::Never());
  }
  writer_done_.Set();
}

void Http2Session::ServeOpened() {
  for (int32_t id : std::exchange(opened_, {})) {
    Http2Stream* stream = Find(id);
    ENSURE(stream != nullptr);
    // Reset by what came right behind it: nothing was begun, so nothing is to be recorded.
    if (stream->closed_) {
      Release(*stream);
      continue;
    }
    Http2Stream::Head head = std::move(stream->heads_.front());
    stream->heads_.pop_front();
    loop_.Spawn(ServeStream(*stream, std::move(head)));
  }
}

Task<void> Http2Session::ServeStream(Http2Stream& stream, Http2Stream::Head head) {
  co_await acceptor_->Serve(stream, std::move(head));
  Release(stream);
}

void Http2Session::Close() {
  closing_ = true;
  engine_.Finish(Http2Code::kNoError);
  work_.Set();
  stream_.AbortReading();
}

Result<Http2Stream*> Http2Session::Open(const codec::HttpFields& fields, bool end) {
  if (!may_open()) return Error{Code::kIo, "the connection accepts no more requests"};
  int32_t id = TRY(engine_.SubmitRequest(fields, end));
  Http2Stream& stream = Add(id);
  stream.finished_ = end;
  work_.Set();
  return &stream;
}

bool Http2Session::may_open() const {
  return !over_ && !closing_ && engine_.may_open() && streams_.size() < engine_.streams_max();
}

void Http2Session::Release(Http2Stream& stream) {
  bool unfinished = !stream.finished_ || (acceptor_ == nullptr && !stream.ended_);
  if (unfinished) {
    stream.Reset(acceptor_ == nullptr ? Http2Code::kCancel : Http2Code::kInternalError);
  }
  stream.DropUnread();
  streams_.erase(stream.id_);
  if (!streams_.empty()) return;
  idle_deadline_ = Deadline::After(kKeepAliveTimeout);
  released_.Set();
}

}  // namespace gateway
