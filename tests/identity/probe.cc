// SPDX-License-Identifier: Apache-2.0
// Ways to come by a connection to the proxy. Copies of it under several names are the programs that
// a policy does or does not name.
//
//   probe VERB LABEL PORT [ARGUMENT]    prints LABEL=STATUS, the proxy's answer to CONNECT
//   probe under-listener COMMAND...     runs COMMAND where seccomp has a notification listener
//   probe time ROUNDS PROCESSES FILES   prints what a new connection costs beside so many others
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr char kProxy[] = "10.200.0.1";
constexpr uint16_t kProxyPort = 3128;

struct Call {
  std::string verb;
  std::string label;
  std::string port;
  std::string argument;
};

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

sockaddr_in ProxyAddress() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kProxyPort);
  ::inet_pton(AF_INET, kProxy, &address.sin_addr);
  return address;
}

int NewSocket() {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);  // Open after execve.
  if (socket < 0) Fail("socket");
  return socket;
}

void Connect(int socket) {
  sockaddr_in address = ProxyAddress();
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    Fail("connect");
  }
}

int Connected() {
  int socket = NewSocket();
  Connect(socket);
  return socket;
}

std::string StatusOf(int socket) {
  std::string answer;
  char chunk[512];
  while (answer.size() < 12) {
    ssize_t n = ::recv(socket, chunk, sizeof chunk, 0);
    if (n <= 0) return "closed";
    answer.append(chunk, static_cast<size_t>(n));
  }
  return answer.substr(9, 3);
}

void SendRequest(int socket, const std::string& port) {
  std::string host = "host.openshell.internal:" + port;
  std::string request = "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) < 0) Fail("send");
}

void Print(const Call& call, const std::string& value) {
  std::printf("%s=%s\n", call.label.c_str(), value.c_str());
  std::fflush(stdout);
}

void Ask(int socket, const Call& call) {
  SendRequest(socket, call.port);
  Print(call, StatusOf(socket));
}

[[noreturn]] void Execute(const std::string& program, const char* verb, const Call& call, int fd) {
  std::string number = std::to_string(fd);
  ::execl(program.c_str(), program.c_str(), verb, call.label.c_str(), call.port.c_str(),
          number.c_str(), nullptr);
  Fail(program.c_str());
}

// Runs `program` in a child and waits for it.
void Spawn(const std::string& program, const char* verb, const Call& call, int fd) {
  pid_t child = ::fork();
  if (child == 0) Execute(program, verb, call, fd);
  ::waitpid(child, nullptr, 0);
}

// A socket made here, connected by a child that executes `program`. `here` says what becomes of
// this process's own descriptor of it before that.
enum class Here { kKept, kClosed };
void Share(const Call& call, const std::string& program, Here here) {
  int socket = NewSocket();
  int gate[2];
  if (::pipe(gate) != 0) Fail("pipe");
  pid_t child = ::fork();
  if (child == 0) {
    char byte;
    ::close(gate[1]);
    (void)!::read(gate[0], &byte, 1);
    if (program.empty()) {
      Connect(socket);
      Ask(socket, call);
      std::_Exit(0);
    }
    Execute(program, "connect", call, socket);
  }
  if (here == Here::kClosed) ::close(socket);
  ::close(gate[1]);
  ::waitpid(child, nullptr, 0);
}

void Pass(const Call& call) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) Fail("socketpair");
  int socket = Connected();
  pid_t child = ::fork();
  if (child == 0) {
    ::close(socket);
    Execute(call.argument, "receive", call, pair[1]);
  }
  char byte = 'x';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof socket)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  *header = {CMSG_LEN(sizeof socket), SOL_SOCKET, SCM_RIGHTS};
  std::memcpy(CMSG_DATA(header), &socket, sizeof socket);
  if (::sendmsg(pair[0], &message, 0) != 1) Fail("sendmsg");
  ::close(socket);
  ::waitpid(child, nullptr, 0);
}

int Receive(int from) {
  char byte;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(from, &message, 0) != 1) Fail("recvmsg");
  int socket;
  std::memcpy(&socket, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof socket);
  return socket;
}

// A grandchild that belongs to pid 1, and executes `program` only then.
void Orphan(const Call& call) {
  pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    if (::fork() != 0) std::_Exit(0);
    while (::getppid() != 1) ::usleep(1000);
    Execute(call.argument, "ask", call, -1);
  }
  ::waitpid(child, nullptr, 0);  // The reader of our output waits for the orphan.
}

