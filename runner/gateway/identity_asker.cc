// SPDX-License-Identifier: Apache-2.0
#include "gateway/identity_asker.h"

#include <sys/socket.h>

#include "gateway/limits.h"

namespace gateway {

IdentityAsker::IdentityAsker(EventLoop& loop, Fd socket)
    : loop_(loop), socket_(std::move(socket)) {}

IdentityAsker::~IdentityAsker() { loop_.Forget(socket_.get()); }

Task<caller::Owner> IdentityAsker::Ask(caller::Endpoint local, caller::Endpoint remote) {
  if (open_ >= kQuestionsAtOnceMax) {
    Signal turn(loop_);
    waiting_.push_back(&turn);
    co_await turn.Within(Deadline::Never());
  } else {
    ++open_;
  }
  caller::Owner answer = co_await AskNow(local, remote);
  if (waiting_.empty()) {
    --open_;
  } else {
    waiting_.front()->Set();
    waiting_.pop_front();
  }
  co_return answer;
}

Task<caller::Owner> IdentityAsker::AskNow(caller::Endpoint local, caller::Endpoint remote) {
  Pending pending(loop_);
  pending.answer.refusal = "the owner of the connection could not be determined";
  uint64_t number = next_number_++;
  std::string question = caller::RenderQuestion(caller::Question{number, local, remote});
  // The socket's buffer holds more questions than may be open: full means broken.
  bool sent = !broken_ && ::send(socket_.get(), question.data(), question.size(),
                                 MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  if (!sent) co_return std::move(pending.answer);
  pending_.emplace(number, &pending);
  if (!reading_) {
    reading_ = true;
    loop_.Spawn(ReadAnswers());
  }
  co_await pending.answered.Within(Deadline::After(kIdentityTimeout));
  pending_.erase(number);
  co_return std::move(pending.answer);
}

Task<void> IdentityAsker::ReadAnswers() {
  // Kept: most questions come when none is open.
  if (!buffer_) buffer_.reset(new char[caller::kOwnerBytesMax + 1]);
  while (!pending_.empty() && !broken_) {
    bool ready = co_await loop_.Readable(socket_.get(), Deadline::After(kIdentityTimeout));
    if (!ready) continue;
    ssize_t n = ::recv(socket_.get(), buffer_.get(), caller::kOwnerBytesMax + 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    std::optional<caller::Owner> answer;
    if (n > 0) answer = caller::ParseOwner({buffer_.get(), static_cast<size_t>(n)});
    broken_ = !answer.has_value();
    if (broken_) break;
    auto found = pending_.find(answer->number);
    if (found == pending_.end()) continue;  // It came too late.
    found->second->answer = std::move(*answer);
    found->second->answered.Set();
    pending_.erase(found);
  }
  if (broken_) {
    for (auto& [number, pending] : pending_) pending->answered.Set();
  }
  reading_ = false;
}

}  // namespace gateway
