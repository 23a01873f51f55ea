// SPDX-License-Identifier: Apache-2.0
#include "change/secrets/secret_pattern.h"

#include <catch2/catch.hpp>
#include <chrono>

namespace change {
namespace {

// Put together here, so that no scanner takes this file for a leak.
const std::string kThirtySix = "aB3dE5gH7jK9mN1pQ3sT5vX7zB9dF1hJ3lN5";
const std::string kGithub = "ghp_" + kThirtySix;
const std::string kAws = std::string("AKIA") + "Q3EGSZPL7NH2K4DX";

TEST_CASE("Tokens are found by the form their issuers give them") {
  for (const std::string& token :
       {kGithub, "gho_" + kThirtySix, "ghu_" + kThirtySix, "ghs_" + kThirtySix, "ghr_" + kThirtySix,
        "github_pat_11ABCDEFG0" + kThirtySix, "glpat-" + kThirtySix.substr(0, 20),
        "sk-ant-api03-" + kThirtySix, "sk-proj-" + kThirtySix, "sk-" + kThirtySix + "T3BlbkFJabcd",
        kAws, std::string("ASIA") + "Q3EGSZPL7NH2K4DX",
        std::string("xoxb-") + "1234567890-" + kThirtySix, "npm_" + kThirtySix,
        std::string("AIza") + "SyB3dE5gH7jK9mN1pQ3sT5vX7zB9dF1hJ3l"}) {
    CAPTURE(token);
    std::vector<SecretMatch> found = FindSecrets("const t = (" + token + ");");
    REQUIRE(found.size() == 1);
    CHECK(found[0].at == 11);
    CHECK(found[0].length == token.size());
    CHECK(found[0].certain);
    CHECK(found[0].shown.size() < 12);
  }
}

TEST_CASE("Tokens are found wherever they stand") {
  for (const std::string& before :
       {std::string("`"), std::string("https://x-access-token:"), std::string("text\\n"),
        std::string("\x1b[31m"), std::string("token%3D"), std::string("_"), std::string("\"")}) {
    CAPTURE(before);
    CHECK(FindSecrets(before + kGithub).size() == 1);
    if (before != "_") CHECK(FindSecrets(before + kAws).size() == 1);
  }
}

TEST_CASE("Near misses are left alone") {
  for (const std::string& text :
       {"ghp_" + kThirtySix.substr(1), std::string("ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        std::string("AKIA") + "IOSFODNN7EXAMPLE", "x" + kAws, kAws + "7",
        std::string("glpat-short"), std::string("sk-ant-..."),
        std::string("task-management-with-a-rather-long-name-for-it-indeed"),
        std::string("xoxb-token"), std::string("eyJhbGciOiJIUzI1NiJ9"),
        std::string("eyJhbGciOiJIUzI1NiJ9.notjson00000000000.signature00000"),
        "npm_" + kThirtySix + "x", std::string("-----BEGIN CERTIFICATE-----"),
        std::string("-----BEGIN PUBLIC KEY-----")}) {
    CAPTURE(text);
    CHECK(FindSecrets(text).empty());
  }
}

TEST_CASE("A web token and a private key are found") {
  std::string token = std::string("eyJhbGciOiJIUzI1NiJ9") + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0." +
                      "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
  REQUIRE(FindSecrets("Bearer " + token).size() == 1);
  CHECK(FindSecrets("Bearer " + token)[0].length == token.size());
  for (const char* label : {"", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "}) {
    std::string header = std::string("-----BEGIN ") + label + "PRIVATE KEY-----";
    CAPTURE(header);
    REQUIRE(FindSecrets(header + "\r").size() == 1);
    CHECK(FindSecrets(header)[0].certain);
    CHECK(FindSecrets("\"" + header + "\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\"")[0].certain);
    // Code that looks for the header is not a key.
    CHECK_FALSE(FindSecrets("if (text.find(\"" + header + "\") == 0)")[0].certain);
  }
}

TEST_CASE("Random values assigned to secret names are found") {
  for (const char* text :
       {"password = \"hT7!kQ2#vX9pL4mZ8rWb\"", "  DB_PASSWORD=hT7kQ2vX9pL4mZ8rWbNc",
        "\"apiKey\": \"hT7kQ2vX9pL4mZ8rWbNc\",", "client-secret: hT7kQ2vX9pL4mZ8rWbNc",
        "authToken := `hT7kQ2vX9pL4mZ8rWbNc`", "env['SECRET_KEY'] = 'hT7kQ2vX9pL4mZ8rWbNc'",
        "token = 4f9a0c7be21d8356fa07b9c4de1530ab"}) {
    CAPTURE(text);
    CHECK(FindSecrets(text).size() == 1);
  }
}

TEST_CASE("Words, references, paths, counts and placeholders are no secrets") {
  for (const char* text :
       {"password = os.environ[\"DB_PASSWORD\"]", "token: ${{ secrets.GITHUB_TOKEN }}",
        "token_count = 123456789012345678901234", "tokenizer = \"hT7kQ2vX9pL4mZ8rWbNc\"",
        "password: correct horse battery staple", "secret: my-deployment-secret-2024-blue",
        "secretName: hT7kQ2vX9pL4mZ8rWbNc", "password = \"changeme\"",
        "token = getTokenFromRequest2Factory(request)", "token = context.Secrets.Get.Db01Token",
        "secret = \"/run/secrets/DatabasePassword01\"", "password: \"<your password here>\"",
        "api_key = \"your-api-key-goes-here-please\"", "commit = 4f9a0c7be21d8356fa07b9c4de1530ab",
        "integrity: sha512-hT7kQ2vX9pL4mZ8rWbNc+/==", "if token == expectedTokenValue99:"}) {
    CAPTURE(text);
    CHECK(FindSecrets(text).empty());
  }
}

TEST_CASE("Hostile lines take linear time") {
  for (const char* piece :
       {"sk-ant-", "eyJ-", "eyJ.", "ghp_", "github_pat_", "-----BEGIN ", "token=", "AIza",
        "password=\\\\\\\\", "xoxb-", "\"", "eyJaaaaaaaaaa.eyJaaaaaaaaaa."}) {
    CAPTURE(piece);
    std::string line;
    while (line.size() < (1 << 20)) line += piece;
    auto start = std::chrono::steady_clock::now();
    (void)FindSecrets(line);
    // Quadratic work on a mebibyte would take minutes.
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
  }
}

}  // namespace
}  // namespace change
