// SPDX-License-Identifier: Apache-2.0
#include "serve/event_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

#include "base/sys.h"
#include "serve/message.h"

namespace serve {
namespace {

constexpr std::chrono::milliseconds kInterval{100};
constexpr size_t kRecordBytes = 65536;
constexpr size_t kLineBytesMaxOfRecord = size_t{1} << 20;

}  // namespace

Result<std::unique_ptr<Task>> EventStream::Start(const session::Place& place, std::string id,
                                                 const codec::Json& params, Output& output) {
  const std::string name = params.StringAt("sandbox");
  const session::Facts facts = TRY(place.Find(name));
  std::unique_ptr<EventStream> stream(new EventStream(place, std::move(id), output, name));
  stream->file_ = TRY(sys::Open(facts.report_dir + "/events.ocsf.jsonl", O_RDONLY | O_NOFOLLOW));
  if (!params.BooleanAt("all")) (void)::lseek(stream->file_.get(), 0, SEEK_END);
  return std::unique_ptr<Task>(std::move(stream));
}

void EventStream::AddSources(std::vector<pollfd>* sources) const {
  sources->push_back({-1, 0, 0});
  sources->push_back({-1, 0, 0});
}

void EventStream::Serve(const pollfd*) {
  if (!next_.passed() || output().full()) return;
  if (SendMore()) return;
  next_ = Deadline::After(kInterval);
  if (!place_.Find(sandbox_).ok() && !SendMore()) Succeed(codec::Json::EmptyObject());
}

// Returns false once there is nothing more at present.
bool EventStream::SendMore() {
  std::string chunk(kRecordBytes, '\0');
  const ssize_t n = ::read(file_.get(), chunk.data(), chunk.size());
  if (n <= 0) return false;
  rest_.append(chunk, 0, static_cast<size_t>(n));
  for (size_t end = 0; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) {
    Result<codec::Json> record = codec::ParseJson(std::string_view(rest_).substr(0, end));
    if (!record.ok()) continue;
    output().Write(RenderNotification(
        "event", "\"request\":" + id() + ",\"event\":" + codec::RenderJsonLine(record.value())));
  }
  if (rest_.size() > kLineBytesMaxOfRecord) rest_.clear();
  return true;
}

}  // namespace serve
