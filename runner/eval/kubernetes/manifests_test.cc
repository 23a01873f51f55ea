// SPDX-License-Identifier: Apache-2.0
#include "eval/kubernetes/manifests.h"

#include <catch2/catch.hpp>

namespace eval {
namespace {

ClusterRun Run() {
  ClusterRun run;
  run.name = "nightly";
  run.image = "registry.example.com/agent@sha256:0";
  run.files = {{"s/suite.yaml", "a: 1\n\n b\n"}};
  return run;
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("no word of the template is left") {
  CHECK_FALSE(Has(RenderManifests(Run()).value(), "${"));
}

TEST_CASE("texts are readable, and all other bytes are Base64") {
  ClusterRun run = Run();
  CHECK(Has(RenderManifests(run).value(), "data:\n  suite: |2\n    a: 1\n\n     b\n---\n"));
  for (std::string_view text : {"", "\n", "a", "a\n\n", "a\r\n", "a\x7f\n", "\xff\n", "\xc2\x85\n",
                                "\xe2\x80\xa8\n", "\xef\xbb\xbf\n"}) {
    run.files = {{"s/suite.yaml", std::string(text)}};
    CHECK(Has(RenderManifests(run).value(), "\nbinaryData:\n  suite: \""));
  }
}

TEST_CASE("Kubernetes expands nothing in an argument") {
  ClusterRun run = Run();
  run.options = {"--agent=pi", "$(HOME) $$ \"x\""};
  CHECK(Has(RenderManifests(run).value(),
            "args:\n            - \"--agent=pi\"\n            - \"$$(HOME) $$$$ \\\"x\\\"\"\n"));
}

TEST_CASE("each token is a volume of its own") {
  ClusterRun run = Run();
  CHECK_FALSE(Has(RenderManifests(run).value(), "token"));
  run.tokens = {{"/identity", "a", "https://a.example.com"}, {"/other: x", "b", "b"}};
  const std::string text = RenderManifests(run).value();
  CHECK(Has(text, "- {name: token-0, mountPath: \"/identity\", readOnly: true}\n"));
  CHECK(Has(text, "- {name: token-1, mountPath: \"/other: x\", readOnly: true}\n      volumes:\n"));
  CHECK(Has(text,
            "        - name: token-1\n          projected:\n            sources:\n"
            "              - serviceAccountToken: {audience: \"b\", expirationSeconds: 3600, "
            "path: \"b\"}\n---\n"));
}

TEST_CASE("sizes are rounded up") {
  ClusterRun run = Run();
  run.cpus = 0.0001;
  run.memory_bytes = 1;
  CHECK(Has(RenderManifests(run).value(), "limits: {cpu: 1m, memory: 1Mi}"));
}

TEST_CASE("files that a ConfigMap cannot have are refused") {
  ClusterRun run = Run();
  run.files.push_back({"s/../x", ""});
  CHECK(RenderManifests(run).error().code == Code::kInvalid);
  run.files = {{"s/suite.yaml", std::string((1 << 20) + 1, 'x')}};
  CHECK(RenderManifests(run).error().code == Code::kInvalid);
}

TEST_CASE("a name leaves room for what Kubernetes appends") {
  CHECK(IsClusterName("a"));
  CHECK(IsClusterName("a-1" + std::string(kClusterNameBytesMax - 3, 'b')));
  for (std::string_view name : {"", "1a", "a-", "-a", "A", "a.b", "a/b", "a_b"}) {
    CHECK_FALSE(IsClusterName(name));
  }
  CHECK_FALSE(IsClusterName(std::string(kClusterNameBytesMax + 1, 'a')));
}

}  // namespace
}  // namespace eval
