// SPDX-License-Identifier: Apache-2.0
#include "gateway/async/event_loop.h"

#include <array>

#include "gateway/async/limits.h"

namespace gateway {
namespace {

// Owns itself: runs at once and frees its frame at its end.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

Detached RunDetached(Task<void> task) { co_await task; }

}  // namespace

Result<EventLoop> EventLoop::Open() {
  int raw = ::epoll_create1(EPOLL_CLOEXEC);
  if (raw < 0) return Errno("epoll_create1");
  return EventLoop(Fd(raw));
}

void EventLoop::Wait::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  if (!deadline_.never()) loop_->AddTimer(this);
  if (signal_ != nullptr) {
    ENSURE(signal_->waiting_ == nullptr);
    signal_->waiting_ = this;
  }
  if (fd_ < 0) return;
  size_t index = static_cast<size_t>(fd_);
  if (index >= loop_->watches_.size()) loop_->watches_.resize(index + 64);
  Watch& watch = loop_->watches_[index];
  Wait*& slot = events_ == EPOLLIN ? watch.reader : watch.writer;
  ENSURE(slot == nullptr);
  slot = this;
  if ((watch.armed & events_) == 0) loop_->Arm(fd_, watch, watch.armed | events_);
}

// Level-triggered. A descriptor without a waiter is removed only when it becomes ready: a
// connection that carries request after request asks the kernel once.
void EventLoop::Arm(int fd, Watch& watch, uint32_t events) {
  epoll_event event{};
  event.data.fd = fd;
  event.events = events;
  if ((events & EPOLLIN) != 0) event.events |= EPOLLRDHUP;
  // With nothing asked for, an error or a hang-up would still be reported: once is enough.
  if (events == 0) event.events = EPOLLONESHOT;
  int operation = watch.added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  ENSURE(::epoll_ctl(epoll_.get(), operation, fd, &event) == 0);
  watch.added = true;
  watch.armed = events;
}

void EventLoop::Forget(int fd) {
  size_t index = static_cast<size_t>(fd);
  if (fd < 0 || index >= watches_.size() || !watches_[index].added) return;
  ENSURE(watches_[index].reader == nullptr && watches_[index].writer == nullptr);
  ENSURE(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0);
  watches_[index] = Watch();
}

bool EventLoop::MayBeReadable(int fd) const {
  size_t index = static_cast<size_t>(fd);
  return index >= watches_.size() || (watches_[index].armed & EPOLLIN) == 0;
}

void EventLoop::Finish(Wait* wait, bool ready) {
  if (wait->timer_ != kNoTimer) RemoveTimer(wait);
  wait->ready_ = ready;
  // Through the queue: a coroutine resumed here could wait again, or close descriptors, in the
  // middle of our own walk through them.
  ready_.push_back(wait->waiting_);
}

void EventLoop::Dispatch(const epoll_event& event) {
  Watch& watch = watches_[static_cast<size_t>(event.data.fd)];
  uint32_t broken = event.events & (EPOLLERR | EPOLLHUP);
  uint32_t unwanted = 0;
  if ((event.events & (EPOLLIN | EPOLLRDHUP | broken)) != 0) {
    if (watch.reader != nullptr) {
      Finish(std::exchange(watch.reader, nullptr), true);
    } else {
      unwanted |= EPOLLIN;
    }
  }
  if ((event.events & (EPOLLOUT | broken)) != 0) {
    if (watch.writer != nullptr) {
      Finish(std::exchange(watch.writer, nullptr), true);
    } else {
      unwanted |= EPOLLOUT;
    }
  }
  uint32_t wanted = watch.armed & ~unwanted;
  if (wanted != watch.armed) Arm(event.data.fd, watch, wanted);
}

void EventLoop::Place(size_t at, Wait* wait) {
  timers_[at] = wait;
  wait->timer_ = at;
}

void EventLoop::MoveUp(size_t at) {
  Wait* wait = timers_[at];
  while (at > 0) {
    size_t parent = (at - 1) / 2;
    if (!(wait->deadline_ < timers_[parent]->deadline_)) break;
    Place(at, timers_[parent]);
    at = parent;
  }
  Place(at, wait);
}

void EventLoop::MoveDown(size_t at) {
  Wait* wait = timers_[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= timers_.size()) break;
    bool other =
        child + 1 < timers_.size() && timers_[child + 1]->deadline_ < timers_[child]->deadline_;
    if (other) ++child;
    if (!(timers_[child]->deadline_ < wait->deadline_)) break;
    Place(at, timers_[child]);
    at = child;
  }
  Place(at, wait);
}

void EventLoop::AddTimer(Wait* wait) {
  timers_.push_back(wait);
  MoveUp(timers_.size() - 1);
}

void EventLoop::RemoveTimer(Wait* wait) {
  size_t at = std::exchange(wait->timer_, kNoTimer);
  Wait* last = timers_.back();
  timers_.pop_back();
  if (last == wait) return;
  Place(at, last);
  MoveUp(at);
  MoveDown(last->timer_);
}

void EventLoop::ExpireTimers() {
  if (timers_.empty()) return;
  Deadline::Clock::time_point now = Deadline::Clock::now();
  while (!timers_.empty() && timers_.front()->deadline_.at() <= now) {
    Wait* wait = timers_.front();
    if (wait->fd_ >= 0) {
      Watch& watch = watches_[static_cast<size_t>(wait->fd_)];
      (wait->events_ == EPOLLIN ? watch.reader : watch.writer) = nullptr;
    }
    if (wait->signal_ != nullptr) wait->signal_->waiting_ = nullptr;
    Finish(wait, false);
  }
}

void Signal::Set() {
  set_ = true;
  if (waiting_ != nullptr) loop_.Finish(std::exchange(waiting_, nullptr), true);
}

EventLoop::Wait Signal::Within(Deadline deadline) {
  EventLoop::Wait wait(&loop_, -1, 0, deadline);
  wait.signal_ = this;
  wait.ready_ = set_;
  return wait;
}

std::unique_ptr<char[]> EventLoop::TakeBuffer() {
  // Not cleared, unlike make_unique's.
  if (buffers_.empty()) return std::unique_ptr<char[]>(new char[kStreamBufferBytes]);
  std::unique_ptr<char[]> buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

void EventLoop::GiveBuffer(std::unique_ptr<char[]> buffer) {
  if (buffers_.size() < kSpareBuffersMax) buffers_.push_back(std::move(buffer));
}

void EventLoop::Spawn(Task<void> task) { RunDetached(std::move(task)); }

void EventLoop::BeforeWait(void (*call)(void*), void* argument) {
  before_wait_ = call;
  before_wait_argument_ = argument;
}

void EventLoop::Run() {
  std::array<epoll_event, 256> events;
  stopped_ = false;
  while (!stopped_) {
    while (!ready_.empty() && !stopped_) {
      std::coroutine_handle<> next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
    if (before_wait_ != nullptr) before_wait_(before_wait_argument_);
    if (stopped_) return;
    int timeout_ms = timers_.empty() ? -1 : timers_.front()->deadline_.poll_ms();
    int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
    ENSURE(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) Dispatch(events[static_cast<size_t>(i)]);
    ExpireTimers();
  }
}

}  // namespace gateway
