// SPDX-License-Identifier: Apache-2.0
#include "change/repository.h"

#include <fcntl.h>
#include <git2/sys/repository.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/sys.h"
#include "change/git_handle.h"
#include "change/protected_path.h"
#include "change/repository_state.h"
#include "change/rules/ignore_file.h"
#include "change/tree_file.h"
#include "codec/text/ref_name.h"
#include "codec/text/shell_word.h"

namespace change {
namespace {

bool IsHexId(std::string_view text) {
  return text.size() == GIT_OID_HEXSZ && std::all_of(text.begin(), text.end(), [](char c) {
           return ascii::IsDigit(c) || (c >= 'a' && c <= 'f');
         });
}

// "https://user:token@host/path" -> "https://host/path"; "git@host:path" -> "host:path".
std::string WithoutUser(std::string_view url) {
  size_t scheme = url.find("://");
  size_t start = scheme == std::string_view::npos ? 0 : scheme + 3;
  size_t end = url.find(scheme == std::string_view::npos ? ':' : '/', start);
  if (end == std::string_view::npos) end = url.size();
  // A user name may itself hold an `@`, and `git@host` has its first colon after the host; a
  // password without a scheme ("user:pw@host:path") is not an address git knows.
  size_t at = url.substr(start, end - start).rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  return std::string(url.substr(0, start)) + std::string(url.substr(start + at + 1));
}

Error NoSuchRef(const std::string& ref) {
  return Error{Code::kNotFound, "no ref named " + ref + " in the checkout",
               "git fetch --depth=1 origin " + codec::ShellArgument(ref)};
}

// Git fetches what a partial clone does not have when it is asked for it; libgit2 does not. All of
// the configuration's directory at once: a run reads several of its files.
std::string FetchObjects(const std::string& top, const std::string& ref, const std::string& path) {
  const std::string own = ".agentic-ci";
  const std::string& wanted = path.starts_with(own + "/") ? own : path;
  return "git -C " + codec::ShellArgument(top) + " archive --output=/dev/null " +
         codec::ShellArgument(ref) + " " + codec::ShellArgument(wanted);
}

// The object that `name` points to, peeled to a commit; null if there is no such reference.
Result<GitCommit> CommitOfReference(git_repository* repository, const std::string& name) {
  git_oid id;
  int status = git_reference_name_to_id(&id, repository, name.c_str());
  if (status == GIT_ENOTFOUND || status == GIT_EINVALIDSPEC) return GitCommit();
  if (status != 0) return GitError(Code::kInvalid, "reading " + name);
  git_object* raw = nullptr;
  if (git_object_lookup(&raw, repository, &id, GIT_OBJECT_ANY) != 0) {
    Error error = GitError(Code::kNotFound, "reading " + name);
    error.hint = "git fsck";
    return error;
  }
  GitObject object(raw);
  git_object* peeled = nullptr;
  if (git_object_peel(&peeled, object.get(), GIT_OBJECT_COMMIT) != 0) {
    return GitError(Code::kInvalid, name + " does not lead to a commit");
  }
  return GitCommit(reinterpret_cast<git_commit*>(peeled));
}

// Returns the commit of a branch, here or at the origin, of a ref of a remote ("origin/main") or of
// a tag; null if there is none of that name. Who names a branch must not decide what another ref
// means, so these must agree; only the origin's branch gives way to the one here.
Result<GitCommit> FindShort(git_repository* repository, const std::string& ref) {
  const std::string at_origin = "refs/remotes/origin/" + ref;
  GitCommit found;
  for (const std::string& name :
       {"refs/heads/" + ref, at_origin, "refs/remotes/" + ref, "refs/tags/" + ref}) {
    GitCommit commit = TRY(CommitOfReference(repository, name));
    if (commit == nullptr) continue;
    if (found == nullptr) {
      found = std::move(commit);
    } else if (name != at_origin &&
               git_oid_equal(git_commit_id(found.get()), git_commit_id(commit.get())) == 0) {
      return Error{Code::kInvalid, ref + " is the name of several refs with different commits",
                   "--policy-ref " + codec::ShellArgument(name)};
    }
  }
  return found;
}

struct Configuration {
  std::string origin_url;
  bool partial = false;
  ConversionFacts conversion;
};

// "filter.NAME.clean" and "filter.NAME.process" -> "NAME".
std::string DriverOf(std::string_view key) {
  constexpr std::string_view kSection = "filter.";
  size_t end = key.rfind('.');
  bool runs = key.ends_with(".clean") || key.ends_with(".process");
  if (!runs || !key.starts_with(kSection) || end <= kSection.size()) return {};
  return std::string(key.substr(kSection.size(), end - kSection.size()));
}

ConversionFacts ReadConversion(git_config* own) {
  ConversionFacts facts;
  const char* text = nullptr;
  int yes = 0;
  if (git_config_get_string(&text, own, "core.autocrlf") == 0) {
    if (ascii::LowerCase(text) == "input") {
      facts.auto_crlf = AutoCrlf::kInput;
    } else if (git_config_parse_bool(&yes, text) == 0 && yes != 0) {
      facts.auto_crlf = AutoCrlf::kYes;
    }
  }
  if (git_config_get_string(&text, own, "core.eol") == 0) {
    facts.native_crlf = ascii::LowerCase(text) == "crlf";
  }
  git_config_iterator* raw = nullptr;
  if (git_config_iterator_new(&raw, own) != 0) return facts;
  std::unique_ptr<git_config_iterator, FreeWith<git_config_iterator_free>> keys(raw);
  for (git_config_entry* entry = nullptr; git_config_next(&entry, raw) == 0;) {
    std::string driver = DriverOf(entry->name);
    if (!driver.empty()) facts.drivers.insert(std::move(driver));
  }
  return facts;
}

// A file's text; nullopt if there is no plain one of at most kIgnoreBytesMax.
std::optional<std::string> ReadRules(int directory, const std::string& path) {
  Result<Fd> file = sys::OpenBeneath(directory, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat facts {};
  bool plain = file.ok() && ::fstat(file.value().get(), &facts) == 0 && S_ISREG(facts.st_mode);
  if (!plain) return std::nullopt;
  Result<std::string> rules = sys::ReadAll(file.value().get(), kIgnoreBytesMax);
  return rules.ok() ? std::optional(std::move(rules).value()) : std::nullopt;
}

// Reads, as ReadRules() does, a file that all working trees share.
std::optional<std::string> ReadShared(git_repository* repository, const std::string& path) {
  Result<Fd> common = sys::Open(git_repository_commondir(repository), O_RDONLY | O_DIRECTORY);
  return common.ok() ? ReadRules(common.value().get(), path) : std::nullopt;
}

// Reads what matters, then puts an empty configuration in place of the repository's own.
Result<Configuration> TakeConfiguration(git_repository* repository) {
  git_config* raw = nullptr;
  if (git_repository_config_snapshot(&raw, repository) != 0) {
    return GitError(Code::kInvalid, "reading .git/config");
  }
  GitConfig own(raw);
  Configuration taken;
  const char* text = nullptr;
  if (git_config_get_string(&text, own.get(), "remote.origin.url") == 0) {
    taken.origin_url = WithoutUser(text);
  }
  int promisor = 0;
  taken.partial =
      git_config_get_string(&text, own.get(), "extensions.partialclone") == 0 ||
      (git_config_get_bool(&promisor, own.get(), "remote.origin.promisor") == 0 && promisor != 0);
  taken.conversion = ReadConversion(own.get());
  taken.conversion.attributes = ReadShared(repository, "info/attributes").value_or("");
  git_config* empty = nullptr;
  if (git_config_new(&empty) != 0) return GitError(Code::kBug, "making a configuration");
  GitConfig none(empty);
  if (git_repository_set_config(repository, none.get()) != 0) {
    return GitError(Code::kBug, "setting the configuration");
  }
  return taken;
}

// git's own files without a working tree around them.
bool IsGitDirectory(const std::string& path) {
  return sys::Exists(path + "/HEAD") && sys::Exists(path + "/objects") &&
         sys::Exists(path + "/refs");
}

// Returns where git would find the working tree that `directory` (canonical) is in. A `.git` above
// it that belongs to another user is not taken for its own.
Result<std::string> FindTop(const std::string& directory) {
  struct stat own {};
  if (::stat(directory.c_str(), &own) != 0) return Errno("looking at " + directory);
  for (std::string top = directory;; top.resize(top.rfind('/'))) {
    struct stat git {};
    const std::string path = top + "/.git";
    if (::lstat(path.c_str(), &git) == 0) {
      bool trusted = git.st_uid == own.st_uid || git.st_uid == ::geteuid() || git.st_uid == 0;
      if (trusted || top == directory) return top;
      return Error{Code::kSetup, path + " and " + directory + " have different owners",
                   "--workdir DIR, with a repository of its own"};
    }
    if (errno != ENOENT && errno != ENOTDIR) return Errno("looking for " + path);
    if (IsGitDirectory(top)) {
      bool bare = !top.ends_with("/.git");
      return Error{
          Code::kSetup, top + " is a git repository without a working tree",
          bare ? "git -C " + codec::ShellArgument(top) + " worktree add DIR, then --workdir DIR"
               : "--workdir " + codec::ShellArgument(top.substr(0, top.rfind('/')))};
    }
    if (top.empty()) break;
  }
  return Error{Code::kNotFound, directory + " is not in a git checkout"};
}

// libgit2 opens these without looking, and would wait for a pipe's writer for ever.
Status RefusePipes(const std::string& git) {
  for (const char* name : {"", "/config", "/config.worktree", "/commondir", "/HEAD", "/index",
                           "/packed-refs", "/shallow", "/info/exclude", "/info/attributes"}) {
    struct stat facts {};
    std::string path = git + name;
    if (::stat(path.c_str(), &facts) != 0 || S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)) {
      continue;
    }
    return Error{Code::kInvalid, path + " is neither a file nor a directory"};
  }
  return Ok();
}

}  // namespace

Result<GitCommit> FindCommit(git_repository* repository, const std::string& ref) {
  if (!codec::ValidRefName(ref)) return Error{Code::kInvalid, "not a valid ref name"};
  if (IsHexId(ref)) {
    git_oid id;
    git_commit* commit = nullptr;
    if (git_oid_fromstr(&id, ref.c_str()) == 0 &&
        git_commit_lookup(&commit, repository, &id) == 0) {
      return GitCommit(commit);
    }
    return NoSuchRef(ref);
  }
  const bool full = ref == "HEAD" || ref.starts_with("refs/");
  GitCommit commit = TRY(full ? CommitOfReference(repository, ref) : FindShort(repository, ref));
  if (commit == nullptr) return NoSuchRef(ref);
  return commit;
}

Repository::Repository(std::unique_ptr<State> state) : state_(std::move(state)) {}
Repository::Repository(Repository&&) noexcept = default;
Repository& Repository::operator=(Repository&&) noexcept = default;
Repository::~Repository() = default;

Result<Repository> Repository::Open(const std::string& checkout) {
  TRY(StartGit());
  const std::string inside = TRY(sys::RealPath(checkout));
  const std::string top = TRY(FindTop(inside));
  TRY(RefusePipes(top + "/.git"));
  auto state = std::make_unique<State>();
  git_repository* raw = nullptr;
  if (git_repository_open_ext(&raw, top.c_str(), GIT_REPOSITORY_OPEN_NO_SEARCH, nullptr) != 0) {
    Error error = GitError(Code::kInvalid, "opening the repository of " + top);
    if (error.kind != ErrorKind::kSha256Objects) return error;
    return Error{
        Code::kUnsupported,
        "the repository of " + top + " names its objects by SHA-256, and only SHA-1 is supported",
        "git init --object-format=sha1 DIR, then --workdir DIR with a copy of the files"};
  }
  state->git.reset(raw);
  Configuration configuration = TRY(TakeConfiguration(raw));
  state->origin_url = std::move(configuration.origin_url);
  state->partial = configuration.partial;
  state->conversion = std::move(configuration.conversion);
  // core.worktree may have said otherwise; ignore rules and index belong to this directory. Only
  // where it differs: libgit2 1.5 leaks when it is set to what it is.
  const std::string directory = top + "/";
  const char* workdir = git_repository_workdir(raw);
  bool same = workdir != nullptr && directory == workdir;
  if (!same && git_repository_set_workdir(raw, directory.c_str(), 0) != 0) {
    return GitError(Code::kInvalid, "setting the working tree to " + top);
  }
  state->top = top;
  if (inside != top) state->prefix = inside.substr(directory.size()) + "/";
  return Repository(std::move(state));
}

const std::string& Repository::top() const { return state_->top; }

const std::string& Repository::prefix() const { return state_->prefix; }

bool Repository::unborn() const { return git_repository_head_unborn(state_->git.get()) == 1; }

Result<std::string> Repository::ResolveCommit(const std::string& ref) const {
  GitCommit commit = TRY(FindCommit(state_->git.get(), ref));
  char text[GIT_OID_HEXSZ + 1];
  return std::string(git_oid_tostr(text, sizeof text, git_commit_id(commit.get())));
}

// libgit2 says that a commit at the edge of a shallow checkout has no parents.
Result<std::vector<std::string>> Repository::ParentsOf(const std::string& ref) const {
  constexpr std::string_view kParent = "parent ";
  GitCommit commit = TRY(FindCommit(state_->git.get(), ref));
  std::vector<std::string> parents;
  std::string_view rest = git_commit_raw_header(commit.get());
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with(kParent)) parents.emplace_back(line.substr(kParent.size()));
  }
  return parents;
}

