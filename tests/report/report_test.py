#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the report directory promises to machines: every JSON file against its schema, SARIF and Code
Quality against what their readers demand.
usage: report_test.py REPORT_SAMPLES SOURCE_DIRECTORY"""
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

SAMPLES, SOURCE = sys.argv[1:3]
del sys.argv[1:3]
SCHEMAS = pathlib.Path(SOURCE, "docs/reference/schemas")


def schema_of(name):
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def validator_of(name):
    return jsonschema.Draft202012Validator(schema_of(name))


class Tags(html.parser.HTMLParser):
    """Which elements a page has, and that they are closed in order."""

    VOID = {"meta", "br", "img", "link"}

    def __init__(self):
        super().__init__()
        self.seen, self.open, self.attributes = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.samples = {}
        for kind in ("full", "refused", "odd", "empty"):
            into = pathlib.Path(cls.directory.name, kind)
            subprocess.run([SAMPLES, kind, into], check=True)
            cls.samples[kind] = into

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def each(self, name):
        return [(into / name).read_text(encoding="utf-8") for into in self.samples.values()]

    def test_the_schemas_are_schemas(self):
        for name in ("run", "changes", "events"):
            jsonschema.Draft202012Validator.check_schema(schema_of(name))
            outside = [ref for ref in re.findall(r'"\$ref": "([^"]*)"', json.dumps(schema_of(name)))
                       if not ref.startswith("#")]
            self.assertEqual(outside, [], f"{name}.schema.json does not stand alone")

    def test_run_json_and_changes_json_keep_their_schemas(self):
        for name in ("run", "changes"):
            validator = validator_of(name)
            for text in self.each(f"{name}.json"):
                validator.validate(json.loads(text))

    def test_a_schema_refuses_what_is_not_in_it(self):
        run = json.loads((self.samples["full"] / "run.json").read_text())
        validator = validator_of("run")
        for change in (
            {"version": 2},
            {"unknown": 1},
            {"outcome": dict(run["outcome"], kind="fine")},
            {"denials": [dict(run["denials"][0], port="443")]},
            {"changes": dict(run["changes"], complete=None)},
        ):
            with self.subTest(change=change), self.assertRaises(jsonschema.ValidationError):
                validator.validate({**run, **change})

    def test_sarif_has_what_github_asks_for(self):
        for text in self.each("findings.sarif"):
            sarif = json.loads(text)
            self.assertEqual(sarif["version"], "2.1.0")
            (run,) = sarif["runs"]
            rules = run["tool"]["driver"]["rules"]
            self.assertEqual(len({rule["id"] for rule in rules}), len(rules))
            for rule in rules:
                for member in ("shortDescription", "fullDescription", "help"):
                    self.assertTrue(rule[member]["text"])
            fingerprints = set()
            for result in run["results"]:
                self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
                self.assertIn(result["level"], ("error", "warning", "note"))
                self.assertTrue(result["message"]["text"])
                place = result["locations"][0]["physicalLocation"]
                self.assertRegex(place["artifactLocation"]["uri"], r"^[A-Za-z0-9%._~-][A-Za-z0-9%._~/-]*$")
                self.assertNotIn("..", place["artifactLocation"]["uri"].split("/"))
                self.assertGreaterEqual(place["region"]["startLine"], 1)
                fingerprints.add(json.dumps(result["partialFingerprints"]))
            self.assertEqual(len(fingerprints), len(run["results"]))

    def test_code_quality_has_what_gitlab_demands(self):
        for text in self.each("gl-code-quality-report.json"):
            items = json.loads(text)
            self.assertEqual(len({item["fingerprint"] for item in items}), len(items))
            for item in items:
                self.assertIn(item["severity"], ("blocker", "critical", "major", "minor", "info"))
                self.assertTrue(item["description"])
                self.assertNotRegex(item["location"]["path"], r"^/|^\./|(^|/)\.\.(/|$)")
                self.assertIsInstance(item["location"]["lines"]["begin"], int)

    def test_static_analysis_has_what_gitlab_demands(self):
        """What version 15.0.7 of GitLab's schema for SAST reports requires, of the parts that are there."""
        for text in self.each("gl-sast-report.json"):
            report = json.loads(text)
            self.assertRegex(report["version"], r"^[0-9]+\.[0-9]+\.[0-9]+$")
            scan = report["scan"]
            for part in ("analyzer", "scanner"):
                for member in ("id", "name", "version"):
                    self.assertTrue(scan[part][member])
                self.assertTrue(scan[part]["vendor"]["name"])
                self.assertRegex(scan[part]["url"], r"^https?://.+")
            for member in ("start_time", "end_time"):
                self.assertRegex(scan[member], r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$")
            self.assertIn(scan["status"], ("success", "failure"))
            self.assertEqual(scan["type"], "sast")
            found = report["vulnerabilities"]
            self.assertEqual(len({one["id"] for one in found}), len(found))
            for one in found:
                self.assertRegex(one["id"], r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
                self.assertLessEqual(len(one["name"]), 255)
                self.assertLessEqual(len(one["description"]), 1048576)
                self.assertIn(one["severity"], ("Info", "Unknown", "Low", "Medium", "High", "Critical"))
                for identifier in one["identifiers"]:
                    for member in ("type", "name", "value"):
                        self.assertTrue(identifier[member])
                self.assertTrue(one["identifiers"])
                self.assertNotRegex(one["location"]["file"], r"^/|^\./|(^|/)\.\.(/|$)")
                self.assertGreaterEqual(one["location"].get("start_line", 1), 1)

    def test_the_page_is_well_formed_and_needs_nothing(self):
        for text in self.each("report.html"):
            tags = Tags()
            tags.feed(text)
            tags.close()
            self.assertEqual(tags.open, [])
            self.assertFalse(tags.seen & {"script", "img", "link", "iframe", "object", "form"})
            for name, value in tags.attributes:
                self.assertNotIn(name, ("src", "style"))
                # Links lead to a place in the page, or to the repository on its forge.
                if name == "href":
                    self.assertRegex(value, r"^(#[a-z]+[0-9]*|https://github\.com/octo-org/parser/[a-zA-Z0-9/.%#_-]+)$")
                self.assertFalse(name.startswith("on"), name)
            self.assertIn("default-src 'none'", text)
            self.assertLess(len(text), 4_000_000)

    def test_nothing_hidden_reaches_a_reader(self):
        for name in ("summary.md", "report.html"):
            for text in self.each(name):
                self.assertIsNone(re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text))

    def test_summaries_fit_where_they_are_shown(self):
        for text in self.each("summary.md"):
            self.assertLess(len(text), 900_000)
            self.assertTrue(text.startswith("### "))


    def test_every_link_of_the_page_leads_somewhere_and_every_place_is_one(self):
        for text in self.each("report.html"):
            places = re.findall(r' id="([^"]*)"', text)
            self.assertEqual(len(places), len(set(places)))
            self.assertLessEqual(set(re.findall(r' href="#([^"]*)"', text)), set(places))


class Events(unittest.TestCase):
    LINE = {
        "class_uid": 4002, "class_name": "HTTP Activity", "category_uid": 4,
        "category_name": "Network Activity", "activity_id": 6, "activity_name": "Post",
        "type_uid": 400206, "type_name": "HTTP Activity: Post", "time": 1795294532000,
        "severity_id": 3, "severity": "Medium", "status_id": 2, "status": "Failure",
        "metadata": {"version": "1.9.0", "product": {"name": "x", "vendor_name": "x"}},
        "device": {"type_id": 99, "type": "Other", "container": {"uid": "0123456789abcdef"}},
        "dst_endpoint": {"domain": "h.example", "port": 443},
        "http_request": {"http_method": "POST",
                         "url": {"scheme": "https", "hostname": "h.example", "port": 443, "path": "/"}},
        "unmapped": {"decision": "denied", "host": "h.example", "port": 443, "method": "POST",
                     "path": "/", "binary": "/usr/bin/curl", "pid": 7, "ancestors": []},
        "action_id": 2, "action": "Denied",
    }

    def test_an_event_line_keeps_its_schema(self):
        validator = validator_of("events")
        validator.validate(self.LINE)
        for change in ({"class_uid": 1}, {"action_id": 3}, {"unmapped": {}}):
            with self.assertRaises(jsonschema.ValidationError):
                validator.validate({**self.LINE, **change})


if __name__ == "__main__":
    unittest.main(verbosity=1)
