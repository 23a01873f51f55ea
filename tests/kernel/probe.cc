// SPDX-License-Identifier: Apache-2.0
// Tries what an agent may not do and prints what the kernel answered, "name=OK" or "name=ERRNO",
// one a line. Run inside the sandbox and, as the control, outside of it.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

// Not in the headers of Debian 12, or only under their numbers. x86-64 and arm64 agree on them.
constexpr long kClone3 = 435;
constexpr long kIoUringSetup = 425;
constexpr long kPidfdOpen = 434;
constexpr long kPidfdGetfd = 438;
constexpr long kPidfdSendSignal = 424;
constexpr long kOpenTree = 428;
constexpr long kMoveMount = 429;
constexpr long kFsopen = 430;
constexpr long kMountSetattr = 442;

using Attempt = std::function<long()>;

const char* ErrorName(int error) {
  const char* name = strerrorname_np(error);
  return name == nullptr ? "?" : name;
}

// Each attempt in a process of its own: what it does to itself ends with it.
void Try(const char* name, const Attempt& attempt) {
  std::fflush(stdout);
  int channel[2];
  if (::pipe(channel) != 0) std::abort();
  pid_t pid = ::fork();
  if (pid == 0) {
    errno = 0;
    long rc = attempt();
    int error = rc < 0 ? errno : 0;
    (void)!::write(channel[1], &error, sizeof error);
    ::_exit(0);
  }
  ::close(channel[1]);
  int error = -1;
  ssize_t n = ::read(channel[0], &error, sizeof error);
  ::close(channel[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (n != sizeof error) {
    std::printf("%s=%s\n", name, WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : "DIED");
  } else {
    std::printf("%s=%s\n", name, error == 0 ? "OK" : ErrorName(error));
  }
}

// A process of the same user that waits to be looked into.
pid_t Victim() {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  return pid;
}

long ReadVictim(long call) {
  pid_t victim = Victim();
  static char there[8] = "secret";
  char here[8] = {};
  iovec local{here, sizeof here};
  iovec remote{there, sizeof there};
  long rc = ::syscall(call, victim, &local, 1, &remote, 1, 0);
  int saved = errno;
  ::kill(victim, SIGKILL);
  errno = saved;
  return rc;
}

long WithPidfd(const std::function<long(int)>& use) {
  pid_t victim = Victim();
  long fd = ::syscall(kPidfdOpen, victim, 0);
  long rc = fd < 0 ? fd : use(static_cast<int>(fd));
  int saved = errno;
  ::kill(victim, SIGKILL);
  errno = saved;
  return rc;
}

long Clone(unsigned long flags) {
  long pid = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) ::_exit(0);
  return pid;
}

long PushKeystroke() {
  int master = 0;
  int slave = 0;
  if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return -1;
  ::setsid();
  if (::ioctl(slave, TIOCSCTTY, 0) != 0) return -1;
  char key = 'x';
  return ::ioctl(slave, TIOCSTI, &key);
}

long ExecDescriptor() {
  pid_t pid = ::fork();
  if (pid == 0) {
    int fd = ::open("/proc/self/exe", O_PATH);
    const char* argv[] = {"probe", "nothing", nullptr};
    const char* envp[] = {nullptr};
    ::syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
    ::_exit(errno);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  errno = WEXITSTATUS(status);
  return errno == 0 ? 0 : -1;
}

// Last of all, and the tamest first: outside the sandbox these succeed, in the control's own mount
// namespace.
void Mounts() {
  Try("setns", [] {
    int fd = ::open("/proc/self/ns/net", O_RDONLY);
    return fd < 0 ? -1 : ::syscall(SYS_setns, fd, 0);
  });
  Try("chroot", [] { return long{::chroot("/usr")}; });
  Try("fsopen", [] { return ::syscall(kFsopen, "tmpfs", 0); });
  Try("open_tree", [] { return ::syscall(kOpenTree, AT_FDCWD, "/", 1); });
  Try("move_mount", [] { return ::syscall(kMoveMount, AT_FDCWD, "/nope", AT_FDCWD, "/usr", 0); });
  Try("mount_setattr", [] { return ::syscall(kMountSetattr, AT_FDCWD, "/nope", 0, nullptr, 0); });
  Try("mount", [] { return ::syscall(SYS_mount, "none", "/usr", "tmpfs", 0, nullptr); });
  Try("pivot_root", [] { return ::syscall(SYS_pivot_root, "/nope", "/nope"); });
  Try("umount2", [] { return ::syscall(SYS_umount2, "/nope", MNT_DETACH); });
}

void Kernel() {
  Try("bpf", [] {
    struct {
      unsigned type, key, value, entries, flags;
    } map{2, 4, 4, 1, 0};
    return ::syscall(SYS_bpf, 0, &map, sizeof map);
  });
  Try("io_uring_setup", [] {
    char parameters[256] = {};
    return ::syscall(kIoUringSetup, 1, parameters);
  });
  Try("userfaultfd", [] { return ::syscall(SYS_userfaultfd, 1); });
  Try("perf_event_open", [] {
    unsigned attributes[32] = {1, sizeof attributes};
    return ::syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0);
  });
  Try("keyctl", [] { return ::syscall(SYS_keyctl, 0, -3, 1); });
  Try("add_key", [] { return ::syscall(SYS_add_key, "user", "probe", "x", 1, -2); });
  Try("request_key", [] { return ::syscall(SYS_request_key, "user", "nope", nullptr, 0); });
  Try("name_to_handle_at", [] {
    struct {
      unsigned bytes;
      int type;
      char data[128];
    } handle{128, 0, {}};
    int mount = 0;
    return ::syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount, 0);
  });
  Try("open_by_handle_at", [] { return ::syscall(SYS_open_by_handle_at, -1, nullptr, 0); });
  Try("init_module", [] { return ::syscall(SYS_init_module, nullptr, 0, ""); });
  Try("delete_module", [] { return ::syscall(SYS_delete_module, "no-such-module", O_NONBLOCK); });
  Try("kexec_load", [] { return ::syscall(SYS_kexec_load, 0, 17, nullptr, 0x3e0000); });
  Try("reboot", [] { return ::syscall(SYS_reboot, 1, 2, 3, nullptr); });  // Wrong magic numbers.
  Try("swapoff", [] { return ::syscall(SYS_swapoff, "/nope"); });
  Try("acct", [] { return ::syscall(SYS_acct, "/nope"); });
  Try("syslog", [] { return ::syscall(SYS_syslog, 10, nullptr, 0); });
  Try("settimeofday", [] { return ::syscall(SYS_settimeofday, nullptr, nullptr); });
  Try("memfd_secret", [] { return ::syscall(447, 0); });
  Try("memfd_create", [] { return ::syscall(SYS_memfd_create, "x", 0); });
  Try("execveat_empty_path", ExecDescriptor);
}