Error Repository::State::Missing(const std::string& ref, const std::string& path) const {
  Error error = GitError(Code::kNotFound, "reading " + path + " at " + ref);
  if (partial) error.hint = FetchObjects(top, ref, path);
  return error;
}

// Component by component: libgit2's own lookup by path cannot tell a missing object from a missing
// file.
Result<std::optional<Repository::State::Found>> Repository::State::Find(
    const std::string& ref, const std::string& path) const {
  if (!path.empty() && !ValidPath(path)) {
    return Error{Code::kInvalid, "not a relative path: " + path};
  }
  GitCommit commit = TRY(FindCommit(git.get(), ref));
  Found found;
  found.id = *git_commit_tree_id(commit.get());
  for (std::string_view rest = path; !rest.empty();) {
    if (found.mode != GIT_FILEMODE_TREE) return std::optional<Found>();
    git_tree* raw = nullptr;
    if (git_tree_lookup(&raw, git.get(), &found.id) != 0) return Missing(ref, path);
    GitTree tree(raw);
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const git_tree_entry* entry = git_tree_entry_byname(tree.get(), name.c_str());
    if (entry == nullptr) return std::optional<Found>();
    found.mode = git_tree_entry_filemode(entry);
    if (found.mode == GIT_FILEMODE_LINK || found.mode == GIT_FILEMODE_COMMIT) {
      return Error{Code::kInvalid,
                   path + " at " + ref +
                       (found.mode == GIT_FILEMODE_LINK ? ": a symbolic link is not followed"
                                                        : ": a submodule is not entered")};
    }
    found.id = *git_tree_entry_id(entry);
  }
  return std::optional<Found>(found);
}

