// SPDX-License-Identifier: Apache-2.0
// `run --learn FILE`: remembers what the policy refuses (it is refused all the same) over several
// runs, for `agentic-ci policy suggest FILE`. For each run the file has one line that begins it,
// with the hosts that its credentials are for, and one for each different refusal: a record as in
// events.ocsf.jsonl, with how often it was seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advise/diff.h"
#include "base/fd.h"
#include "base/result.h"
#include "codec/data/secret_mask.h"
#include "report/record.h"

namespace run {

class LearnFile {
 public:
  // Opens or creates the file, before the agent starts. `secrets` are the run's. Fails with
  // kRefused for a file in `checkout`, which a pull request could have written, for a link, and for
  // one that others may write; with kInvalid for a file that is something else; with kSetup for one
  // that is full.
  static Result<LearnFile> Open(const std::string& path, const std::string& checkout,
                                std::vector<advise::BoundSecret> secrets);

  // Adds a run's refusals, in one piece, whichever other runs do the same at this time.
  Status Append(const std::vector<report::DeniedRequest>& denials,
                const codec::SecretMask& mask) const;

 private:
  LearnFile() = default;

  std::string path_;
  Fd file_;
  std::vector<advise::BoundSecret> secrets_;
};

// Renders one run's denials and secrets as lines. Denials by anything other than the policy are
// left out.
std::string RenderLearned(const std::vector<report::DeniedRequest>& denials,
                          const std::vector<advise::BoundSecret>& secrets);

struct Learned {
  // The denials by policy, as report::ReadDenials() gives them.
  std::vector<report::DeniedRequest> denials;
  std::vector<advise::BoundSecret> secrets;  // The secrets of all runs, each once.
  int64_t dropped = 0;  // Lines that were odd, or cut short by the end of a run.
};

// Reads what the agents shaped. Fails with kInvalid for another file.
Result<Learned> ReadLearned(const std::string& file);
// Does so for a report's directory and its events.ocsf.jsonl, too; a report names no secrets.
Result<Learned> ReadRefusals(const std::string& path);

// Takes out of `refusals` those of hosts that a credential goes to, for which nothing may be
// suggested. Returns a line of YAML comment for each.
std::string TakeSecretHosts(Learned* refusals);
// Renders a policy to paste next to the one that refused, with a comment for each refusal that no
// addition would allow: a deny rule of that policy still takes precedence.
std::string RenderFragment(const std::vector<report::DeniedRequest>& refused);

}  // namespace run
