// SPDX-License-Identifier: Apache-2.0
#include "session/place.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/deadline.h"
#include "base/sys.h"
#include "base/tree.h"
#include "base/wire.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/shell_word.h"
#include "session/protocol.h"
#include "session/shell.h"

namespace session {
namespace {

constexpr size_t kFactsBytesMax = size_t{4} << 20;  // All of `--env` is in it.
constexpr char kFactsName[] = "sandbox.json";
constexpr char kLockName[] = "lock";
constexpr int kBacklog = 64;
constexpr std::chrono::seconds kEndTime{30};
constexpr std::chrono::milliseconds kConnectRest{5};

// Only this user may write there: any socket in it is taken for a sandbox.
Result<Fd> OpenOwn(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Errno("mkdir " + path);
  Result<Fd> opened = sys::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  // In /tmp, others can put a link there.
  if (!opened.ok() && sys::IsAbsent(opened.error())) {
    return Error{Code::kRefused, path + " must be a directory, and no link to one"};
  }
  Fd directory = TRY(std::move(opened).Context(path));
  struct stat st {};
  if (::fstat(directory.get(), &st) != 0) return Errno("fstat " + path);
  if (st.st_uid != ::geteuid() || (st.st_mode & 077) != 0) {
    return Error{Code::kRefused,
                 path + " must belong to this user, and only this user may enter it",
                 "chmod 700 " + codec::ShellArgument(path)};
  }
  return directory;
}

bool Serves(const std::string& path) {
  struct stat st {};
  return path.starts_with('/') && ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) &&
         st.st_uid == ::geteuid() && (st.st_mode & 022) == 0;
}

std::string FindPlace() {
  std::string uid = std::to_string(::geteuid());
  std::string runtime = sys::Environment("XDG_RUNTIME_DIR").value_or("");
  if (Serves(runtime)) return runtime + "/agentic-ci";
  if (Serves("/run/user/" + uid)) return "/run/user/" + uid + "/agentic-ci";
  std::string temporary = sys::Environment("TMPDIR").value_or("");
  if (!temporary.starts_with('/')) temporary = "/tmp";
  return temporary + "/agentic-ci-" + uid;
}

// Through a descriptor: a socket's address has 108 bytes, and directories have long names.
sockaddr_un AddressIn(int directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + kSocketName;
  ENSURE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  return address;
}

// Connects, and waits until `deadline` while as many wait to be accepted as may: a blocking call
// would wait for ever where the supervisor is stopped.
Status ConnectTo(const Fd& socket, const sockaddr_un& address, Deadline deadline) {
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
         0) {
    if (errno != EINTR && (errno != EAGAIN || deadline.passed())) return Errno("connect");
    std::this_thread::sleep_for(kConnectRest);
  }
  if (::fcntl(socket.get(), F_SETFL, 0) != 0) return Errno("fcntl");
  return Ok();
}

// Paths are bytes, and JSON is text.
void SetPath(codec::Json* json, const char* name, const std::string& path) {
  json->Set(name, codec::EncodeBase64(path));
}

Result<std::string> PathAt(const codec::Json& json, const char* name) {
  std::optional<std::string> path = codec::DecodeBase64(json.StringAt(name));
  if (!path) return Error{Code::kInvalid, std::string(kFactsName) + ": " + name};
  return std::move(*path);
}

// Likewise, each a name and a value of any bytes.
void SetPairs(codec::Json* json, const char* name,
              const std::vector<std::pair<std::string, std::string>>& pairs) {
  codec::Json list = codec::Json::EmptyArray();
  for (const auto& [key, value] : pairs) {
    codec::Json pair;
    SetPath(&pair, "name", key);
    SetPath(&pair, "value", value);
    list.Push(std::move(pair));
  }
  json->Set(name, std::move(list));
}

Result<std::vector<std::pair<std::string, std::string>>> PairsAt(const codec::Json& json,
                                                                 const char* name) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const codec::Json* list = json.Find(name);
  if (list == nullptr || list->array() == nullptr) return pairs;
  for (const codec::Json& pair : *list->array()) {
    pairs.emplace_back(TRY(PathAt(pair, "name")), TRY(PathAt(pair, "value")));
  }
  return pairs;
}

