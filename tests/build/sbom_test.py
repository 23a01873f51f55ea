#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SBOMs name what the binary is linked from, and the binary itself; so do the licence texts beside it.

usage: sbom_test.py BUILD_DIR
"""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1))
LIBRARIES = ('libcurl', 'libgit2-dev', 'libssl-dev', 'libseccomp-dev', 'libnghttp2-dev', 'libc-ares-dev', 'libcgroup-dev',
             'libyaml-cpp-dev', 'nlohmann-json3-dev', 'libcli11-dev', 'zlib1g-dev', 'libzstd-dev', 'libc6-dev', 'libstdc++-12-dev')


def sbom(form):
    return subprocess.check_output([ROOT / 'tools/sbom', form, BUILD], text=True)


@unittest.skipIf(shutil.which('dpkg-query') is None, 'dpkg: not here')
class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.spdx = json.loads(sbom('spdx'))
        cls.packages = {package['name']: package for package in cls.spdx['packages']}
        cls.cyclonedx = json.loads(sbom('cyclonedx'))
        cls.components = {component['name']: component for component in cls.cyclonedx['components']}
        cls.digest = hashlib.sha256((BUILD / 'agentic-ci').read_bytes()).hexdigest()

    def spdx_complaints(self, document):
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
        with tempfile.NamedTemporaryFile('w', suffix='.spdx.json') as file:
            json.dump(document, file)
            file.flush()
            return [str(message.validation_message) for message in validate_full_spdx_document(parse_file(file.name))]

    def cyclonedx_complaint(self, document):
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
        return JsonStrictValidator(SchemaVersion.V1_5).validate_str(json.dumps(document))

    def test_spdx_is_valid(self):
        self.assertEqual(self.spdx_complaints(self.spdx), [])
        self.packages['libcurl']['licenseDeclared'], kept = 'Curl licence', self.packages['libcurl']['licenseDeclared']
        try:
            with self.assertRaises(Exception):
                self.assertEqual(self.spdx_complaints(self.spdx), [])
        finally:
            self.packages['libcurl']['licenseDeclared'] = kept

    def test_cyclonedx_is_valid(self):
        self.assertIsNone(self.cyclonedx_complaint(self.cyclonedx))
        self.assertIsNotNone(self.cyclonedx_complaint(self.cyclonedx | {'components': [{'type': 'none', 'name': 'x'}]}))

    def test_they_are_about_this_binary(self):
        self.assertEqual(self.packages['agentic-ci']['checksums'], [{'algorithm': 'SHA256', 'checksumValue': self.digest}])
        self.assertEqual(self.spdx['relationships'][0]['relatedSpdxElement'], self.packages['agentic-ci']['SPDXID'])
        self.assertEqual(self.cyclonedx['metadata']['component']['hashes'], [{'alg': 'SHA-256', 'content': self.digest}])

    def test_they_have_version_and_licence_of_every_library_we_link(self):
        for name in LIBRARIES:
            self.assertRegex(self.packages[name]['versionInfo'], r'^[0-9]', name)
            self.assertRegex(self.packages[name]['licenseDeclared'], r'^[A-Za-z0-9.-]+( WITH [A-Za-z0-9.-]+)?$', name)
        linked = {relation['relatedSpdxElement'] for relation in self.spdx['relationships']
                  if relation['relationshipType'] == 'STATIC_LINK'}
        self.assertEqual(linked, {package['SPDXID'] for name, package in self.packages.items() if name != 'agentic-ci'})
        said = {(name, part['version'], part['licenses'][0]['expression']) for name, part in self.components.items()}
        self.assertEqual(said, {(name, package['versionInfo'], package['licenseDeclared'])
                                for name, package in self.packages.items() if name != 'agentic-ci'})

    def test_packages_are_of_the_binary_s_architecture(self):
        machine = int.from_bytes((BUILD / 'agentic-ci').read_bytes()[18:20], 'little')
        self.assertIn(f'?arch={ {62: "amd64", 183: "arm64"}[machine] }', self.components['libgit2-dev']['purl'])

    def test_licence_texts_of_all_of_them_are_there(self):
        text = sbom('licences')
        for name, package in self.packages.items():
            self.assertIn(f'{name} {package["versionInfo"]} (' if name != 'agentic-ci' else 'agentic-ci (Apache-2.0)', text)
        self.assertIn('GNU LESSER GENERAL PUBLIC LICENSE', text)
        self.assertRegex(text, r'Copyright.*Daniel Stenberg')

    def test_identifiers_are_as_spdx_wants_them(self):
        for package in self.packages.values():
            self.assertTrue(re.fullmatch(r'SPDXRef-[A-Za-z0-9.-]+', package['SPDXID']))
        self.assertEqual(len({package['SPDXID'] for package in self.packages.values()}), len(self.spdx['packages']))


if __name__ == '__main__':
    unittest.main(verbosity=2)