void* AskInThread(void* call) {
  ::usleep(50'000);  // The first thread is gone by then.
  Ask(Connected(), *static_cast<Call*>(call));
  std::_Exit(0);
}

void FromThread(Call& call) {
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, AskInThread, &call) != 0) Fail("pthread_create");
  ::pthread_exit(nullptr);
}

void Unlinked(const Call& call) {
  char path[4096] = {};
  if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0 || ::unlink(path) != 0) {
    Fail("unlink");
  }
  Ask(Connected(), call);
}

void Mapped(const Call& call) {
  int socket = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(kProxyPort);
  ::inet_pton(AF_INET6, (std::string("::ffff:") + kProxy).c_str(), &address.sin6_addr);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    Fail("connect");
  }
  Ask(socket, call);
}

void FastOpen(const Call& call) {
  sockaddr_in address = ProxyAddress();
  bool sent = ::sendto(NewSocket(), "x", 1, MSG_FASTOPEN, reinterpret_cast<sockaddr*>(&address),
                       sizeof address) >= 0;
  Print(call, sent ? "sent" : strerrorname_np(errno));
}

// Asks, tells the reader of `told`, and asks again as soon as its parent is gone.
void AskTwice(Call& call, int told) {
  std::string label = call.label;
  call.label = label + " before";
  Ask(Connected(), call);
  (void)!::write(told, "x", 1);
  while (::getppid() != 1) ::usleep(1000);
  call.label = label + " after";
  Ask(Connected(), call);
}

// A child that executes `program` asks below this process, and again without it.
void Abandon(const Call& call) {
  int gate[2];
  if (::pipe(gate) != 0) Fail("pipe");
  if (::fork() == 0) Execute(call.argument, "ask-twice", call, gate[1]);
  char byte;
  (void)!::read(gate[0], &byte, 1);
}

void AskThenExecute(Call& call) {
  Ask(Connected(), call);
  call.label += " after";
  Execute(call.argument, "ask", call, -1);
}

// The socket is connected and its connector gone before anybody asks.
void Zombie(const Call& call) {
  int socket = Connected();
  pid_t parent = ::getpid();
  if (::fork() != 0) std::_Exit(0);
  while (::getppid() == parent) ::usleep(1000);
  Ask(socket, call);
}

void HalfClosed(const Call& call) {
  int socket = Connected();
  SendRequest(socket, call.port);
  ::shutdown(socket, SHUT_WR);
  Print(call, StatusOf(socket));
}

bool IsConnected(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

// What another thread changes while connect(2) waits to be looked at: the address that is read, or
// the socket that the descriptor is.
struct Moving {
  sockaddr_storage address{};
  int number = -1;
  int sockets[2] = {-1, -1};
  bool of_address = false;
};

[[noreturn]] void* KeepMoving(void* argument) {
  auto* moving = static_cast<Moving*>(argument);
  for (int i = 0;; i ^= 1) {
    if (moving->of_address) {
      __atomic_store_n(&moving->address.ss_family, i == 0 ? AF_UNIX : AF_INET, __ATOMIC_RELAXED);
    } else {
      ::dup2(moving->sockets[i], moving->number);
    }
  }
}

// Connects once while another thread moves what is connected, and is `argument` at once if that has
// worked. Does not return.
[[noreturn]] void ConnectMovingOnce(const Call& call, bool of_address) {
  Moving moving;
  sockaddr_in address = ProxyAddress();
  ::memcpy(&moving.address, &address, sizeof address);
  moving.of_address = of_address;
  for (int& socket : moving.sockets) socket = NewSocket();
  moving.number = ::dup(moving.sockets[0]);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, KeepMoving, &moving) != 0) Fail("pthread_create");
  // Longer than any address of the internet: its size tells nothing.
  (void)::connect(moving.number, reinterpret_cast<sockaddr*>(&moving.address), 110);
  for (int socket : moving.sockets) {
    if (IsConnected(socket)) Execute(call.argument, "send", call, socket);
  }
  std::_Exit(1);
}