void Processes() {
  Try("ptrace", [] {
    pid_t victim = Victim();
    long rc = ::ptrace(PTRACE_SEIZE, victim, nullptr, nullptr);
    int saved = errno;
    ::kill(victim, SIGKILL);
    errno = saved;
    return rc;
  });
  Try("process_vm_readv", [] { return ReadVictim(SYS_process_vm_readv); });
  Try("process_vm_writev", [] { return ReadVictim(SYS_process_vm_writev); });
  Try("pidfd_open_of_the_first", [] { return ::syscall(kPidfdOpen, 1, 0); });
  Try("pidfd_getfd",
      [] { return WithPidfd([](int fd) { return ::syscall(kPidfdGetfd, fd, 0, 0); }); });
  Try("kcmp", [] { return ::syscall(SYS_kcmp, ::getpid(), ::getpid(), 0, 0, 0); });
  Try("clone3", [] {
    struct {
      unsigned long values[11];
    } arguments{};
    arguments.values[4] = SIGCHLD;
    long pid = ::syscall(kClone3, &arguments, sizeof arguments);
    if (pid == 0) ::_exit(0);
    return pid;
  });
  Try("clone_newuser", [] { return Clone(CLONE_NEWUSER); });
  Try("unshare_newuser", [] { return long{::unshare(CLONE_NEWUSER)}; });
  Try("unshare_newns", [] { return long{::unshare(CLONE_NEWNS)}; });
  Try("unshare_newnet", [] { return long{::unshare(CLONE_NEWNET)}; });
  Try("unshare_newpid", [] { return long{::unshare(CLONE_NEWPID)}; });
  Try("seccomp_filter", [] { return ::syscall(SYS_seccomp, 1, 0, nullptr); });
  Try("prctl_seccomp", [] { return long{::prctl(PR_SET_SECCOMP, 2, nullptr)}; });
  Try("setuid_root", [] { return long{::setuid(0)}; });
  Try("setgid_root", [] { return long{::setgid(0)}; });
  Try("setgroups", [] {
    gid_t group = 0;
    return ::syscall(SYS_setgroups, 1, &group);
  });
  Try("mknod_device", [] { return long{::mknod("probe-device", S_IFCHR | 0600, 0x103)}; });
  Try("tiocsti", PushKeystroke);
#ifdef __x86_64__
  Try("call_of_32_bits", [] {
    long rc = 20;  // getpid
    asm volatile("int $0x80" : "+a"(rc) : : "memory");
    return rc;
  });
  Try("call_of_x32", [] { return ::syscall(0x40000000 + SYS_getpid); });
#endif
}

