// SPDX-License-Identifier: Apache-2.0
#include "session/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/sys.h"
#include "base/wire.h"
#include "session/answer.h"

namespace session {
namespace {

constexpr size_t kTurnBytes = 16384;
constexpr size_t kUnreadKeysMax = 65536;
constexpr size_t kFarewellBytesMax = size_t{1} << 20;
// A shell whose terminal has no reader any more has ended, or hides.
constexpr std::chrono::milliseconds kHungUpGrace{3000};
constexpr int kSignals[] = {SIGWINCH, SIGCONT, SIGTERM, SIGHUP, SIGINT, SIGQUIT};

winsize SizeOfTerminal() {
  winsize size{};
  (void)::ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
  return size;
}

// Catches signals for good: this process has nothing else to do.
Result<Fd> CatchSignals() {
  sigset_t caught;
  ::sigemptyset(&caught);
  for (int signal : kSignals) ::sigaddset(&caught, signal);
  if (::sigprocmask(SIG_BLOCK, &caught, nullptr) != 0) return Errno("sigprocmask");
  Fd signals(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return Errno("signalfd");
  return signals;
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Result<RawTerminal> RawTerminal::Open() {
  termios before{};
  if (::isatty(STDOUT_FILENO) != 1 || ::tcgetattr(STDIN_FILENO, &before) != 0) {
    return Error{Code::kUsage, "standard input and standard output are not a terminal",
                 "agentic-ci sandbox exec NAME -- PROGRAM"};
  }
  return RawTerminal(before);
}

RawTerminal::RawTerminal(RawTerminal&& other) noexcept
    : before_(std::exchange(other.before_, std::nullopt)) {}

RawTerminal::~RawTerminal() {
  if (before_) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

void RawTerminal::WriteLines(bool lines) const {
  termios raw = *before_;
  ::cfmakeraw(&raw);
  if (lines) raw.c_oflag = before_->c_oflag;
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

Result<TerminalShell> TerminalShell::Start(const Place& place, const std::string& name,
                                           const std::string& term) {
  winsize size = SizeOfTerminal();
  Fd connection = TRY(place.Connect(name));
  auto [ours, theirs] = TRY(sys::SocketPair());
  TerminalRequest request{term, size.ws_col, size.ws_row};
  std::string message = wire::Write(MessageKind::kTerminal, request);
  TRY(Send(connection, message, theirs.get()));
  theirs.Close();
  TRY(AwaitDone(connection));
  constexpr size_t kNoteBytesMax = 64;
  sys::Message master = TRY(sys::ReceiveMessage(ours.get(), kNoteBytesMax, Deadline::After({})));
  if (!master.fd.valid()) return Malformed();
  return TerminalShell(std::move(connection), std::move(master.fd));
}

Result<TerminalShell::End> TerminalShell::Carry(
    TypedLines& typed, const RawTerminal& terminal,
    const std::function<bool(const std::string& line)>& command) {
  typed_ = &typed;
  terminal_ = &terminal;
  command_ = &command;
  signals_ = TRY(CatchSignals());
  terminal.WriteLines(false);
  winsize size = SizeOfTerminal();  // It may have changed meanwhile.
  (void)::ioctl(master_.get(), TIOCSWINSZ, &size);
  for (;;) {
    std::optional<End> end = TRY(Turn());
    if (end) return *std::move(end);
  }
}

Result<std::optional<TerminalShell::End>> TerminalShell::Turn() {
  auto wanted = static_cast<short>(POLLIN | (for_shell_.empty() ? 0 : POLLOUT));
  pollfd sources[] = {{signals_.get(), POLLIN, 0},
                      {connection_.get(), POLLIN, 0},
                      {hung_up_ ? -1 : master_.get(), wanted, 0},
                      {for_shell_.size() < kUnreadKeysMax ? STDIN_FILENO : -1, POLLIN, 0}};
  int ready = ::poll(sources, std::size(sources), hung_up_ ? kHungUpGrace.count() : -1);
  if (ready < 0 && errno != EINTR) return Errno("poll");
  if (ready < 0) return std::optional<End>();
  if (ready == 0) return Error{Code::kIo, "the shell has left its terminal"};
  if (sources[2].revents != 0) TRY(TakeOutput());
  if ((sources[2].revents & POLLOUT) != 0) TRY(GiveKeys());
  if (sources[0].revents != 0) {
    std::optional<End> end = TRY(TakeSignal());
    if (end) return end;
  }
  if (sources[1].revents != 0) {
    std::optional<End> end = TRY(TakeMessage());
    if (end) return end;
  }
  return sources[3].revents != 0 ? TakeKeys() : std::optional<End>();
}

Result<std::optional<TerminalShell::End>> TerminalShell::TakeKeys() {
  char keys[kTurnBytes];
  ssize_t n = ::read(STDIN_FILENO, keys, sizeof keys);
  if (n < 0 && WouldBlock()) return std::optional<End>();
  if (n <= 0) return std::optional<End>(End{{}, SIGHUP, false});  // The terminal is gone.
  std::string_view rest(keys, static_cast<size_t>(n));
  while (!rest.empty()) {
    TypedLines::Typed typed = typed_->Take(rest, Reader());
    rest = typed.rest;
    for_shell_ += typed.for_shell;
    TRY(sys::WriteAll(STDOUT_FILENO, typed.for_screen));
    if (!typed.command) continue;
    terminal_->WriteLines(true);
    bool replaced = (*command_)(*typed.command);
    terminal_->WriteLines(false);
    if (replaced) return std::optional<End>(End{{}, 0, true});
    for_shell_ += '\r';  // The shell shows its prompt again.
  }
  TRY(GiveKeys());
  return std::optional<End>();
}

// Returns the reader as the kernel reports it: the leader of the terminal's session is the shell,
// and waits for a line if its own group has the terminal. A program that makes itself look like
// that gains nothing: `%diff` is still typed here.
KeyReader TerminalShell::Reader() const {
  pid_t shell = -1;
  pid_t group = -1;
  if (!for_shell_.empty()) return KeyReader::kLines;  // Not even these were read.
  bool known = ::ioctl(master_.get(), TIOCGSID, &shell) == 0 &&
               ::ioctl(master_.get(), TIOCGPGRP, &group) == 0;
  if (known && shell > 0 && shell == group) return KeyReader::kShell;
  termios modes{};
  bool raw = ::tcgetattr(master_.get(), &modes) == 0 && (modes.c_lflag & ICANON) == 0;
  return raw ? KeyReader::kProgram : KeyReader::kLines;
}

Status TerminalShell::GiveKeys() {
  while (!for_shell_.empty()) {
    ssize_t n = ::write(master_.get(), for_shell_.data(), for_shell_.size());
    if (n <= 0) {
      if (n == 0 || WouldBlock()) return Ok();
      for_shell_.clear();  // EIO: no process would read them.
      return Ok();
    }
    for_shell_.erase(0, static_cast<size_t>(n));
  }
  return Ok();
}

Status TerminalShell::TakeOutput() {
  char bytes[kTurnBytes];
  ssize_t n = ::read(master_.get(), bytes, sizeof bytes);
  if (n > 0) return sys::WriteAll(STDOUT_FILENO, std::string_view(bytes, static_cast<size_t>(n)));
  hung_up_ = n == 0 || !WouldBlock();
  return Ok();
}

Result<std::optional<TerminalShell::End>> TerminalShell::TakeSignal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    auto signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGWINCH && signal != SIGCONT) return std::optional<End>(End{{}, signal, false});
    if (signal == SIGCONT) terminal_->WriteLines(false);
    winsize size = SizeOfTerminal();
    (void)::ioctl(master_.get(), TIOCSWINSZ, &size);
  }
  return std::optional<End>();
}

Result<std::optional<TerminalShell::End>> TerminalShell::TakeMessage() {
  std::string message = TRY(Receive(connection_, Deadline::Never()));
  MessageKind kind{};
  CommandResult result;
  if (!wire::Read(message, kind, result) || kind != MessageKind::kResult) return Malformed();
  // Takes what was written last. Background jobs may go on writing.
  for (size_t reads = 0; !hung_up_ && reads < kFarewellBytesMax / kTurnBytes; ++reads) {
    pollfd more{master_.get(), POLLIN, 0};
    if (::poll(&more, 1, 0) <= 0) break;
    TRY(TakeOutput());
  }
  return std::optional<End>(End{std::move(result), 0, false});
}

}  // namespace session
