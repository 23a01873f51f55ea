#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No mutation of a request reaches the server as something that was not judged.

usage: smuggling_test.py BINARY [TEST...]
"""
import collections
import json
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'attack'))
sys.path.insert(0, str(HERE))
from mutations import mutations  # noqa: E402
from upstream import Upstream  # noqa: E402

BINARY = os.path.abspath(sys.argv.pop(1))
POLICY = '''
version: 1
network_policies:
  api:
    endpoints:
      - host: host.openshell.internal
        port: {port}
        protocol: rest
        rules:
          - allow: {{ method: GET, path: "/ok/**" }}
          - allow: {{ method: POST, path: "/ok/**" }}
    binaries: [{{ path: /usr/bin/python3 }}, {{ path: "/usr/bin/python3*" }}]
'''
# What servers that are not strict make of a path.
LENIENT = [(r'%5c|\\', '/'), (r'%c0%af|%c1%9c', '/'), (r'%c0%ae|%e0%80%ae|%f0%80%80%ae|%2e', '.'), (r';[^/]*', ''), ('%2f', '/')]
FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: ?[\t\x20-\x7e\x80-\xff]*")


class Smuggling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix='smuggling-test-'))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        checkout = cls.directory / 'checkout'
        checkout.mkdir()
        for name in ('inside.py', 'mutations.py'):
            shutil.copy(HERE / name, checkout)
        cls.server = Upstream()
        policy = cls.directory / 'policy.yml'
        policy.write_text(POLICY.format(port=cls.server.port))
        report = cls.directory / 'report'
        cls.run_ = subprocess.run(
            [BINARY, 'run', '--workdir', checkout, '--policy', policy, '--report-dir', report, '--timeout', '120s', '--',
             '/usr/bin/python3', 'inside.py', str(cls.server.port)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        cls.events = [json.loads(line) for line in (report / 'events.ocsf.jsonl').read_text().splitlines()]

    def test_it_tried_hundreds(self):
        self.assertEqual(self.run_.returncode, 0, self.run_.stdout + self.run_.stderr)
        count = len(list(mutations(b'host.openshell.internal:1')))
        self.assertGreater(count, 450)
        self.assertIn(f'sent {count}\n', self.run_.stdout)
        self.assertIn('controls 3\n', self.run_.stdout)

    def test_the_server_saw_what_was_judged_and_nothing_else(self):
        judged = collections.Counter(
            (event['unmapped']['method'], event['unmapped']['path']) for event in self.events
            if event['class_uid'] == 4002 and event['unmapped']['decision'] == 'allowed')
        seen = collections.Counter(
            (head.split(' ')[0], head.split(' ')[1].split('?')[0]) for head, _ in self.server.requests)
        # What was allowed may not have arrived: its client was gone by then, or its body broke off.
        self.assertEqual(seen - judged, collections.Counter())
        self.assertFalse([path for _, path in seen if 'denied' in path])

    def test_the_controls_arrived(self):
        arrived = [head.split('\r\n')[0] for head, _ in self.server.requests if '/ok/control' in head]
        self.assertEqual(len(arrived), 6)

    def test_every_head_is_one_that_all_read_alike(self):
        for head, _ in self.server.requests:
            line, *fields = head.split('\r\n')
            self.assertRegex(line, r'^(GET|POST) /[!-~]* HTTP/1\.1$')
            names = [field.split(':')[0].lower() for field in fields]
            for field in fields:
                self.assertTrue(FIELD.fullmatch(field), repr(field))
            self.assertEqual(names.count('host'), 1, head)
            self.assertLessEqual(names.count('content-length') + names.count('transfer-encoding'), 1, head)

    def test_no_lenient_reader_climbs_or_takes_another_method(self):
        for head, _ in self.server.requests:
            path = head.split(' ')[1]
            for form, means in LENIENT:
                path = re.sub(form, means, path, flags=re.IGNORECASE)
            self.assertTrue(posixpath.normpath(path).startswith('/ok/'), head)
            self.assertNotRegex(head.lower(), r'\n(x-original-url|x-rewrite-url|upgrade|te|trailer|expect|keep-alive|connection|proxy-\w+):')
            self.assertNotRegex(head.lower(), r'\nx-(http-)?method(-override)?: *(delete|put)')
            self.assertNotRegex(head.lower(), r'^[^\n]*(_|%5f)(http)?method(\]|%00x)?=(delete|put)')

    def test_no_byte_was_left_over(self):
        self.assertFalse([rest for rest in self.server.rest if b'denied' in rest])

    def test_what_was_refused_is_recorded(self):
        refused = [event for event in self.events if event['unmapped'].get('decision') == 'denied']
        self.assertGreater(len(refused), 200)


if __name__ == '__main__':
    unittest.main()
