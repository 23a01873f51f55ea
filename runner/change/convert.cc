// SPDX-License-Identifier: Apache-2.0
#include "change/convert.h"

#include <optional>
#include <utility>
#include <vector>

#include "change/patch.h"

namespace change {
namespace {

bool IsFile(const TreeEntry& entry) { return entry.mode != 0 && entry.mode != kLinkMode; }

// "dir/" and a path in it, relative to the top -> the path relative to the checkout; nullopt if it
// lies outside.
std::optional<std::string> InCheckout(const Repository& repository, const std::string& directory) {
  if (!directory.starts_with(repository.prefix())) return std::nullopt;
  return directory.substr(repository.prefix().size()) + ".gitattributes";
}

Error NotRun(const Conversion& conversion) {
  return Error{Code::kUnsupported,
               "converted by the filter driver " + conversion.driver + ", which is not run"};
}

// Converts one set of changes.
class Changes {
 public:
  Changes(const Repository& repository, MemoryRepository& memory, TreeEntries& before,
          TreeEntries& after, ChangeSet& changes)
      : memory_(memory),
        before_(before),
        after_(after),
        changes_(changes),
        blobs_(repository),
        attributes_(repository, ReadAfter(repository)) {}

  Status Convert() {
    // The attribute files are read while the others are converted.
    TreeEntries before = before_;
    TreeEntries after = after_;
    for (auto& [path, entry] : before) TRY(ConvertOld(path, entry));
    for (auto& [path, entry] : after) TRY(ConvertNew(path, entry));
    for (const std::string& path : unchanged_) {
      auto was = before.find(path);
      auto is = after.find(path);
      if (was == before.end() || is == after.end()) continue;
      bool same = git_oid_equal(&was->second.id, &is->second.id) != 0;
      if (same && was->second.mode == is->second.mode) left_out_.insert(path);
    }
    for (const std::string& path : left_out_) {
      before.erase(path);
      after.erase(path);
    }
    before_ = std::move(before);
    after_ = std::move(after);
    return Ok();
  }

 private:
  // Reads an attribute file as the agent left it: the changed one, or else the checkout's.
  ReadAttributes ReadAfter(const Repository& repository) {
    return [this, &repository, disk = AttributesOnDisk(repository)](const std::string& directory) {
      std::optional<std::string> path = InCheckout(repository, directory);
      auto changed = path ? after_.find(*path) : after_.end();
      if (changed != after_.end()) {
        Result<std::string> text = memory_.ReadBlob(changed->second.id);
        return IsFile(changed->second) && text.ok() ? std::optional(std::move(text).value())
                                                    : std::nullopt;
      }
      bool gone = path && before_.contains(*path);
      return gone ? std::nullopt : disk(directory);
    };
  }

  void Lose(const std::string& path, const Error& error) {
    if (left_out_.insert(path).second) LeaveOut(changes_, path, error.what, true);
  }

  Status Replace(const std::string& path, TreeEntry& entry, const std::string& bytes,
                 const Result<std::string>& blob) {
    if (!blob.ok()) {
      Lose(path, blob.error());
    } else if (blob.value() != bytes) {
      entry.id = TRY(memory_.AddBlob(blob.value()));
      unchanged_.insert(path);
    }
    return Ok();
  }

  Status ConvertOld(const std::string& path, TreeEntry& entry) {
    if (!IsFile(entry)) return Ok();
    std::string bytes = TRY(memory_.ReadBlob(entry.id));
    Result<std::string> blob = blobs_.Of(path, bytes);
    if (blob.ok() && IsLfsPointer(blob.value())) pointers_.insert(blob.value());
    return Replace(path, entry, bytes, blob);
  }

  Status ConvertNew(const std::string& path, TreeEntry& entry) {
    if (!IsFile(entry) || left_out_.contains(path)) return Ok();
    Result<Conversion> conversion = blobs_.ConversionOf(attributes_, path);
    if (conversion.ok() && conversion.value().none()) return Ok();
    std::string bytes = TRY(memory_.ReadBlob(entry.id));
    if (!conversion.ok()) return Replace(path, entry, bytes, std::move(conversion).error());
    bool crlf = blobs_.CrlfInIndex(conversion.value(), path, bytes);
    Result<std::string> blob = ToBlob(conversion.value(), bytes, crlf);
    bool stored = blob.ok() && conversion.value().driver == kLfs && blob.value() != bytes;
    if (stored && !pointers_.contains(blob.value())) {
      blob = Error{Code::kUnsupported, "kept by git-lfs, which a patch cannot carry"};
    }
    return Replace(path, entry, bytes, blob);
  }

