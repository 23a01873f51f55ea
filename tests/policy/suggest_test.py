#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From what a run was refused to a patch that git applies, and to a policy that allows just that; and the
JSON of `policy diff` against its schema.
usage: suggest_test.py AGENTIC_CI SOURCE_DIRECTORY"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import jsonschema

AGENTIC_CI, SOURCE = sys.argv[1:3]
del sys.argv[1:3]

FULL = """\
version: 1
network_policies:
  api:
    endpoints:
      - host: api.example.com
        port: 443
        protocol: rest
        access: read-only
    binaries: [{path: /usr/bin/curl}]

landlock: {compatibility: best_effort}"""  # No line end: git must take that, too.
SHORT = "endpoints:\n  - api.example.com:443:read-only\n"

REFUSED = [("POST", "api.example.com", 443, "/repos/a/*/issues", "/usr/bin/curl"),
           ("GET", "new.example.com", 8443, "/x%20y", "/usr/bin/git"),
           ("DELETE", "api.example.com", 443, "/repos/a", "/usr/bin/git")]
NOT_REFUSED = [("POST", "api.example.com", 443, "/repos/a/b/issues", "/usr/bin/curl"),
               ("DELETE", "api.example.com", 443, "/repos/a", "/usr/bin/curl"),
               ("GET", "new.example.com", 443, "/x%20y", "/usr/bin/git"),
               ("GET", "evil.example.com", 443, "/", "/usr/bin/git")]


def event(method, host, port, path, binary, engine="l7"):
    facts = {"host": host, "port": port, "binary": binary, "engine": engine}
    if method:
        facts.update(method=method, path=path)
    return json.dumps({"class_uid": 4002 if method else 4001, "action_id": 2, "unmapped": facts},
                      separators=(",", ":")) + "\n"


class Suggest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.git("init", "-q", ".")

    def git(self, *arguments, **options):
        subprocess.run(["git", *arguments], cwd=self.root, check=True, timeout=600, **options)

    def run_cli(self, *arguments):
        return subprocess.run([AGENTIC_CI, *arguments], cwd=self.root, capture_output=True, text=True, timeout=600)

    def suggest(self, policy, refused):
        (self.root / "p.yml").write_text(policy)
        (self.root / "events.ocsf.jsonl").write_text("".join(event(*one) for one in refused))
        done = self.run_cli("policy", "suggest", "events.ocsf.jsonl", "--policy", "p.yml")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def allows(self, method, host, port, path, binary):
        url = f"https://{host}:{port}{path}"
        done = self.run_cli("policy", "explain", "--policy", "p.yml", "--method", method, "--binary", binary, url)
        self.assertIn(done.returncode, (0, 77), done.stderr)
        return done.returncode == 0

    def test_a_patch_allows_just_what_was_refused(self):
        patch = self.suggest(FULL, REFUSED)
        for one in REFUSED + NOT_REFUSED:
            self.assertFalse(self.allows(*one), one)
        self.git("apply", "-", input=patch.encode())
        for one in REFUSED:
            self.assertTrue(self.allows(*one), one)
        for one in NOT_REFUSED:
            self.assertFalse(self.allows(*one), one)
        self.assertIn("No refused request", self.suggest((self.root / "p.yml").read_text(), REFUSED))

    def test_a_patch_of_the_short_form_applies(self):
        patch = self.suggest(SHORT, REFUSED)
        self.git("apply", "-", input=patch.encode())
        text = (self.root / "p.yml").read_text()
        self.assertNotIn("read-write", text)
        self.assertNotIn("full", text)
        self.assertIn("policy export --to openshell", patch)
        self.assertIn('"new.example.com:8443:read-only"', text)
        self.assertEqual(self.run_cli("policy", "check", "p.yml").returncode, 0)

    def test_what_no_policy_decided_is_not_suggested(self):
        (self.root / "events.ocsf.jsonl").write_text(event(*REFUSED[0], engine="budget"))
        done = self.run_cli("policy", "suggest", ".")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "# No refused request could be allowed by a policy.\n"))

    def test_a_hostile_record_stays_in_its_line(self):
        patch = self.suggest(FULL, [("GET", "a.example.com", 443, "/'\n- x: {", "/bin/x"),
                                    ("GET", "b.example.com", 443, "/ok", "/bin/'x")])
        self.assertNotIn("\n+", patch)

    def test_the_fragment_is_a_policy(self):
        self.suggest(FULL, REFUSED)
        done = self.run_cli("policy", "suggest", ".")
        (self.root / "p.yml").write_text(done.stdout)
        for one in REFUSED:
            self.assertTrue(self.allows(*one), one)
        for one in NOT_REFUSED:
            self.assertFalse(self.allows(*one), one)

    def test_the_difference_it_makes_is_what_was_refused(self):
        patch = self.suggest(FULL, REFUSED)
        (self.root / "before.yml").write_text(FULL)
        self.git("apply", "-", input=patch.encode())
        done = self.run_cli("policy", "diff", "--json", "--secret", "TOKEN@new.example.com", "before.yml", "p.yml")
        difference = json.loads(done.stdout)
        schema = json.loads(pathlib.Path(SOURCE, "docs/reference/schemas/policy-diff.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(difference)
        self.assertEqual({one["subject"] for one in difference["opens"]},
                         {"api.example.com:443", "new.example.com:8443"})
        self.assertEqual(difference["closes"] + difference["changes"], [])
        self.assertEqual([(one["name"], one["port"]) for one in difference["credentials"]], [("TOKEN", 8443)])


if __name__ == "__main__":
    unittest.main()
