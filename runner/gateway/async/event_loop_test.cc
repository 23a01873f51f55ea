// SPDX-License-Identifier: Apache-2.0
#include "gateway/async/event_loop.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/sys.h"
#include "gateway/async/test_line.h"

namespace gateway {
namespace {

using std::chrono::milliseconds;

struct Pair {
  Pair() {
    auto [one, other] = sys::SocketPair().value();
    near = std::move(one);
    far = std::move(other);
  }
  Fd near, far;
};

Task<bool> AwaitReadable(EventLoop& loop, int fd, Deadline deadline) {
  bool ready = co_await loop.Readable(fd, deadline);
  co_return ready;
}

Task<bool> AwaitWritable(EventLoop& loop, int fd, Deadline deadline) {
  bool ready = co_await loop.Writable(fd, deadline);
  co_return ready;
}

Task<bool> AwaitSet(Signal& signal, Deadline deadline) {
  bool set = co_await signal.Within(deadline);
  co_return set;
}

Task<void> Note(Task<bool> task, std::vector<std::string>& notes, std::string name) {
  bool ready = co_await task;
  notes.push_back(name + (ready ? " ready" : " late"));
}

Task<void> SleepAndNote(EventLoop& loop, Deadline deadline, std::vector<int>& notes, int note) {
  co_await loop.Sleep(deadline);
  notes.push_back(note);
}

Task<void> SleepAndSet(EventLoop& loop, milliseconds span, Signal& signal) {
  co_await loop.Sleep(Deadline::After(span));
  signal.Set();
}

TEST_CASE("A wait that was too late leaves its descriptor to the next one") {
  EventLoop loop = EventLoop::Open().value();
  Pair pair;
  CHECK_FALSE(RunUntilDone(loop, AwaitReadable(loop, pair.near.get(), Soon())));
  REQUIRE(sys::WriteAll(pair.far.get(), "x").ok());
  CHECK(RunUntilDone(loop, AwaitReadable(loop, pair.near.get(), Late())));
  loop.Forget(pair.near.get());
}

TEST_CASE("A descriptor's number can be another one's after Forget") {
  EventLoop loop = EventLoop::Open().value();
  Pair first;
  const int number = first.near.get();
  CHECK_FALSE(RunUntilDone(loop, AwaitReadable(loop, number, Soon())));
  loop.Forget(number);
  first.near.Close();
  Pair second;
  REQUIRE(second.near.get() == number);
  REQUIRE(sys::WriteAll(second.far.get(), "x").ok());
  CHECK(RunUntilDone(loop, AwaitReadable(loop, number, Late())));
  loop.Forget(number);
}

TEST_CASE("A reader and a writer wait side by side, and a peer that goes away wakes both") {
  EventLoop loop = EventLoop::Open().value();
  Pair pair;
  const int fd = pair.near.get();
  while (::send(fd, "full", 4, MSG_DONTWAIT) > 0) continue;
  std::vector<std::string> notes;
  loop.Spawn(Note(AwaitReadable(loop, fd, Late()), notes, "reader"));
  loop.Spawn(Note(AwaitWritable(loop, fd, Late()), notes, "writer"));
  CHECK(notes.empty());
  SECTION("what arrives wakes the reader alone") {
    REQUIRE(sys::WriteAll(pair.far.get(), "x").ok());
    RunUntilDone(loop, Pause(loop, milliseconds(5)));
    CHECK(notes == std::vector<std::string>{"reader ready"});
  }
  pair.far.Close();
  RunUntilDone(loop, Pause(loop, milliseconds(5)));
  CHECK(notes == std::vector<std::string>{"reader ready", "writer ready"});
  loop.Forget(fd);
}

TEST_CASE("Deadlines pass in their order, also around one that is taken back") {
  EventLoop loop = EventLoop::Open().value();
  Signal signal(loop);
  std::vector<int> notes;
  std::vector<std::string> woken;
  std::vector<Deadline> deadlines;  // Made in their order, which no pause of this process changes.
  for (int i = 0; i < 7; ++i) deadlines.push_back(Deadline::After(milliseconds(5 * i)));
  for (int i : {5, 0, 4, 1, 3}) loop.Spawn(SleepAndNote(loop, deadlines[i], notes, i));
  loop.Spawn(Note(AwaitSet(signal, deadlines[2]), woken, "signal"));
  signal.Set();
  RunUntilDone(loop, SleepAndNote(loop, deadlines[6], notes, 6));
  CHECK(notes == std::vector<int>{0, 1, 3, 4, 5, 6});
  CHECK(woken == std::vector<std::string>{"signal ready"});
}

TEST_CASE("A signal wakes its waiter once it is set, or the deadline does") {
  EventLoop loop = EventLoop::Open().value();
  Signal signal(loop);
  CHECK_FALSE(RunUntilDone(loop, AwaitSet(signal, Soon())));
  CHECK_FALSE(signal.is_set());
  loop.Spawn(SleepAndSet(loop, milliseconds(1), signal));
  CHECK(RunUntilDone(loop, AwaitSet(signal, Late())));
  CHECK(RunUntilDone(loop, AwaitSet(signal, Soon())));  // It is set already.
  signal.Clear();
  CHECK_FALSE(RunUntilDone(loop, AwaitSet(signal, Soon())));
}

TEST_CASE("MayBeReadable is false only where the loop watches and nothing has come") {
  EventLoop loop = EventLoop::Open().value();
  Pair pair;
  const int fd = pair.near.get();
  CHECK(loop.MayBeReadable(fd));  // It was never asked for.
  CHECK_FALSE(RunUntilDone(loop, AwaitReadable(loop, fd, Soon())));
  CHECK_FALSE(loop.MayBeReadable(fd));
  pair.far.Close();
  RunUntilDone(loop, Pause(loop, milliseconds(1)));
  CHECK(loop.MayBeReadable(fd));
  loop.Forget(fd);
}

TEST_CASE("Before it waits, the loop calls, and has run everything that was ready") {
  EventLoop loop = EventLoop::Open().value();
  Signal one(loop), other(loop);
  std::vector<std::string> notes;
  loop.Spawn(Note(AwaitSet(one, Late()), notes, "one"));
  loop.Spawn(Note(AwaitSet(other, Late()), notes, "other"));
  one.Set();
  other.Set();
  struct Seen {
    EventLoop& loop;
    std::vector<std::string>& notes;
    size_t count = 0;
  } seen{loop, notes};
  loop.BeforeWait(
      [](void* argument) {
        Seen& here = *static_cast<Seen*>(argument);
        here.count = here.notes.size();
        here.loop.Stop();
      },
      &seen);
  CHECK(notes.empty());  // Set resumes no waiter by itself.
  loop.Run();
  CHECK(seen.count == 2);
}

}  // namespace
}  // namespace gateway