Result<std::optional<std::string>> Repository::ReadAtRef(const std::string& ref,
                                                         const std::string& path,
                                                         size_t bytes_max) const {
  const std::string where = path + " at " + ref;
  const std::optional<State::Found> found = TRY(state_->Find(ref, path));
  if (!found) return std::optional<std::string>();
  if (found->mode == GIT_FILEMODE_TREE) {
    return Error{Code::kInvalid, where + ": is a directory", {}, 0, ErrorKind::kDirectory};
  }
  git_blob* raw = nullptr;
  if (git_blob_lookup(&raw, state_->git.get(), &found->id) != 0) return state_->Missing(ref, path);
  GitBlob blob(raw);
  auto size = static_cast<size_t>(git_blob_rawsize(blob.get()));
  if (size > bytes_max) {
    return Error{Code::kInvalid, where + ": larger than " + std::to_string(bytes_max) + " bytes"};
  }
  return std::optional(
      std::string(static_cast<const char*>(git_blob_rawcontent(blob.get())), size));
}

Result<std::vector<std::string>> Repository::NamesAtRef(const std::string& ref,
                                                        const std::string& directory) const {
  std::vector<std::string> names;
  const std::optional<State::Found> found = TRY(state_->Find(ref, directory));
  if (!found || found->mode != GIT_FILEMODE_TREE) return names;
  git_tree* raw = nullptr;
  if (git_tree_lookup(&raw, state_->git.get(), &found->id) != 0) {
    return state_->Missing(ref, directory);
  }
  GitTree tree(raw);
  for (size_t at = 0; at < git_tree_entrycount(tree.get()); ++at) {
    names.emplace_back(git_tree_entry_name(git_tree_entry_byindex(tree.get(), at)));
  }
  return names;
}

