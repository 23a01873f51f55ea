// SPDX-License-Identifier: Apache-2.0
// The gateway's event loop: epoll, deadlines and coroutines, one thread.
//
// Our own instead of Boost.Asio (Debian's 1.74): only readiness with a deadline is needed. Asio
// reports errors by exceptions, and a file with one of its coroutines took 5.1 s to compile.
#pragma once

#include <sys/epoll.h>

#include <coroutine>
#include <deque>
#include <memory>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "gateway/async/limits.h"
#include "gateway/async/task.h"

namespace gateway {

class Signal;

class EventLoop {
 public:
  static Result<EventLoop> Open();

  EventLoop(EventLoop&&) = default;
  EventLoop& operator=(EventLoop&&) = delete;

  // One suspended wait. Lives in the coroutine frame of its waiter.
  class Wait {
   public:
    bool await_ready() const noexcept { return ready_; }
    void await_suspend(std::coroutine_handle<> waiting);
    // Returns true if the descriptor is ready (or hung up, or in error: the next call on it tells),
    // false if it is too late.
    bool await_resume() const noexcept { return ready_; }

   private:
    friend class EventLoop;
    friend class Signal;
    Wait(EventLoop* loop, int fd, uint32_t events, Deadline deadline)
        : loop_(loop), fd_(fd), events_(events), deadline_(deadline) {}

    EventLoop* loop_;
    int fd_;  // -1 if it waits only for the deadline, or a signal.
    uint32_t events_;
    Signal* signal_ = nullptr;
    Deadline deadline_;
    std::coroutine_handle<> waiting_;
    size_t timer_ = kNoTimer;  // Index into timers_.
    bool ready_ = false;
  };

  // Waits for a descriptor; at most one wait per descriptor and direction.
  Wait Readable(int fd, Deadline deadline) { return Wait(this, fd, EPOLLIN, deadline); }
  Wait Writable(int fd, Deadline deadline) { return Wait(this, fd, EPOLLOUT, deadline); }
  Wait Sleep(Deadline deadline) { return Wait(this, -1, 0, deadline); }

  // Must be called before a descriptor that was ever waited for is closed; it must not have a
  // waiter.
  void Forget(int fd);

  // Returns false only if it is certain that nothing has arrived on a descriptor since Readable
  // said so last and what was there was read: the kernel would have reported it by now.
  bool MayBeReadable(int fd) const;

  // A buffer of kStreamBufferBytes, and back: a few are kept, since every request wants some.
  std::unique_ptr<char[]> TakeBuffer();
  void GiveBuffer(std::unique_ptr<char[]> buffer);

  // Starts a coroutine that is not awaited.
  void Spawn(Task<void> task);
  // Called whenever everything that was ready has run, before the loop waits. One for the process.
  void BeforeWait(void (*call)(void*), void* argument);
  // Runs until Stop(). Coroutines that are still suspended then stay so.
  void Run();
  void Stop() { stopped_ = true; }

 private:
  friend class Signal;
  static constexpr size_t kNoTimer = SIZE_MAX;
  struct Watch {
    Wait* reader = nullptr;
    Wait* writer = nullptr;
    uint32_t armed = 0;  // The events that the kernel was asked to report.
    bool added = false;
  };

  explicit EventLoop(Fd epoll) : epoll_(std::move(epoll)) {}
  void Arm(int fd, Watch& watch, uint32_t events);
  void Finish(Wait* wait, bool ready);
  void Dispatch(const epoll_event& event);

  // Keep the waits with a deadline as a binary heap: the next one in front.
  void AddTimer(Wait* wait);
  void RemoveTimer(Wait* wait);
  void MoveUp(size_t at);
  void MoveDown(size_t at);
  void Place(size_t at, Wait* wait);
  void ExpireTimers();

  Fd epoll_;
  std::vector<Watch> watches_;  // By descriptor.
  std::vector<Wait*> timers_;
  std::deque<std::coroutine_handle<>> ready_;
  std::vector<std::unique_ptr<char[]>> buffers_;
  void (*before_wait_)(void*) = nullptr;
  void* before_wait_argument_ = nullptr;
  bool stopped_ = false;
};

// A flag that one coroutine sets and at most one other waits for. Cleared, it can be set again.
class Signal {
 public:
  explicit Signal(EventLoop& loop) : loop_(loop) {}
  ~Signal() { ENSURE(waiting_ == nullptr); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void Set();
  void Clear() { set_ = false; }
  bool is_set() const { return set_; }
  // Waits for the flag: co_await gives true once the flag is set, false if the deadline passed
  // first.
  EventLoop::Wait Within(Deadline deadline);

 private:
  friend class EventLoop;
  EventLoop& loop_;
  EventLoop::Wait* waiting_ = nullptr;
  bool set_ = false;
};

}  // namespace gateway