void Sockets() {
  auto open = [](int family, int type, int protocol) {
    return [=] { return long{::socket(family, type, protocol)}; };
  };
  Try("socket_packet", open(AF_PACKET, SOCK_RAW, 0));
  Try("socket_raw", open(AF_INET, SOCK_RAW, IPPROTO_ICMP));
  Try("socket_raw6", open(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
  Try("socket_alg", open(AF_ALG, SOCK_SEQPACKET, 0));
  Try("socket_vsock", open(AF_VSOCK, SOCK_STREAM, 0));
  Try("socket_netlink_audit", open(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT));
}

// What a build needs: these are allowed inside as well.
void Allowed() {
  Try("allowed_socket_netlink_route",
      [] { return long{::socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)}; });
  Try("allowed_socket_tcp", [] { return long{::socket(AF_INET, SOCK_STREAM, 0)}; });
  Try("allowed_socket_udp", [] { return long{::socket(AF_INET, SOCK_DGRAM, 0)}; });
  Try("allowed_socket_unix", [] { return long{::socket(AF_UNIX, SOCK_STREAM, 0)}; });
  Try("allowed_socketpair", [] {
    int pair[2];
    return long{::socketpair(AF_UNIX, SOCK_STREAM, 0, pair)};
  });
  Try("allowed_fork", [] { return Clone(0); });
  Try("allowed_own_limits", [] {
    rlimit limit{};
    return long{::prlimit(0, RLIMIT_NOFILE, nullptr, &limit)};
  });
  Try("allowed_own_limits_by_number", [] {
    rlimit limit{};
    return long{::prlimit(::getpid(), RLIMIT_NOFILE, nullptr, &limit)};
  });
  Try("allowed_signal_by_descriptor", [] {
    return WithPidfd([](int fd) { return ::syscall(kPidfdSendSignal, fd, 0, nullptr, 0); });
  });
  Try("allowed_mkfifo", [] { return long{::mkfifo("probe-fifo", 0600)}; });
  Try("allowed_pty", [] {
    int master = 0;
    int slave = 0;
    return long{::openpty(&master, &slave, nullptr, nullptr, nullptr)};
  });
  Try("allowed_shared_memory", [] {
    int fd = ::shm_open("/probe", O_CREAT | O_RDWR, 0600);
    if (fd >= 0) ::shm_unlink("/probe");
    return long{fd};
  });
  Try("allowed_dev_null", [] { return long{::open("/dev/null", O_RDWR)}; });
}

// Connects `fd` and hears from the other side: a connection that is accepted only to be reset, or a
// packet that is thrown away, is not a way out.
long Reach(int fd, const sockaddr* to, socklen_t size) {
  if (fd < 0) return -1;
  timeval limit{3, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(fd, to, size) != 0) return -1;
  const char echo[16] = {8};  // As good a beginning as any, and an echo request to a ping socket.
  if (::send(fd, echo, sizeof echo, MSG_NOSIGNAL) < 0) return -1;
  char answer = 0;
  return ::recv(fd, &answer, 1, 0);
}

long Connect(int type, const char* address, int port, int protocol = 0) {
  bool v6 = std::strchr(address, ':') != nullptr;
  sockaddr_in6 to6{};
  sockaddr_in to4{};
  to6.sin6_family = AF_INET6;
  to4.sin_family = AF_INET;
  to6.sin6_port = to4.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(v6 ? AF_INET6 : AF_INET, address,
              v6 ? static_cast<void*>(&to6.sin6_addr) : &to4.sin_addr);
  int fd = ::socket(v6 ? AF_INET6 : AF_INET, type, protocol);
  if (v6) return Reach(fd, reinterpret_cast<sockaddr*>(&to6), sizeof to6);
  return Reach(fd, reinterpret_cast<sockaddr*>(&to4), sizeof to4);
}

long ConnectUnix(const std::string& name) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  name.copy(to.sun_path, sizeof to.sun_path - 1);
  socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (name[0] == '@') to.sun_path[0] = '\0';
  int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  return Reach(fd, reinterpret_cast<sockaddr*>(&to), size);
}