Result<Facts> ReadFacts(int directory) {
  Fd file = TRY(sys::OpenAt(directory, kFactsName, O_RDONLY | O_NOFOLLOW));
  std::string text = TRY(sys::ReadAll(file.get(), kFactsBytesMax));
  codec::Json json = TRY(codec::ParseJson(text));
  std::string workdir = TRY(PathAt(json, "workdir"));
  std::string report_dir = TRY(PathAt(json, "report_dir"));
  std::string state = TRY(PathAt(json, "state"));
  std::vector<std::string> providers;
  for (const auto& [name, value] : TRY(PairsAt(json, "providers"))) providers.push_back(name);
  std::vector<std::pair<std::string, std::string>> variables = TRY(PairsAt(json, "variables"));
  return Facts{json.StringAt("name"),       json.IntegerAt("pid"),      json.IntegerAt("created"),
               json.IntegerAt("expires"),   std::move(workdir),         json.StringAt("image"),
               json.StringAt("agent"),      json.StringAt("isolation"), std::move(report_dir),
               json.StringAt("backend"),    std::move(state),           json.StringAt("pool"),
               json.StringAt("policy_ref"), std::move(providers),       std::move(variables)};
}

// Returns whether the sandbox `name` in `place` has ended: it has no lock, or a free one. A lock
// that cannot be opened may be held, and a file or a link is not a sandbox.
bool HasEnded(int place, const std::string& name) {
  Result<Fd> lock = sys::OpenBeneath(place, name + "/" + kLockName, O_RDWR);
  if (!lock.ok()) return lock.error().os_error == ENOENT;
  return ::flock(lock.value().get(), LOCK_EX | LOCK_NB) == 0;
}

