// SPDX-License-Identifier: Apache-2.0
#include "session/pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/wire.h"
#include "run/report_directory.h"
#include "session/answer.h"
#include "session/client.h"

namespace session {
namespace {

using std::chrono::seconds;

constexpr seconds kClientTime{2};  // The time to say what it wants.
constexpr seconds kRetry{10};      // After a sandbox could not be created.

// The signals that end a pool.
sigset_t EndSignals() {
  sigset_t ends;
  ::sigemptyset(&ends);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ends, signal);
  return ends;
}

// The pool's process.
class Pool {
 public:
  // EndSignals() are blocked by then; `mask` is the signal mask from before.
  Pool(CreateRequest create, Entry entry, Fd listener, Fd ready, int64_t size, sigset_t mask)
      : create_(std::move(create)),
        entry_(std::move(entry)),
        listener_(std::move(listener)),
        ready_(std::move(ready)),
        size_(static_cast<size_t>(size)),
        expires_(Deadline::After(seconds(create_.ttl_s))),
        mask_(mask) {}

  // Returns true once its creator was told that all are ready. It may have ended meanwhile: then
  // the pool has no user.
  bool Begin() {
    std::vector<int> inherited =
        TakeInherited({listener_.get(), ready_.get(), entry_.directory.get(), entry_.lock.get()});
    Status prepared = Prepare();
    CloseInherited(&inherited);
    // The end comes first: a person who is told of a failure may use the name again at once.
    if (!prepared.ok()) End();
    std::string told = prepared.ok() ? wire::Write(SandboxState{}) : wire::Write(prepared.error());
    bool heard = sys::WriteAll(ready_.get(), told).ok();
    ready_.Close();
    return heard && prepared.ok();
  }