// Labels are numbered.
void ConnectMoving(const Call& call, bool of_address) {
  constexpr int kConnectionsWanted = 30;
  constexpr int kTriesMax = 3000;
  int connected = 0;
  for (int i = 0; i < kTriesMax && connected < kConnectionsWanted; ++i) {
    Call numbered = call;
    numbered.label += std::to_string(connected);
    pid_t child = ::fork();
    if (child == 0) ConnectMovingOnce(numbered, of_address);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status == 0) ++connected;
  }
}

// Connects for ever, to a port without a listener.
void Knock(const Call& call) {
  Print(call, "knocking");
  sockaddr_in address = ProxyAddress();
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(1);
  int socket = NewSocket();
  for (;;) (void)::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

// As crun or LXC do for some containers. The call is one that no program makes.
int UnderListener(char** command) {
  constexpr uint32_t kUnusedCall = 0xffff;
  sock_filter steps[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                         {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kUnusedCall},
                         {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF},
                         {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  sock_fprog program{4, steps};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  long listener =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (listener < 0) Fail("seccomp");
  pid_t child = ::fork();
  if (child == 0) {
    ::execvp(command[0], command);
    Fail(command[0]);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

double Microseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Medians of connect(2) alone and of everything up to the proxy's refusal.
void Time(int rounds, int processes, int files) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  for (int i = 0; i < files; ++i) {
    if (::open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) Fail("open");
  }
  std::vector<pid_t> others;
  for (int i = 1; i < processes; ++i) {
    pid_t other = ::fork();
    if (other < 0) Fail("fork");
    if (other == 0) {
      ::syscall(SYS_close_range, 3, ~0U, 0);
      ::pause();
    }
    others.push_back(other);
  }
  std::vector<double> connects;
  std::vector<double> answers;
  for (int i = 0; i < rounds; ++i) {
    int socket = NewSocket();
    auto began = std::chrono::steady_clock::now();
    Connect(socket);
    auto connected = std::chrono::steady_clock::now();
    SendRequest(socket, "1");
    if (StatusOf(socket) != "403") Fail("not refused");
    connects.push_back(Microseconds(connected - began));
    answers.push_back(Microseconds(std::chrono::steady_clock::now() - began));
    ::close(socket);
  }
  for (pid_t other : others) ::kill(other, SIGKILL);
  std::sort(connects.begin(), connects.end());
  std::sort(answers.begin(), answers.end());
  auto middle = static_cast<size_t>(rounds / 2);
  std::printf("time=%.0f %.0f\n", connects[middle], answers[middle]);
}

void Carry(Call& call) {
  int fd = std::atoi(call.argument.c_str());
  if (call.verb == "ask") Ask(Connected(), call);
  if (call.verb == "send") Ask(fd, call);
  if (call.verb == "receive") Ask(Receive(fd), call);
  if (call.verb == "connect") {
    Connect(fd);
    Ask(fd, call);
  }
  if (call.verb == "ask-twice") AskTwice(call, fd);
  if (call.verb == "abandon") Abandon(call);
  if (call.verb == "ask-then-execute") AskThenExecute(call);
  if (call.verb == "start") Spawn(call.argument, "ask", call, -1);
  if (call.verb == "connect-then-execute") Execute(call.argument, "send", call, Connected());
  if (call.verb == "share") Share(call, call.argument, Here::kKept);
  if (call.verb == "hand-down") Share(call, call.argument, Here::kClosed);
  if (call.verb == "pass") Pass(call);
  if (call.verb == "orphan") Orphan(call);
  if (call.verb == "thread") FromThread(call);
  if (call.verb == "unlinked") Unlinked(call);
  if (call.verb == "mapped") Mapped(call);
  if (call.verb == "fast-open") FastOpen(call);
  if (call.verb == "zombie") Zombie(call);
  if (call.verb == "half-closed") HalfClosed(call);
  if (call.verb == "knock") Knock(call);
  if (call.verb == "moving-address") ConnectMoving(call, true);
  if (call.verb == "moving-socket") ConnectMoving(call, false);
}

}  // namespace

int main(int argc, char** argv) {
  std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "under-listener" && argc > 2) return UnderListener(argv + 2);
  if (argc < 4) return 64;
  if (verb == "time" && argc == 5) {
    Time(std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
    return 0;
  }
  Call call{verb, argv[2], argv[3], argc > 4 ? argv[4] : ""};
  Carry(call);
  return 0;
}
