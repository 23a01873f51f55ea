// SPDX-License-Identifier: Apache-2.0
#include "gateway/event_loop.h"

#include <array>

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

Detached RunDetached(Task<Done> task) { co_await task; }

}  // namespace

Result<EventLoop> EventLoop::Open() {
  int raw = ::epoll_create1(EPOLL_CLOEXEC);
  if (raw < 0) return Errno("epoll_create1");
  return EventLoop(Fd(raw));
}

void EventLoop::Wait::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  if (!deadline_.never()) {
    timer_ = loop_->timers_.emplace(deadline_, this);
    timed_ = true;
  }
  if (signal_ != nullptr) {
    ENSURE(signal_->waiting_ == nullptr);
    signal_->waiting_ = this;
  }
  if (fd_ < 0) return;
  Watch& watch = loop_->watches_[fd_];
  Wait*& slot = events_ == EPOLLIN ? watch.reader : watch.writer;
  ENSURE(slot == nullptr);
  slot = this;
  loop_->Arm(fd_, watch);
}

// One shot: a descriptor nobody waits for cannot wake the loop.
void EventLoop::Arm(int fd, Watch& watch) {
  epoll_event event{};
  event.data.fd = fd;
  event.events = EPOLLONESHOT;
  if (watch.reader != nullptr) event.events |= EPOLLIN | EPOLLRDHUP;
  if (watch.writer != nullptr) event.events |= EPOLLOUT;
  int operation = watch.added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  ENSURE(::epoll_ctl(epoll_.get(), operation, fd, &event) == 0);
  watch.added = true;
}

void EventLoop::Forget(int fd) {
  auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  ENSURE(found->second.reader == nullptr && found->second.writer == nullptr);
  ENSURE(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0);
  watches_.erase(found);
}

void EventLoop::Finish(Wait* wait, bool ready) {
  if (wait->timed_) timers_.erase(wait->timer_);
  wait->ready_ = ready;
  // Through the queue: a coroutine resumed here could wait again, or close descriptors, in the
  // middle of our own walk through them.
  ready_.push_back(wait->waiting_);
}

void EventLoop::Dispatch(const epoll_event& event) {
  auto found = watches_.find(event.data.fd);
  if (found == watches_.end()) return;
  Watch& watch = found->second;
  uint32_t broken = event.events & (EPOLLERR | EPOLLHUP);
  if (watch.reader != nullptr && (event.events & (EPOLLIN | EPOLLRDHUP | broken)) != 0) {
    Finish(std::exchange(watch.reader, nullptr), true);
  }
  if (watch.writer != nullptr && (event.events & (EPOLLOUT | broken)) != 0) {
    Finish(std::exchange(watch.writer, nullptr), true);
  }
  if (watch.reader != nullptr || watch.writer != nullptr) Arm(event.data.fd, watch);
}

void EventLoop::ExpireTimers() {
  while (!timers_.empty() && timers_.begin()->first.passed()) {
    Wait* wait = timers_.begin()->second;
    if (wait->fd_ >= 0) {
      Watch& watch = watches_.at(wait->fd_);
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

void EventLoop::Spawn(Task<Done> task) { RunDetached(std::move(task)); }

void EventLoop::Run() {
  std::array<epoll_event, 64> events;
  stopped_ = false;
  while (!stopped_) {
    while (!ready_.empty() && !stopped_) {
      std::coroutine_handle<> next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
    if (stopped_) return;
    int timeout_ms = timers_.empty() ? -1 : timers_.begin()->first.poll_ms();
    int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
    ENSURE(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) Dispatch(events[static_cast<size_t>(i)]);
    ExpireTimers();
  }
}

}  // namespace gateway