// PORT: of a listener on the host's loopback. ABSTRACT, PATHNAME: of its Unix sockets. A control
// tries only these: nothing else need answer it.
void Network(int port, const std::string& abstract, const std::string& pathname, bool control) {
  Try("tcp_loopback", [=] { return Connect(SOCK_STREAM, "127.0.0.1", port); });
  Try("tcp_loopback6", [=] { return Connect(SOCK_STREAM, "::1", port); });
  Try("unix_abstract", [=] { return ConnectUnix("@" + abstract); });
  Try("unix_pathname", [=] { return ConnectUnix(pathname); });
  if (control) return;
  // Addresses for documentation (RFC 5737, RFC 3849): nothing answers there, so an immediate answer
  // comes from something on the way.
  Try("tcp_outside", [] { return Connect(SOCK_STREAM, "192.0.2.1", 443); });
  Try("udp_outside", [] { return Connect(SOCK_DGRAM, "192.0.2.1", 443); });
  Try("tcp6_outside", [] { return Connect(SOCK_STREAM, "2001:db8::1", 443); });
  Try("udp6_outside", [] { return Connect(SOCK_DGRAM, "2001:db8::1", 443); });
  Try("udp_metadata", [] { return Connect(SOCK_DGRAM, "169.254.169.254", 80); });
  Try("icmp", [] { return Connect(SOCK_DGRAM, "192.0.2.1", 0, IPPROTO_ICMP); });
}

// Uses `megabytes` of memory, touching each page, for `seconds`: as long as a look at them may
// take.
int Allocate(size_t megabytes, unsigned seconds) {
  size_t bytes = megabytes << 20;
  char* memory = static_cast<char*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 1;
  for (size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
  std::puts("allocated");
  std::fflush(stdout);
  ::sleep(seconds);
  return 0;
}

// Fills the queue of a pair of sockets. `kind`: "unix"; "closed", with the writer's end closed
// afterwards; "tcp"; "waiting", a connection that is not accepted, with the writer's end closed.
size_t FillSockets(const std::string& kind) {
  const bool accepts = kind != "waiting";
  int pair[2] = {-1, -1};
  if (kind == "unix" || kind == "closed") {
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 0;
  } else {
    int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ::bind(listener, reinterpret_cast<sockaddr*>(&at), size);
    ::listen(listener, 1);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
    pair[0] = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(pair[0], reinterpret_cast<sockaddr*>(&at), size) != 0) return 0;
    if (accepts) pair[1] = ::accept(listener, nullptr, nullptr);
    if (accepts) ::close(listener);
  }
  static char block[65536];
  size_t filled = 0;
  ssize_t n = 0;
  while ((n = ::send(pair[0], block, sizeof block, MSG_DONTWAIT)) > 0) {
    filled += static_cast<size_t>(n);
  }
  if (kind == "closed" || !accepts) ::close(pair[0]);
  return filled;
}

