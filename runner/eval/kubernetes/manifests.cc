// SPDX-License-Identifier: Apache-2.0
#include "eval/kubernetes/manifests.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "agent/description.h"
#include "base/ascii.h"
#include "codec/data/embedded_file.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/utf8.h"

namespace eval {

std::span<const codec::EmbeddedFile> EmbeddedManifests();

namespace {

constexpr size_t kFilesBytesMax = size_t{1} << 20;  // A ConfigMap holds no more.

// JSON's texts are YAML's.
std::string Quoted(std::string_view text) {
  return codec::RenderJsonLine(codec::Json(std::string(text)));
}

// Returns whether YAML's block form has exactly this text: lines of printable characters, the last
// of which ends.
bool IsBlock(std::string_view text) {
  if (!text.ends_with('\n') || text.ends_with("\n\n") || text.size() < 2) return false;
  while (!text.empty()) {
    const codec::Utf8Character one = codec::NextUtf8(text);
    const bool is_control = one.value < ' ' || (one.value >= 0x7f && one.value < 0xa0);
    const bool is_break = one.value == 0x2028 || one.value == 0x2029 || one.value == 0xfeff;
    const bool is_usual = one.value == '\n' || one.value == '\t';
    if (!one.valid || is_break || (is_control && !is_usual)) return false;
    text.remove_prefix(one.bytes);
  }
  return true;
}

std::string Block(std::string_view text) {
  std::string block = "|2\n";
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end > 0) block.append("    ").append(text.substr(0, end));
    block += '\n';
    text.remove_prefix(end + 1);
  }
  return block;
}

std::string KeyOf(size_t number) {
  return number == 0 ? "suite" : "file-" + std::to_string(number);
}

// The texts of a ConfigMap, and those of its files that YAML would change.
std::string RenderFiles(const std::vector<ClusterFile>& files) {
  std::string texts;
  std::string bytes;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string start = "  " + KeyOf(i) + ": ";
    if (IsBlock(files[i].text)) {
      texts += start + Block(files[i].text);
    } else {
      bytes += start + Quoted(codec::EncodeBase64(files[i].text)) + "\n";
    }
  }
  return (texts.empty() ? "" : "data:\n" + texts) + (bytes.empty() ? "" : "binaryData:\n" + bytes);
}

// Kubernetes replaces $(NAME) in arguments, and takes "$$" for "$".
std::string RenderArguments(const std::vector<std::string>& words) {
  if (words.empty()) return " []";
  std::string list;
  for (const std::string& word : words) {
    std::string escaped;
    for (char c : word) escaped.append(c == '$' ? 2 : 1, c);
    list += "\n            - " + Quoted(escaped);
  }
  return list;
}

constexpr int64_t kTokenSeconds = 3600;  // Kubernetes writes another one before.

std::string RenderTokenMounts(const std::vector<ClusterToken>& tokens) {
  std::string list;
  for (size_t i = 0; i < tokens.size(); ++i) {
    list += "            - {name: token-" + std::to_string(i) +
            ", mountPath: " + Quoted(tokens[i].directory) + ", readOnly: true}\n";
  }
  return list;
}

std::string RenderTokenVolumes(const std::vector<ClusterToken>& tokens) {
  std::string list;
  for (size_t i = 0; i < tokens.size(); ++i) {
    list += "        - name: token-" + std::to_string(i) +
            "\n          projected:\n            sources:\n              - serviceAccountToken: "
            "{audience: " +
            Quoted(tokens[i].audience) + ", expirationSeconds: " + std::to_string(kTokenSeconds) +
            ", path: " + Quoted(tokens[i].file) + "}\n";
  }
  return list;
}

std::string Mebibytes(int64_t bytes) {
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + "Mi";
}

Status CheckFiles(const std::vector<ClusterFile>& files) {
  size_t bytes = 0;
  for (const ClusterFile& file : files) {
    bytes += file.text.size();
    if (("/" + file.path + "/").find("/../") == std::string::npos) continue;
    return Error{Code::kInvalid, "a ConfigMap can have no file '" + file.path + "'"};
  }
  if (bytes <= kFilesBytesMax) return Ok();
  return Error{Code::kInvalid, "the suite and the files that it and the options name have " +
                                   std::to_string(bytes) + " bytes, and a ConfigMap at most " +
                                   std::to_string(kFilesBytesMax)};
}

}  // namespace

bool IsClusterName(std::string_view name) {
  auto fits = [](char c) { return ascii::IsLower(c) || ascii::IsDigit(c) || c == '-'; };
  return !name.empty() && name.size() <= kClusterNameBytesMax && ascii::IsLower(name.front()) &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), fits);
}

Result<std::string> RenderManifests(const ClusterRun& run) {
  TRY(CheckFiles(run.files));
  std::string items;
  for (size_t i = 0; i < run.files.size(); ++i) {
    items += "\n              - {key: " + KeyOf(i) + ", path: " + Quoted(run.files[i].path) + "}";
  }
  const bool secret = !run.variables.empty();
  const agent::Words words = {
      {"name", run.name},
      {"image", Quoted(run.image)},
      {"cells", std::to_string(run.cells)},
      {"shards", std::to_string(run.shards)},
      {"suite", Quoted(std::string(kClusterFiles) + run.files.front().path)},
      {"files", RenderFiles(run.files)},
      {"items", items},
      {"options", RenderArguments(run.options)},
      {"merge_options", RenderArguments(run.merge_options)},
      {"cpu", std::to_string(static_cast<int64_t>(std::ceil(run.cpus * 1000))) + "m"},
      {"memory", Mebibytes(run.memory_bytes)},
      {"disk", Mebibytes(run.disk_bytes)},
      {"token_mounts", RenderTokenMounts(run.tokens)},
      {"token_volumes", RenderTokenVolumes(run.tokens)},
      {"credentials",
       secret ? "          envFrom:\n            - {secretRef: {name: " + run.name + "}}\n" : ""},
      {"secret", secret ? "#     kubectl create secret generic " + run.name +
                              " --from-literal=" + run.variables.front() + "=...\n"
                        : ""}};
  return agent::Expand(EmbeddedManifests().front().text, words);
}

}  // namespace eval
