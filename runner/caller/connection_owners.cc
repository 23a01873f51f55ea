// SPDX-License-Identifier: Apache-2.0
#include "caller/connection_owners.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "caller/process_lineage.h"
#include "caller/process_table.h"
#include "caller/socket_diagnostics.h"
#include "caller/socket_table.h"

namespace caller {
namespace {

constexpr size_t kSocketTableBytesMax = size_t{16} << 20;
// Looked at for one question: under a second. The supervisor watches the limits of the run in
// the same loop, and a sandbox may have a thousand processes with 65536 descriptors each.
constexpr size_t kDescriptorsReadMax = size_t{64} << 10;

// The gateway asks within milliseconds of a connection. The kernel numbers sockets with 32 bits,
// one after the other, and cannot come round in so short a time.
constexpr std::chrono::milliseconds kConnectorAge{60'000};
// Connections that are never asked about, to servers inside the sandbox, displace older ones.
constexpr size_t kConnectorsMax = 16384;
constexpr size_t kConnectorBytesMax = size_t{16} << 20;

// Processes that may hold one socket. Each has up to 64 others above it, which takes a millisecond
// or more to read.
constexpr size_t kHoldersMax = 128;

constexpr char kAmbiguous[] = "ambiguous shared socket ownership";

// A refusal may still name the program, for the record.
Owner Refused(std::string why) {
  Owner answer;
  answer.refusal = std::move(why);
  return answer;
}

// The caller that the process `depth` steps above would be.
policy::Caller Above(const policy::Caller& caller, size_t depth) {
  auto self = caller.ancestors.begin() + static_cast<std::ptrdiff_t>(depth) - 1;
  return {*self, {self + 1, caller.ancestors.end()}, {}, {}};
}

// Returns about how much memory an owner takes: a path may have 4096 bytes, and there may be 64 of
// them.
size_t BytesOf(const Owner& owner) {
  size_t bytes = sizeof owner + owner.caller.binary.size() + owner.refusal.size();
  for (const std::string& path : owner.caller.ancestors) bytes += sizeof path + path.size();
  for (const std::string& path : owner.caller.cmdline) bytes += sizeof path + path.size();
  return bytes;
}

}  // namespace

Owner ConnectionOwners::OwnerOf(Lineage lineage) {
  Owner answer;
  // A process keeps the number that it is born with.
  if (!lineage.processes.empty()) answer.pid = lineage.processes.front()->InnermostPid();
  answer.caller = std::move(lineage.caller);
  answer.refusal = std::move(lineage.refusal);
  return answer;
}

std::optional<Connector> ConnectionOwners::Examine(pid_t thread, int socket) {
  Lineage lineage = lineages_.Read(thread);
  if (lineage.processes.empty()) return std::nullopt;
  std::optional<std::string> name = lineage.processes.front()->DescriptorTarget(socket);
  if (!name.has_value()) return std::nullopt;
  std::optional<uint64_t> inode = ParseSocketName(*name);
  if (!inode.has_value()) return std::nullopt;
  if (lineage.pending) return Connector{*inode, {}, true};
  for (size_t depth = 1; depth < lineage.processes.size() && lineage.refusal.empty(); ++depth) {
    bool shared = lineage.processes[depth]->DescriptorTarget(socket) == name;
    if (shared && !SamePrograms(lineage.caller, Above(lineage.caller, depth))) {
      lineage.refusal = kAmbiguous;
    }
  }
  return Connector{*inode, OwnerOf(std::move(lineage))};
}

void ConnectionOwners::Forget(Order::iterator remembered) {
  bytes_ -= remembered->bytes;
  by_inode_.erase(remembered->connector.inode);
  order_.erase(remembered);
}

void ConnectionOwners::Remember(Connector connector) {
  auto known = by_inode_.find(connector.inode);
  if (known != by_inode_.end()) Forget(known->second);
  uint64_t inode = connector.inode;
  size_t bytes = BytesOf(connector.owner);
  order_.push_back({std::move(connector), Deadline::After(kConnectorAge), bytes});
  by_inode_[inode] = std::prev(order_.end());
  bytes_ += bytes;
  while (order_.size() > kConnectorsMax || bytes_ > kConnectorBytesMax ||
         order_.front().until.passed()) {
    Forget(order_.begin());
  }
}

std::optional<uint64_t> ConnectionOwners::FindInode(const Question& question) {
  if (diagnostics_.valid()) {
    Result<uint64_t> inode = AskSocketInode(diagnostics_.get(), question.local, question.remote);
    diagnostics_tell_ |= inode.ok();
    if (inode.ok() && inode.value() != 0) return inode.value();
    if (inode.ok() || (diagnostics_tell_ && inode.error().code == Code::kNotFound)) {
      return std::nullopt;
    }
  }
  for (const char* name : {"/net/tcp", "/net/tcp6"}) {
    Result<std::string> table =
        sys::ReadFile("/proc/" + std::to_string(init_) + name, kSocketTableBytesMax);
    if (!table.ok()) continue;
    std::optional<uint64_t> inode = FindSocketInode(table.value(), question.local, question.remote);
    if (inode.has_value()) return inode;
  }
  return std::nullopt;
}

std::optional<Owner> ConnectionOwners::FindHolder(uint64_t inode) {
  std::optional<Owner> owner;
  size_t budget = kDescriptorsReadMax;
  size_t holders = 0;
  for (const ProcessEntry& process : ListDescendants(init_)) {
    bool holds = HoldsSocket(process.pid, inode, &budget);
    if (budget == 0) return Refused("the sandbox has too many descriptors open");
    if (!holds) continue;
    if (++holders > kHoldersMax) return Refused("too many processes hold the connection");
    Lineage lineage = lineages_.Read(process.pid);
    if (lineage.pending) return std::nullopt;
    Owner holder = OwnerOf(std::move(lineage));
    if (!holder.refusal.empty()) return holder;
    if (owner.has_value() && !SamePrograms(owner->caller, holder.caller)) {
      owner->refusal = kAmbiguous;
      return *owner;
    }
    if (!owner.has_value()) owner = std::move(holder);
  }
  return owner.has_value() ? *owner : Refused("no process in the sandbox owns the connection");
}

// Returns true also if there is too much to look at.
bool ConnectionOwners::HeldInSandbox(uint64_t inode) const {
  size_t budget = kDescriptorsReadMax;
  for (const ProcessEntry& process : ListDescendants(init_)) {
    if (HoldsSocket(process.pid, inode, &budget) || budget == 0) return true;
  }
  return false;
}

void ConnectionOwners::AddLinks(policy::Caller& caller) const {
  auto add = [&](const std::string& program) {
    auto known = links_.by_target.find(program);
    if (known == links_.by_target.end()) return;
    caller.links.insert(caller.links.end(), known->second.begin(), known->second.end());
  };
  add(caller.binary);
  for (const std::string& ancestor : caller.ancestors) add(ancestor);
}

std::optional<Owner> ConnectionOwners::Find(const Question& question) {
  std::optional<Owner> answer;
  std::optional<uint64_t> inode;
  if (init_ > 0) inode = FindInode(question);
  if (init_ <= 0) {
    answer = Refused("the sandbox has not started");
  } else if (!inode.has_value()) {
    answer = Refused("no socket in the sandbox belongs to this connection");
  } else {
    auto known = by_inode_.find(*inode);
    bool fresh = known != by_inode_.end() && !known->second->until.passed();
    if (fresh) {
      answer = known->second->connector.owner;
    } else if (watched_) {
      answer = Refused("no program was seen to make this connection");
      answer->stranger = shared_ && !HeldInSandbox(*inode);
      if (answer->stranger) ++strangers_;
    } else {
      answer = FindHolder(*inode);
    }
  }
  if (!answer.has_value()) return std::nullopt;
  AddLinks(answer->caller);
  answer->number = question.number;
  return answer;
}

Status ConnectionOwners::AnswerQuestion(int socket) {
  sys::Message message =
      TRY(sys::ReceiveMessage(socket, kQuestionBytes, Deadline::After(std::chrono::seconds(1))));
  if (message.bytes.empty()) return Error{Code::kIo, "the gateway has exited"};
  std::optional<Question> question = ParseQuestion(message.bytes);
  if (!question.has_value()) return Error{Code::kInvalid, "malformed message from the gateway"};
  std::optional<Owner> answer = Find(*question);
  if (!answer.has_value()) {
    waiting_.push_back(*question);  // The gateway bounds how many it asks at once.
    return Ok();
  }
  return sys::SendMessage(socket, RenderOwner(*answer)).Context("answering the gateway");
}

Result<bool> ConnectionOwners::Proceed(int socket) {
  if (!lineages_.Proceed()) return false;
  if (waiting_.empty()) return true;
  std::optional<Owner> answer = Find(waiting_.front());
  if (!answer.has_value()) return true;  // Another of its executables is being read now.
  waiting_.pop_front();
  TRY(sys::SendMessage(socket, RenderOwner(*answer)).Context("answering the gateway"));
  return true;
}

}  // namespace caller