std::string Repository::ExcludeRules() const {
  return ReadShared(state_->git.get(), "info/exclude").value_or("");
}

std::optional<std::string> Repository::IgnoreFileIn(const std::string& directory) const {
  Result<Fd> top = sys::Open(state_->top, O_RDONLY | O_DIRECTORY);
  if (!top.ok()) return std::nullopt;
  return ReadRules(top.value().get(), directory + ".gitignore");
}

git_index* Repository::State::Index() {
  git_index* raw = nullptr;
  if (index != nullptr) return index.get();
  struct stat file {};
  const std::string path = std::string(git_repository_path(git.get())) + "index";
  if (::lstat(path.c_str(), &file) == 0) index_time = file.st_mtim;
  if (git_repository_index(&raw, git.get()) == 0) {
    index.reset(raw);
    return raw;
  }
  Result<GitCommit> head = FindCommit(git.get(), "HEAD");
  git_tree* raw_tree = nullptr;
  if (!head.ok() || git_commit_tree(&raw_tree, head.value().get()) != 0) return nullptr;
  const GitTree tree(raw_tree);
  if (git_index_new(&raw) != 0) return nullptr;
  GitIndex made(raw);
  if (git_index_read_tree(raw, tree.get()) != 0) return nullptr;
  index = std::move(made);
  index_is_head = true;
  return raw;
}

