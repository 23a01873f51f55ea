#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SBOM names what the binary is linked from, and the binary itself.

usage: sbom_test.py BUILD_DIR
"""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1))


@unittest.skipIf(shutil.which('dpkg-query') is None, 'dpkg: not here')
class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document = json.loads(subprocess.check_output([ROOT / 'tools/sbom', BUILD]))
        cls.packages = {package['name']: package for package in cls.document['packages']}

    def test_it_is_about_this_binary(self):
        digest = hashlib.sha256((BUILD / 'agentic-ci').read_bytes()).hexdigest()
        self.assertEqual(self.packages['agentic-ci']['checksums'], [{'algorithm': 'SHA256', 'checksumValue': digest}])
        self.assertEqual(self.document['relationships'][0]['relatedSpdxElement'], self.packages['agentic-ci']['SPDXID'])

    def test_it_has_the_version_of_every_library_we_link(self):
        for name in ('libcurl', 'libgit2-dev', 'libssl-dev', 'libseccomp-dev', 'libnghttp2-dev', 'libc-ares-dev', 'libcgroup-dev',
                     'libyaml-cpp-dev', 'nlohmann-json3-dev', 'libcli11-dev', 'zlib1g-dev', 'libzstd-dev', 'libc6-dev'):
            self.assertRegex(self.packages[name]['versionInfo'], r'^[0-9]', name)
        linked = {relation['relatedSpdxElement'] for relation in self.document['relationships']
                  if relation['relationshipType'] == 'STATIC_LINK'}
        self.assertEqual(linked, {package['SPDXID'] for name, package in self.packages.items() if name != 'agentic-ci'})

    def test_identifiers_are_as_spdx_wants_them(self):
        for package in self.packages.values():
            self.assertTrue(re.fullmatch(r'SPDXRef-[A-Za-z0-9.-]+', package['SPDXID']))
        self.assertEqual(len({package['SPDXID'] for package in self.packages.values()}), len(self.document['packages']))


if __name__ == '__main__':
    unittest.main(verbosity=2)