// Replaces a file in one step, so that readers find either the old or the new one.
Status ReplaceFile(const Entry& entry, const std::string& name, std::string_view text) {
  const int directory = entry.directory.get();
  const std::string part = name + ".new";
  Fd file = TRY(sys::OpenAt(directory, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  TRY(sys::WriteAll(file.get(), text));
  if (::renameat(directory, part.c_str(), directory, name.c_str()) != 0) return Errno("rename");
  return Ok();
}

Error NoSuch(const std::string& name) {
  return Error{Code::kNotFound, "no sandbox is named '" + name + "'", "agentic-ci sandbox list"};
}

}  // namespace

Status CheckName(const std::string& name) {
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  bool fine = !name.empty() && name.size() <= kNameBytesMax && letter(name.front()) &&
              std::all_of(name.begin(), name.end(),
                          [&](char c) { return letter(c) || c == '.' || c == '_' || c == '-'; });
  if (fine) return Ok();
  return Error{Code::kUsage,
               "'" + name + "' cannot name a sandbox: letters, digits, '.', '_' and '-', at most " +
                   std::to_string(kNameBytesMax),
               "agentic-ci sandbox create --name review-1"};
}

Result<Place> Place::Open() {
  Place place;
  place.path_ = FindPlace();
  place.directory_ = TRY(OpenOwn(place.path_).Context("opening the directory of sandboxes"));
  Fd lock = TRY(place.Lock());
  place.Sweep();
  return place;
}

// One at a time makes a directory and its lock, or looks which lock is free.
Result<Fd> Place::Lock() const {
  Fd lock = TRY(sys::OpenAt(directory_.get(), ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return Errno("flock");
  }
  return lock;
}

// Every command does it: what it costs for each sandbox is paid by all of them. Facts are read only
// if something has ended.
void Place::Sweep() const {
  Result<std::vector<std::string>> names = sys::DirectoryNames(directory_.get());
  if (!names.ok()) return;
  bool ended = false;
  for (const std::string& name : names.value()) {
    if (!CheckName(name).ok() || !HasEnded(directory_.get(), name)) continue;
    ended |= sys::RemoveTree(directory_.get(), name).ok();
  }
  if (ended) (void)List();
}

// Ends a sandbox that waits in a pool whose process was killed.
void Place::EndIfOrphan(const Facts& facts) const {
  if (facts.pool.empty() || !HasEnded(directory_.get(), facts.pool)) return;
  Result<Fd> connection = Connect(facts.name);
  if (!connection.ok()) return;
  (void)sys::SendMessage(connection.value().get(),
                         wire::Write(MessageKind::kDelete, DeleteRequest{}));
}

Result<Entry> Place::Make(std::string name) {
  if (name.empty()) name = "sandbox-" + sys::RandomHex().substr(0, 8);
  TRY(CheckName(name));
  Fd lock = TRY(Lock());
  Entry entry;
  entry.name = name;
  entry.path = path_ + "/" + name;
  if (::mkdirat(directory_.get(), name.c_str(), 0700) != 0) {
    if (errno != EEXIST) return Errno("mkdir " + entry.path);
    return Error{Code::kUsage, "there is already a sandbox named '" + name + "'",
                 "agentic-ci sandbox delete " + name};
  }
  entry.directory = TRY(sys::OpenAt(directory_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  entry.lock = TRY(sys::OpenAt(entry.directory.get(), kLockName, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (::flock(entry.lock.get(), LOCK_EX | LOCK_NB) != 0) return Errno("flock");
  return entry;
}

Result<Fd> Place::Connect(const std::string& name, std::chrono::milliseconds wait) const {
  TRY(CheckName(name));
  Result<Fd> directory = sys::OpenAt(directory_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory.ok()) return NoSuch(name);
  Fd connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection.valid()) return Errno("socket");
  Status connected =
      ConnectTo(connection, AddressIn(directory.value().get()), Deadline::After(wait));
  if (!connected.ok()) {
    Error error = std::move(connected).Context("connecting to sandbox '" + name + "'").error();
    error.code = Code::kTemporary;  // It starts, or it ends, or it is stopped.
    return error;
  }
  // The program that answers is this user's: the directory says so, and so does the kernel.
  if (!SamePeer(connection.get())) {
    return Error{Code::kRefused, "another user's process serves sandbox '" + name + "'"};
  }
  return connection;
}

std::vector<Facts> Place::List() const {
  std::vector<Facts> all;
  Result<std::vector<std::string>> names = sys::DirectoryNames(directory_.get());
  if (!names.ok()) return all;
  for (const std::string& name : names.value()) {
    if (!CheckName(name).ok()) continue;
    Result<Facts> facts = Find(name);
    if (!facts.ok()) continue;
    EndIfOrphan(facts.value());
    all.push_back(std::move(facts).value());
  }
  return all;
}

Result<Facts> Place::Find(const std::string& name) const {
  TRY(CheckName(name));
  Result<Fd> directory = sys::OpenAt(directory_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory.ok()) return NoSuch(name);
  Result<Facts> facts = ReadFacts(directory.value().get());
  if (!facts.ok()) return NoSuch(name);
  return facts;
}

Result<std::string> Place::ReplacedPolicy(const std::string& name) const {
  TRY(Find(name));
  Fd directory = TRY(sys::OpenAt(directory_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  Result<Fd> file = sys::OpenAt(directory.get(), kPolicyName, O_RDONLY | O_NOFOLLOW);
  if (!file.ok() && sys::IsAbsent(file.error())) return std::string();
  Fd opened = TRY(std::move(file));
  return sys::ReadAll(opened.get(), kPolicyTextBytesMax);
}

Status Place::AwaitEnd(const std::string& name) const {
  for (Deadline deadline = Deadline::After(kEndTime); !deadline.passed();) {
    Result<Fd> directory = sys::OpenAt(directory_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!directory.ok()) return Ok();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return Error{Code::kIo, "sandbox '" + name + "' does not end"};
}

bool SamePeer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

Result<Fd> Listen(const Entry& entry) {
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return Errno("socket");
  sockaddr_un address = AddressIn(entry.directory.get());
  mode_t old = ::umask(077);
  int bound = ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  int failure = errno;
  ::umask(old);
  if (bound != 0) return Errno("bind " + entry.path + "/" + kSocketName, failure);
  if (::listen(listener.get(), kBacklog) != 0) return Errno("listen");
  return listener;
}

Status Place::Update(const Facts& facts) const {
  Entry entry;
  entry.directory =
      TRY(sys::OpenAt(directory_.get(), facts.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return WriteFacts(entry, facts);
}

Status WriteFacts(const Entry& entry, const Facts& facts) {
  codec::Json json;
  json.Set("name", facts.name);
  json.Set("pid", facts.pid);
  json.Set("created", facts.created);
  json.Set("expires", facts.expires);
  SetPath(&json, "workdir", facts.workdir);
  json.Set("image", facts.image);
  json.Set("agent", facts.agent);
  json.Set("isolation", facts.isolation);
  SetPath(&json, "report_dir", facts.report_dir);
  json.Set("backend", facts.backend);
  SetPath(&json, "state", facts.state);
  json.Set("pool", facts.pool);
  json.Set("policy_ref", facts.policy_ref);
  std::vector<std::pair<std::string, std::string>> providers;
  for (const std::string& name : facts.providers) providers.emplace_back(name, "");
  SetPairs(&json, "providers", providers);
  SetPairs(&json, "variables", facts.variables);
  return ReplaceFile(entry, kFactsName, codec::RenderJson(json));
}

Status WritePolicy(const Entry& entry, std::string_view text) {
  return ReplaceFile(entry, kPolicyName, text);
}

void Remove(const Entry& entry) {
  size_t slash = entry.path.rfind('/');
  Result<Fd> parent = sys::Open(entry.path.substr(0, slash), O_RDONLY | O_DIRECTORY);
  struct stat own {};
  struct stat there {};
  if (!parent.ok() || ::fstat(entry.directory.get(), &own) != 0) return;
  int place = parent.value().get();
  if (::fstatat(place, entry.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (own.st_dev != there.st_dev || own.st_ino != there.st_ino) return;
  (void)sys::RemoveTree(place, entry.name);
}

}  // namespace session