  // Until its time has passed, or it is told to end.
  void Serve() {
    while (!deleted_ && !expires_.passed()) {
      std::vector<pollfd> sources = {{listener_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      for (const Member& member : warm_) sources.push_back({member.process.get(), POLLIN, 0});
      bool short_of = warm_.size() < size_ && retry_.passed();
      int wait = short_of ? 0 : Next().poll_ms();
      if (::poll(sources.data(), sources.size(), wait) < 0 && errno != EINTR) return;
      if (sources[1].revents != 0) return;
      DropEnded();
      if (sources[0].revents != 0) {
        Attend();
      } else if (short_of) {
        Refill();
      }
      Renew();
    }
  }

  void End() {
    for (const Member& member : warm_) Discard(member.facts);
    warm_.clear();
    Remove(entry_);
  }

 private:
  struct Member {
    Facts facts;
    Fd process;  // A pidfd of its keeper: readable once the keeper has ended.
    Deadline renews;
  };

  Status Prepare() {
    TRY(RedirectStreams(entry_));
    place_ = TRY(Place::Open());
    const sigset_t ends = EndSignals();
    signals_ = Fd(::signalfd(-1, &ends, SFD_CLOEXEC));
    if (!signals_.valid()) return Errno("signalfd");
    while (warm_.size() < size_) {
      TRY(Make());
      TRY(LookMeanwhile());
    }
    return Ok();
  }

  // Serves who asks while the pool is being filled. Fails if it is to end.
  Status LookMeanwhile() {
    pollfd sources[] = {{listener_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    (void)::poll(sources, std::size(sources), 0);
    if (sources[0].revents != 0) Attend();
    if (!deleted_ && sources[1].revents == 0 && !expires_.passed()) return Ok();
    return Error{Code::kTemporary, "the pool was ended before it was full"};
  }

  Deadline Next() const {
    Deadline next = expires_;
    for (const Member& member : warm_) next = std::min(next, member.renews);
    return warm_.size() < size_ ? std::min(next, retry_) : next;
  }

  // Finds the next name that is free, and makes its report directory. One that is there already may
  // be of another pool, or of a sandbox that was taken from an earlier one.
  Status Claim(CreateRequest* create) {
    if (!reports_.valid())
      reports_ = TRY(run::OpenReportPlace(create_.run.report_dir, create_.run.workdir));
    while (true) {
      const std::string number = std::to_string(++made_);
      create->name = create_.name + "-" + number;
      create->run.report_dir = create_.run.report_dir + "/" + number;
      if (place_->Find(create->name).ok()) continue;
      if (::mkdirat(reports_.get(), number.c_str(), 0755) == 0) return Ok();
      if (errno != EEXIST) return Errno("creating " + create->run.report_dir);
    }
  }

  Status Make() {
    CreateRequest create = create_;
    TRY(Claim(&create));
    create.pool = create_.name;
    // The keeper must not inherit the pool's lock: the pool has ended once that lock is free.
    auto leave = [this] {
      ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
      listener_.Close();
      ready_.Close();
      signals_.Close();
      reports_.Close();
      entry_.lock.Close();
      warm_.clear();
    };
    Result<Created> made = Create(create, leave);
    if (!made.ok()) {
      RemoveReportOf(create.run.report_dir);
      return std::move(made).error();
    }
    Created created = std::move(made).value();
    auto keeper = static_cast<pid_t>(created.facts.pid);
    Fd process(static_cast<int>(::syscall(SYS_pidfd_open, keeper, 0)));
    if (!process.valid()) {
      Error error = Errno("pidfd_open");
      Discard(created.facts);
      return error;
    }
    constexpr int64_t kHalf = 2;
    Deadline renews = Deadline::After(seconds(std::max<int64_t>(create_.ttl_s / kHalf, 1)));
    warm_.push_back({created.facts, std::move(process), renews});
    return Ok();
  }

  void Refill() {
    Status made = Make();
    if (made.ok()) return;
    logging::Warn("a sandbox of the pool could not be created", {{"error", made.error().what}});
    retry_ = Deadline::After(kRetry);
  }

  void DropEnded() {
    std::erase_if(warm_, [](const Member& member) {
      pollfd source{member.process.get(), POLLIN, 0};
      return ::poll(&source, 1, 0) == 1;
    });
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  void Renew() {
    while (!warm_.empty() && warm_.front().renews.passed()) {
      Discard(warm_.front().facts);
      warm_.pop_front();
    }
  }

  // Serves one request of one client. A message that is not understood closes the connection.
  void Attend() {
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid() || !SamePeer(client.get())) return;
    Result<sys::Message> message =
        sys::ReceiveMessage(client.get(), kMessageBytesMax, Deadline::After(kClientTime));
    if (!message.ok()) return;
    MessageKind kind{};
    DeleteRequest end;
    if (wire::Read(message.value().bytes, kind) && kind == MessageKind::kTake) {
      Give(client.get());
    } else if (wire::Read(message.value().bytes, kind, end) && kind == MessageKind::kDelete) {
      deleted_ = true;
    }
  }

  // Gives a sandbox to a client, or deletes it if that client has gone meanwhile.
  void Give(int client) {
    auto take = [&]() -> Result<Member> {
      if (warm_.empty()) TRY(Make());
      Member member = std::move(warm_.front());
      warm_.pop_front();
      member.facts.pool.clear();
      TRY(place_->Update(member.facts));
      return member;
    };
    Result<Member> member = take();
    if (!member.ok()) {
      (void)sys::SendMessage(client, wire::Write(MessageKind::kFault, member.error()));
      return;
    }
    const Facts& given = member.value().facts;
    if (!sys::SendMessage(client, wire::Write(MessageKind::kDone, given.name)).ok()) {
      Discard(given);
    }
  }

  // Ends one that was not used, and removes its report, which has nothing to tell.
  void Discard(const Facts& unused) {
    if (Delete(*place_, unused.name, {}).ok()) RemoveReportOf(unused.report_dir);
  }

  void RemoveReportOf(const std::string& report_dir) const {
    run::RemoveReport(reports_.get(), report_dir.substr(report_dir.rfind('/') + 1));
  }

  CreateRequest create_;
  Entry entry_;
  Fd listener_;
  Fd ready_;  // Leads to its creator.
  Fd signals_;
  Fd reports_;  // In which those of its sandboxes are; from the first of them on.
  size_t size_;
  Deadline expires_;
  std::optional<Place> place_;
  sigset_t mask_;  // The signal mask from before, which its sandboxes get back.
  std::deque<Member> warm_;
  int64_t made_ = 0;
  Deadline retry_ = Deadline::After(seconds{0});
  bool deleted_ = false;
};

[[noreturn]] void Keep(Pool pool) {
  (void)::setsid();
  (void)::prctl(PR_SET_DUMPABLE, 0);  // As each keeper of a sandbox does.
  if (pool.Begin()) pool.Serve();
  pool.End();
  ::_exit(0);
}

}  // namespace

Result<Facts> CreatePool(const CreateRequest& wanted, int64_t size) {
  ENSURE(size >= 1 && size <= kPoolMax);
  CreateRequest create = wanted;
  Place place = TRY(Place::Open());
  Entry entry = TRY(place.Make(create.name));
  create.name = entry.name;
  Facts facts;
  auto begin = [&]() -> Result<Fd> {
    TRY(CheckName(create.name + "-" + std::to_string(INT64_MAX)));
    TRY(MakeAbsolute(&create.run));
    if ((create.run.report_dir + "/").starts_with(create.run.workdir + "/")) {
      return Error{Code::kUsage,
                   "the sandboxes of a pool write their reports outside of the checkout",
                   "--report-dir ~/agentic-ci-reports"};
    }
    TRY(run::OpenReportPlace(create.run.report_dir, create.run.workdir));
    facts = FactsOf(create, create.name, 0);
    facts.backend = kPoolBackend;
    TRY(WriteFacts(entry, facts));
    return Listen(entry);
  };
  Result<Fd> listener = begin();
  if (!listener.ok()) {
    Remove(entry);
    return std::move(listener).error();
  }
  auto [ready_read, ready_write] = TRY(sys::Pipe());
  // A signal that comes before the pool can read it must not end it without a word.
  const sigset_t ends = EndSignals();
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, &ends, &mask);
  pid_t keeper = ::fork();
  if (keeper != 0) ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (keeper < 0) return Errno("fork");
  if (keeper == 0) {
    ready_read.Close();
    facts.pid = ::getpid();
    (void)WriteFacts(entry, facts);
    Keep(Pool(std::move(create), std::move(entry), std::move(listener).value(),
              std::move(ready_write), size, mask));
  }
  ready_write.Close();
  facts.pid = keeper;
  TRY(AwaitReady(ready_read));
  return facts;
}

Result<Facts> TakeFromPool(const Place& place, const std::string& pool) {
  Facts facts = TRY(place.Find(pool));
  if (facts.backend != kPoolBackend) {
    return Error{Code::kUsage, "'" + pool + "' is a sandbox, not a pool",
                 "agentic-ci sandbox create --pool 4 --name NAME"};
  }
  Fd connection = TRY(place.Connect(pool));
  TRY(Send(connection, wire::Write(MessageKind::kTake)));
  return place.Find(TRY(AwaitDone(connection)));
}

Status DeletePool(const Place& place, const std::string& pool) {
  Fd connection = TRY(place.Connect(pool));
  TRY(Send(connection, wire::Write(MessageKind::kDelete, DeleteRequest{})));
  return place.AwaitEnd(pool);
}

}  // namespace session
