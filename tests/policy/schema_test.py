#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of the policy file against every policy of this folder's tables.
usage: schema_test.py AGENTIC_CI SOURCE_DIRECTORY"""
import json
import pathlib
import subprocess
import sys
import unittest

import jsonschema
import yaml

AGENTIC_CI, SOURCE = sys.argv[1:3]
del sys.argv[1:3]
TABLES = sorted(pathlib.Path(SOURCE, "tests/policy").glob("*.yml"))


def load(text):
    """YAML as the runner reads it: a date is text there, and is none of a policy's types."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def rows(kind):
    """(label, policy) of every row of that kind, whichever way it is written."""
    for table in TABLES:
        for row in load(table.read_text()).get(kind) or []:
            policy = row["yaml"]
            yield row, load(policy) if isinstance(policy, str) else policy


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        printed = subprocess.run([AGENTIC_CI, "policy", "schema"], check=True, capture_output=True, timeout=600)
        cls.printed = printed.stdout.decode()
        cls.schema = json.loads(cls.printed)
        cls.validator = jsonschema.Draft202012Validator(cls.schema)

    def test_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)

    def test_is_the_one_in_the_reference(self):
        there = pathlib.Path(SOURCE, "docs/reference/schemas/policy.schema.json").read_text()
        self.assertEqual(self.printed, there)

    def test_accepts_every_policy_that_loads(self):
        tried = 0
        for row, policy in rows("accepts"):
            with self.subTest(row["case"]):
                self.validator.validate(policy)
            tried += 1
        self.assertGreater(tried, 60)

    def test_accepts_the_policies_that_tables_ask(self):
        tried = 0
        for table in TABLES:
            root = load(table.read_text())
            for policy in [root.get("policy"), *(row.get("policy") for row in root.get("cases") or [])]:
                if isinstance(policy, str) and policy != "default":
                    policy = load((table.parent / policy).read_text())
                if isinstance(policy, dict):
                    self.validator.validate(policy)
                    tried += 1
        self.assertGreater(tried, 10)

    def test_refuses_unknown_keys_choices_and_types(self):
        tried = 0
        words = ("unknown key", "is not a valid value for", "not both", "'version' must be 1", "must be text")
        for row, policy in rows("rejects"):
            if any(word in row["error"] for word in words) and row["case"] != "a version in quotes":
                with self.subTest(row["case"]):
                    self.assertFalse(self.validator.is_valid(policy))
                tried += 1
        self.assertGreater(tried, 25)

    def test_refuses_a_key_too_many_in_every_mapping(self):
        for name, section in self.schema["$defs"].items():
            with self.subTest(name):
                self.assertIs(section["additionalProperties"], False)


if __name__ == "__main__":
    unittest.main()