bool Repository::Tracks(const std::string& path) const { return state_->Entry(path) != nullptr; }

bool Repository::TracksBeneath(const std::string& directory) const {
  git_index* index = state_->Index();
  size_t at = 0;
  return index != nullptr &&
         git_index_find_prefix(&at, index, (state_->prefix + directory + "/").c_str()) == 0;
}

// What was written in the same moment as the index, or later, may have changed unseen.
std::optional<std::string> Repository::CleanBlob(const std::string& path,
                                                 const struct stat& file) const {
  const git_index_entry* entry = state_->Entry(path);
  if (entry == nullptr || state_->index_is_head) return std::nullopt;
  auto is = [](const git_index_time& time, const timespec& other) {
    return time.seconds == static_cast<int32_t>(other.tv_sec) &&
           time.nanoseconds == static_cast<uint32_t>(other.tv_nsec);
  };
  const std::pair written(file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  const timespec& index = state_->index_time;
  if (written >= std::pair(index.tv_sec, index.tv_nsec) || !is(entry->mtime, file.st_mtim) ||
      !is(entry->ctime, file.st_ctim) || entry->ino != static_cast<uint32_t>(file.st_ino) ||
      entry->file_size != static_cast<uint32_t>(file.st_size) ||
      static_cast<int>(entry->mode) != GitMode(file.st_mode)) {
    return std::nullopt;
  }
  char text[GIT_OID_HEXSZ + 1];
  return std::string(git_oid_tostr(text, sizeof text, &entry->id));
}

std::optional<std::string> Repository::TrackedId(const std::string& path) const {
  const git_index_entry* entry = state_->Entry(path);
  if (entry == nullptr) return std::nullopt;
  char text[GIT_OID_HEXSZ + 1];
  return std::string(git_oid_tostr(text, sizeof text, &entry->id));
}

std::optional<std::string> Repository::TrackedBlob(const std::string& path) const {
  const git_index_entry* entry = state_->Entry(path);
  git_blob* raw = nullptr;
  if (entry == nullptr || git_blob_lookup(&raw, state_->git.get(), &entry->id) != 0) {
    return std::nullopt;
  }
  GitBlob blob(raw);
  return std::string(static_cast<const char*>(git_blob_rawcontent(raw)),
                     static_cast<size_t>(git_blob_rawsize(raw)));
}

Result<std::optional<Repository::GitFile>> Repository::SparseFileAt(const std::string& path) const {
  const git_index_entry* entry = state_->Entry(path);
  if (entry == nullptr || entry->mode == GIT_FILEMODE_COMMIT) return std::optional<GitFile>();
  // The tree of HEAD does not say what is left out of the working tree.
  const bool sparse = state_->index_is_head
                          ? sys::Exists(std::string(git_repository_path(state_->git.get())) +
                                        "info/sparse-checkout")
                          : (entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0;
  if (!sparse) return std::optional<GitFile>();
  std::optional<std::string> blob = TrackedBlob(path);
  if (!blob) return Error{Code::kNotFound, "its blob is not in the repository"};
  return std::optional(GitFile{static_cast<int>(entry->mode), *std::move(blob)});
}

Result<std::vector<std::string>> Repository::TrackedLinks() const {
  git_index* index = state_->Index();
  if (index == nullptr) return GitError(Code::kInvalid, "reading the index");
  std::vector<std::string> links;
  for (size_t at = 0; at < git_index_entrycount(index); ++at) {
    const git_index_entry* entry = git_index_get_byindex(index, at);
    if (entry->mode == GIT_FILEMODE_LINK) links.emplace_back(entry->path);
  }
  return links;
}

bool Repository::TracksSubmodule(const std::string& path) const {
  const git_index_entry* entry = state_->Entry(path);
  return entry != nullptr && entry->mode == GIT_FILEMODE_COMMIT;
}

const ConversionFacts& Repository::conversion_facts() const { return state_->conversion; }

std::string Repository::OriginUrl() const { return state_->origin_url; }

}  // namespace change
