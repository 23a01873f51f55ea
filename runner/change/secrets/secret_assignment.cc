// SPDX-License-Identifier: Apache-2.0
#include "change/secrets/secret_assignment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/ascii.h"

namespace change {
namespace {

constexpr size_t kNameMax = 100;
constexpr size_t kValueMax = 512;
constexpr size_t kMatchesMax = 100;

bool IsName(char c) {
  return ascii::IsUpper(c) || ascii::IsLower(c) || ascii::IsDigit(c) || c == '_' || c == '-';
}
bool IsValue(char c) {
  return ascii::IsUpper(c) || ascii::IsLower(c) || ascii::IsDigit(c) ||
         std::string_view("+/=_-.~!@#%^&*").find(c) != std::string_view::npos;
}

// The words of a name, in lower case: "dbPassword", "DB_PASSWORD" and "db-password" give the same.
std::vector<std::string> Words(std::string_view name) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (c == '_' || c == '-') {
      words.emplace_back();
      continue;
    }
    bool hump =
        ascii::IsUpper(c) && i > 0 && (ascii::IsLower(name[i - 1]) || ascii::IsDigit(name[i - 1]));
    if (hump) words.emplace_back();
    words.back() += ascii::ToLower(c);
  }
  return words;
}

bool NamesSecret(std::string_view name) {
  std::vector<std::string> words = Words(name);
  const std::string& last = words.back();
  for (std::string_view word : {"password", "passwd", "passphrase", "secret", "token", "apikey",
                                "secretkey", "accesskey", "privatekey", "authtoken"}) {
    if (last == word) return true;
  }
  if (words.size() < 2 || last != "key") return false;
  const std::string& before = words[words.size() - 2];
  return before == "api" || before == "secret" || before == "access" || before == "private" ||
         before == "auth" || before == "encryption" || before == "signing" || before == "account";
}

// Shannon entropy in bits per character.
double Entropy(std::string_view text) {
  std::array<int, 256> counts{};
  for (char c : text) ++counts[static_cast<unsigned char>(c)];
  double bits = 0;
  for (int count : counts) {
    if (count == 0) continue;
    double share = static_cast<double>(count) / static_cast<double>(text.size());
    bits -= share * std::log2(share);
  }
  return bits;
}

// Random, as opposed to a word, a path, an identifier or a reference to where the secret is kept.
bool LooksRandom(std::string_view value, bool quoted) {
  if (value.size() < 20 || value.size() >= kValueMax) return false;
  auto digits = std::count_if(value.begin(), value.end(), ascii::IsDigit);
  bool upper = std::any_of(value.begin(), value.end(), ascii::IsUpper);
  bool lower = std::any_of(value.begin(), value.end(), ascii::IsLower);
  bool hex = std::all_of(value.begin(), value.end(),
                         [](char c) { return ascii::IsDigit(c) || (c >= 'a' && c <= 'f'); });
  if (hex) return value.size() >= 32 && digits >= 4 && Entropy(value) >= 3.0;
  if (!upper || !lower || digits < (quoted ? 2 : 3)) return false;
  if (value.find("EXAMPLE") != std::string_view::npos ||
      value.find("example") != std::string_view::npos) {
    return false;
  }
  // A path or a dotted reference: config.secrets.dbPassword2, /run/secrets/Db01.
  if (value.front() == '/' || value.front() == '.') return false;
  if (std::count(value.begin(), value.end(), '.') > 2) return false;
  return Entropy(value) >= 3.7;
}

// Returns where the value starts behind a name that ends at `at`: past a closing quote, a type or
// space, one of `=` `:` `:=` `=>`, space and an opening quote. Returns npos if nothing is assigned.
size_t ValueStart(std::string_view line, size_t at, char& quote) {
  auto space = [&] {
    for (size_t bound = at + 40;
         at < line.size() && at < bound && (line[at] == ' ' || line[at] == '\t');) {
      ++at;
    }
  };
  while (at < line.size() &&
         (line[at] == '\\' || line[at] == '"' || line[at] == '\'' || line[at] == ']')) {
    if (++at > line.size()) break;
  }
  space();
  size_t operators = 0;
  while (at < line.size() && operators < 2 &&
         (line[at] == '=' || line[at] == ':' || line[at] == '>')) {
    ++at;
    ++operators;
  }
  if (operators == 0) return std::string_view::npos;
  space();
  while (at < line.size() && line[at] == '\\') ++at;
  quote = 0;
  if (at < line.size() && (line[at] == '"' || line[at] == '\'' || line[at] == '`'))
    quote = line[at++];
  return at;
}

}  // namespace

std::vector<SecretMatch> FindAssignedSecrets(std::string_view line) {
  std::vector<SecretMatch> found;
  for (size_t at = 0; at < line.size() && found.size() < kMatchesMax;) {
    if (!IsName(line[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < line.size() && IsName(line[end])) ++end;
    std::string_view name = line.substr(at, end - at);
    at = end;
    if (name.size() > kNameMax || !NamesSecret(name)) continue;
    char quote = 0;
    size_t start = ValueStart(line, end, quote);
    if (start == std::string_view::npos) continue;
    size_t stop = start;
    while (stop < line.size() && stop - start < kValueMax && IsValue(line[stop])) ++stop;
    // Without quotes, a call or a member is code and no value.
    bool code = quote == 0 && stop < line.size() &&
                std::string_view("([{$<").find(line[stop]) != std::string_view::npos;
    std::string_view value = line.substr(start, stop - start);
    if (code || !LooksRandom(value, quote != 0)) continue;
    found.push_back({start, value.size(), "a value assigned to " + std::string(name), ""});
    at = stop;
  }
  return found;
}

}  // namespace change
