// SPDX-License-Identifier: Apache-2.0
#include "run/native/layout.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/sys.h"
#include "codec/data/java_keystore.h"
#include "run/credentials.h"
#include "run/environment.h"
#include "run/native/plan_text.h"
#include "run/shown/git_copy.h"
#include "run/shown/git_files.h"
#include "sandbox/mask.h"

namespace run {
namespace {

// The first directory on the way to `path` that others than its owner cannot enter, or "".
std::string FindClosed(const std::string& path, const sandbox::HostView& host) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    if ((host.mode(path.substr(0, end)) & S_IXOTH) == 0) return path.substr(0, end);
  }
  return (host.mode(path) & S_IXOTH) == 0 ? path : "";
}

// Plans what git needs of the repository, as far as the tier can give it.
void PlanGit(const std::string& checkout, const GitFiles& git, const sandbox::HostView& host,
             sandbox::SandboxRequest* wanted) {
  wanted->workspace_files = git.in_checkout;
  wanted->repository_files = git.outside;
  wanted->repository_directories = git.directories;
  if (wanted->isolation == sandbox::Isolation::kNamespaces) {
    wanted->repository_layers = git.layers;
    return;
  }
  auto check = [&](const std::string& objects) {
    std::string closed = host.free_id ? FindClosed(objects, host) : "";
    if (closed.empty()) return;
    wanted->notes.push_back("git does not work: the agent's user cannot enter " + closed);
  };
  for (const std::string& objects : git.directories) check(objects);
  if (git.layers.empty()) return;
  check(git.common + "/objects");
  Result<std::vector<sandbox::WorkspaceFile>> copy = CopyGitDirectory(git, checkout);
  if (!copy.ok()) {
    wanted->notes.push_back("git does not work: " + copy.error().what);
    return;
  }
  std::vector<sandbox::WorkspaceFile> files = std::move(copy).value();
  wanted->workspace_files.insert(wanted->workspace_files.end(), files.begin(), files.end());
  wanted->shown_empty.push_back(checkout + "/.git");
  wanted->repository_directories.push_back(git.common + "/objects");
}

}  // namespace

Result<sandbox::SandboxPlan> PrepareLayout(const Request& request, const Plan& plan,
                                           const std::string& report_dir,
                                           const std::string& scratch,
                                           const std::function<Result<std::string>()>& authority) {
  sandbox::HostView host = sandbox::ReadHost(plan.checkout.path);
  const bool landlock = request.isolation == sandbox::Isolation::kLandlock;
  const bool moved = !landlock && !plan.checkout.shown_at.empty();
  const std::string& checkout = moved ? plan.checkout.shown_at : plan.checkout.path;
  Programs programs = FindRunPrograms(plan.program, plan.policy.parsed.policy.filesystem, checkout,
                                      plan.in_image(), host);
  sandbox::SandboxRequest wanted;
  sandbox::Places places;
  places.checkout = checkout;
  wanted.isolation = request.isolation;
  if (landlock) wanted.scratch = scratch;
  if (landlock) places = sandbox::PlacesIn(scratch, host);
  wanted.policy = plan.policy.parsed.policy;
  wanted.checkout = checkout;
  if (moved) wanted.copied_to = plan.checkout.path;
  wanted.foreign = plan.foreign;
  if (plan.image) wanted.image = PlanImage(*plan.image);
  wanted.argv = plan.agent.argv;
  const std::string name = request.agent == agent::kAnyProgram ? "agentic-ci" : request.agent;
  wanted.home_files = {{".gitconfig", RenderGitConfig(name)}};
  for (const auto& [path, text] : plan.agent.home_files) wanted.home_files.push_back({path, text});
  for (sandbox::WorkspaceFile& file : TrustFiles(places)) {
    wanted.home_files.push_back(std::move(file));
  }
  wanted.env = AgentEnvironment(request, plan.agent, plan.program, programs,
                                plan.credentials.environment, plan.in_image(), places);
  wanted.extra_read_only = std::move(programs.shown);
  wanted.notes = std::move(programs.notes);
  wanted.host_secrets = HostSecrets();
  wanted.host_secrets.insert(wanted.host_secrets.end(), plan.credentials.files.begin(),
                             plan.credentials.files.end());
  for (const std::string& file : plan.credentials.subject_files) {
    // Who renews it puts other files beside it: nothing of their directory is shown.
    const std::string directory = std::filesystem::path(file).parent_path();
    const bool apart = !directory.empty() && !sandbox::Beneath(plan.checkout.path, directory) &&
                       !sandbox::Beneath(directory, plan.checkout.path);
    if (apart) wanted.host_secrets.push_back(directory);
  }
  wanted.host_secrets.insert(wanted.host_secrets.end(), plan.git.included_outside.begin(),
                             plan.git.included_outside.end());
  PlanGit(checkout, plan.git, host, &wanted);
  wanted.workspace_files.insert(wanted.workspace_files.end(), plan.replaced.begin(),
                                plan.replaced.end());
  wanted.notes.insert(wanted.notes.end(), plan.notes.begin(), plan.notes.end());
  // The report by default lies in the checkout; what is written there is not for the agent.
  if (!moved) wanted.shown_empty.push_back(report_dir);
  wanted.limits = request;
  wanted.ca_java = SharedText::Later();
  sandbox::SandboxPlan layout = TRY(sandbox::PlanSandbox(wanted, host));
  codec::JavaKeyStore java;
  java.Add(plan.ca_bundle_pem.get());
  const std::string pem = TRY(authority());
  java.Add(pem);
  wanted.ca_pem.Set(pem);
  wanted.ca_bundle.Set(plan.ca_bundle_pem.get() + "\n" + pem);
  wanted.ca_java.Set(java.Render());
  return layout;
}

Result<std::string> DescribePlan(const Request& request, Plan& plan, Recorder& recorder) {
  Result<std::string> report_dir = sys::RealPath(request.report_dir);  // It may not exist yet.
  sandbox::SandboxPlan layout =
      TRY(PrepareLayout(request, plan, report_dir.ok() ? report_dir.value() : "",
                        "/var/tmp/agentic-ci-scratch", [] { return Result<std::string>(""); })
              .Context("planning the sandbox"));
  const report::PolicyRecord& policy = plan.policy.record;
  std::string text;
  if (plan.image) {
    const image::VerifiedImage& image = plan.image->pulled.image;
    text += PlanLine("image", image.reference.ToString() +
                                  (image.signer.empty() ? ", not signed"
                                                        : " is " + image.manifest_digest +
                                                              ", signed by " + image.signer));
  }
  std::string source = policy.source;
  if (!policy.path.empty()) source += " " + policy.path;
  if (!policy.ref.empty()) source += " at " + policy.ref;
  text += PlanLine("policy", source) + RenderEndpoints(plan.policy.parsed.policy);
  for (const gateway::BoundSecret& secret : plan.credentials.secrets) {
    text += PlanLine("secret", secret.name + " for " + secret.host);
  }
  for (const std::string& script : plan.checks.scripts) text += PlanLine("check", script);
  recorder.secrets() = MaskOf(TRY(KeepSecrets(plan.credentials)));
  text += PlanLines("prompt", recorder.Finish().prompt);
  return text + RenderSandbox(layout);
}

}  // namespace run