// Holds `megabytes` for `seconds` where a sum over processes' own memory does not see them.
int Hold(const std::string& where, size_t megabytes, unsigned seconds) {
  size_t bytes = megabytes << 20;
  if (where == "shared" || where == "family") {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    for (int i = 0; where == "family" && i < 8; ++i) {
      if (::fork() == 0) break;  // Each of them has all of it mapped.
    }
    std::memset(memory, 1, bytes);
  } else if (where == "segment") {
    int segment = ::shmget(IPC_PRIVATE, bytes, 0600);
    void* memory = ::shmat(segment, nullptr, 0);
    std::memset(memory, 1, bytes);
    ::shmdt(memory);
  } else if (where == "page-tables") {
    // One page read in each 2 MiB: the zero page costs nothing, the table of each does.
    size_t span = megabytes << 29;
    auto* memory = static_cast<volatile char*>(
        ::mmap(nullptr, span, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory == MAP_FAILED) return 1;
    for (size_t at = 0; at < span; at += 2 << 20) (void)memory[at];
  } else {
    for (size_t filled = 0; filled < bytes;) {
      size_t more = FillSockets(where);
      if (more == 0) return 1;
      filled += more;
    }
  }
  ::sleep(seconds);
  return 0;
}

// Holds `count` processes at once, for as long as a look at them may take; fails when one cannot be
// had.
int Fork(int count) {
  std::vector<pid_t> children;
  int failed = 0;
  for (int i = 0; i < count && failed == 0; ++i) {
    pid_t pid = Victim();
    if (pid < 0) failed = errno;
    if (pid > 0) children.push_back(pid);
  }
  // Where one was refused the run is about to be ended; an emulated machine takes a while.
  if (failed != 0) ::sleep(20);
  ::usleep(500'000);
  for (pid_t pid : children) ::kill(pid, SIGKILL);
  std::printf("forks=%zu\n", children.size());
  return failed == 0 ? 0 : 1;
}

int Write(size_t megabytes) {
  static char line[65536];
  std::memset(line, 'x', sizeof line);
  line[sizeof line - 1] = '\n';
  for (size_t i = 0; i < megabytes * 16; ++i) {
    if (::write(1, line, sizeof line) != static_cast<ssize_t>(sizeof line)) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "";
  if (what == "refused") {
    Kernel();
    Processes();
    Sockets();
    Mounts();
    return 0;
  }
  if (what == "allowed") return Allowed(), 0;
  if (what == "network" && argc > 4)
    return Network(std::atoi(argv[2]), argv[3], argv[4], argc > 5), 0;
  if (what == "allocate" && argc > 3) {
    return Allocate(static_cast<size_t>(std::atoi(argv[2])),
                    static_cast<unsigned>(std::atoi(argv[3])));
  }
  if (what == "hold" && argc > 4) {
    return Hold(argv[2], static_cast<size_t>(std::atoi(argv[3])),
                static_cast<unsigned>(std::atoi(argv[4])));
  }
  if (what == "processors") {
    cpu_set_t all;
    std::memset(&all, 0xff, sizeof all);
    return ::sched_setaffinity(0, sizeof all, &all) == 0 ? 0 : errno;
  }
  if (what == "fork" && argc > 2) return Fork(std::atoi(argv[2]));
  if (what == "write" && argc > 2) return Write(static_cast<size_t>(std::atoi(argv[2])));
  return what == "nothing" ? 0 : 2;
}
