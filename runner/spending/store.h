// SPDX-License-Identifier: Apache-2.0
// Where the ledger of a repository is kept: a file of one host, or a branch of the repository.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/forge.h"
#include "spending/ledger.h"

namespace spending {

// The branch, which belongs to agentic-ci alone, and the one file of it that means something.
inline constexpr char kBranch[] = "agentic-ci/budget";
inline constexpr char kFile[] = "agentic-ci-budget.json";

// Changes the ledger; returns false if there is nothing to write. May be called again, with the
// ledger that another run has written meanwhile.
using Edit = std::function<bool(Ledger*)>;

// Gives a commit of the repository, of the branch that its pull requests are for, say.
using Root = std::function<Result<std::string>()>;

// Where nothing is yet, nothing is spent. A ledger that is not one is kInvalid.
class Store {
 public:
  virtual ~Store() = default;
  virtual Result<Ledger> Read(Deadline deadline) = 0;
  // Changes what is there by then, in one step: no other change is lost. Fails with kTemporary if
  // others are always faster.
  virtual Status Change(const Edit& edit, Deadline deadline) = 0;
};

// A file that all runs of one host share, in a directory that they may write to.
class FileStore : public Store {
 public:
  explicit FileStore(std::string path) : path_(std::move(path)) {}
  Result<Ledger> Read(Deadline deadline) override;
  Status Change(const Edit& edit, Deadline deadline) override;

 private:
  std::string path_;
};

// A branch: each change is a commit on its tip, which the forge takes only if no other came first.
// Reading takes two requests, a change four more.
class BranchStore : public Store {
 public:
  // Borrows `forge`. A branch that is not there yet begins at `root`, which is asked then.
  BranchStore(forge::Forge& forge, Root root) : forge_(forge), root_(std::move(root)) {}
  Result<Ledger> Read(Deadline deadline) override;
  Status Change(const Edit& edit, Deadline deadline) override;

 private:
  // What was read last.
  struct Seen {
    std::string tip;   // Empty without a branch.
    std::string text;  // Empty without the file.
    Ledger ledger;
  };
  Result<Seen> Look(Deadline deadline);
  Status Commit(const Seen& seen, const std::string& text, Deadline deadline);

  forge::Forge& forge_;
  Root root_;
};

}  // namespace spending