  MemoryRepository& memory_;
  TreeEntries& before_;
  TreeEntries& after_;
  ChangeSet& changes_;
  CheckoutBlobs blobs_;
  Attributes attributes_;
  std::set<std::string> pointers_;   // git-lfs pointers of files in the checkout.
  std::set<std::string> unchanged_;  // Paths that may have the same blob on both sides.
  std::set<std::string> left_out_;
};

}  // namespace

Result<Conversion> CheckoutBlobs::ConversionOf(Attributes& attributes,
                                               const std::string& path) const {
  Conversion conversion = TRY(attributes.Of(path));
  if (conversion.text == Conversion::Text::kNo && crlf_.contains(path)) {
    conversion.text = Conversion::Text::kGuessed;
    conversion.crlf = true;
  }
  if (conversion.driver == kLfs) {
    if (no_lfs_.contains(path)) conversion.driver.clear();
    return conversion;
  }
  // To git, a driver that is not configured changes nothing.
  bool runs = repository_.conversion_facts().drivers.contains(conversion.driver);
  return runs ? Result<Conversion>(NotRun(conversion)) : conversion;
}

bool CheckoutBlobs::CrlfInIndex(const Conversion& conversion, const std::string& path,
                                const std::string& bytes) const {
  if (conversion.text != Conversion::Text::kGuessed) return false;
  if (bytes.find('\r') == std::string::npos) return false;
  std::optional<std::string> blob = repository_.TrackedBlob(path);
  return blob && IsCrlfText(*blob);
}

Result<std::string> CheckoutBlobs::Of(const std::string& path, const std::string& bytes) {
  Result<Conversion> conversion = ConversionOf(attributes_, path);
  bool pairs = bytes.find("\r\n") != std::string::npos;
  if (conversion.ok() && conversion.value().none() && !pairs) return bytes;
  std::optional<std::string> tracked = repository_.TrackedId(path);
  bool as_is = tracked && TRY(BlobId(bytes)) == *tracked;
  if (as_is) {
    bool lfs = conversion.ok() && conversion.value().driver == kLfs;
    if (lfs && !IsLfsPointer(bytes)) no_lfs_.insert(path);
    return bytes;
  }
  Conversion known = TRY(std::move(conversion));
  if (known.none()) {
    if (!tracked) return bytes;
    // Converts as the user's core.autocrlf does.
    Conversion text;
    text.text = Conversion::Text::kYes;
    std::string blob = TRY(ToBlob(text, bytes, false));
    if (TRY(BlobId(blob)) != *tracked) return bytes;
    crlf_.insert(path);
    return blob;
  }
  std::string blob = TRY(ToBlob(known, bytes, CrlfInIndex(known, path, bytes)));
  bool by_driver = !known.driver.empty() && known.driver != kLfs;
  if (by_driver && tracked && TRY(BlobId(blob)) != *tracked) return NotRun(known);
  return blob;
}

Status ConvertToBlobs(const Repository& repository, MemoryRepository& memory, TreeEntries& before,
                      TreeEntries& after, ChangeSet& changes) {
  return Changes(repository, memory, before, after, changes).Convert();
}

Status ConvertToFiles(const Repository& repository, const CheckoutBlobs& blobs,
                      const std::map<std::string, std::string>& pointers, TreeEdit& edit) {
  auto read = [&edit, &repository,
               disk = AttributesOnDisk(repository)](const std::string& directory) {
    std::optional<std::string> path = InCheckout(repository, directory);
    auto written = path ? edit.written.find(*path) : edit.written.end();
    if (written != edit.written.end()) {
      return written->second.mode == kLinkMode ? std::nullopt
                                               : std::optional(written->second.bytes);
    }
    bool removed = path && edit.removed.contains(*path);
    return removed ? std::nullopt : disk(directory);
  };
  Attributes attributes(repository, read);
  std::vector<std::pair<std::string*, std::string>> files;
  for (auto& [path, file] : edit.written) {
    if (file.mode == kLinkMode) continue;
    Conversion conversion = TRY(blobs.ConversionOf(attributes, path).Context(path));
    if (conversion.none()) continue;
    std::string bytes = file.bytes;
    auto kept = pointers.find(bytes);
    if (conversion.driver == kLfs && kept != pointers.end()) bytes = kept->second;
    const std::string id = TRY(BlobId(file.bytes));
    bytes = TRY(ToFile(conversion, std::move(bytes), id).Context(path));
    files.emplace_back(&file.bytes, std::move(bytes));
  }
  for (auto& [into, bytes] : files) *into = std::move(bytes);
  return Ok();
}

}  // namespace change
