#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""release.yml, run by act on this machine with a forge and a download host on loopback: it ends with a release that can be
installed. tools/check --release runs it, since it builds both binaries twice.

usage: release_test.py ACT

What is committed is released. Stand-ins are only what lies outside: the actions of GitHub's own, gh, sudo, the container engine
(commands run on this machine, which is a Debian 12), and the checks themselves, which a release repeats.
"""
import functools
import hashlib
import http.server
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

from dry_run import ROOT, SOURCE, TAG, VERSION, DryRun

ACT = os.path.abspath(sys.argv.pop(1))
MACHINES = {'x86_64': 'amd64', 'aarch64': 'arm64'}

ATTEST = '''
name: attest
description: The stand-in for actions/attest; it notes what was attested, as the forge's store would.
inputs: { subject-path: { required: true }, sbom-path: { default: "" } }
runs:
  using: composite
  steps:
    - shell: bash
      env: { SUBJECTS: "${{ inputs.subject-path }}", SBOM: "${{ inputs.sbom-path }}" }
      run: |
        [ -z "$SBOM" ] || jq -e .  "$SBOM" >/dev/null
        for subject in $SUBJECTS; do
          sum=$(sha256sum <"$subject") && echo "${sum%% *} ${subject##*/} ${SBOM##*.linux-}" >>"$TEST_ROOT/attested"
        done
'''
ENGINE = '''#!/bin/bash
# docker run … IMAGE sh -c SCRIPT sh COMMAND...: runs COMMAND. What is fetched once is this checkout's.
while [ "$1" != sh ]; do shift; done
shift 4
mkdir -p build
for part in curl-source trusted-root sysroot; do [ -e "build/$part" ] || cp -al "$TEST_SOURCE/build/$part" build/; done
exec "$@"
'''
GH = '''#!/usr/bin/env python3
"""gh, as far as release.yml needs it."""
import hashlib, json, os, pathlib, subprocess, sys
root, tag = pathlib.Path(os.environ['TEST_ROOT']), os.environ['GITHUB_REF_NAME'].removeprefix('source-')
draft, public = root / 'draft', root / 'releases' / tag
digest = lambda path: hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
assert os.environ['GH_TOKEN']
match sys.argv[1:]:
    case ['api', path, '--jq', '.sha']:
        assert path == f'repos/acme/agentic-ci/commits/source-{tag}', path
        print(subprocess.check_output(['git', '-C', os.environ['TEST_REMOTE'], 'rev-parse', 'source-' + tag], text=True).strip())
    case ['release', 'create', name, '--draft', '--target', commit, '--title', _, '--notes', _, *files]:
        assert name == tag and not public.exists()
        draft.mkdir()
        (root / 'target').write_text(commit)
        for file in files:
            (draft / os.path.basename(file)).write_bytes(pathlib.Path(file).read_bytes())
    case ['release', 'edit', name, '--draft=false']:
        public.parent.mkdir()
        draft.rename(public)
        subprocess.check_call(['git', '-C', os.environ['TEST_REMOTE'], 'tag', tag, (root / 'target').read_text()])
    case ['attestation', 'verify', file, '--repo', 'acme/agentic-ci', '--signer-workflow', 'acme/agentic-ci/.github/workflows/release.yml']:
        assert digest(file) in (root / 'attested').read_text()
    case ['release', 'verify-asset', name, file]:
        assert digest(public / os.path.basename(file)) == digest(file)
    case ['auth', 'setup-git']:
        pass
    case ['pr', 'create', '--base', base, '--head', head, *_]:
        (root / 'pull-request').write_text(json.dumps([base, head]))
    case other:
        sys.exit(f'gh: what is {other}?')
'''


class Releases(http.server.SimpleHTTPRequestHandler):
    """The public address of releases: no draft is there."""

    def translate_path(self, path):
        return super().translate_path(path.removeprefix('/acme/agentic-ci/releases/download'))

    def log_message(self, *_):
        pass


class Release(DryRun):
    act = ACT
    actions = {**DryRun.actions, 'attest': ATTEST}
    programs = {'docker': ENGINE, 'gh': GH, 'sudo': '#!/bin/sh\n'}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve()
        cls.publish_source()
        cls.run_workflow('release', {'GITHUB_SERVER_URL': cls.url, 'CURL_CA_BUNDLE': f'{cls.root}/ca.pem'})

    @classmethod
    def serve(cls):
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1',
                        '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', cls.root / 'key.pem',
                        '-out', cls.root / 'ca.pem'], check=True, capture_output=True)
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Releases, directory=cls.root / 'releases'))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cls.root / 'ca.pem', cls.root / 'key.pem')
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.url = f'https://127.0.0.1:{server.server_port}'

    def asset(self, machine):
        return self.root / 'releases' / TAG / f'agentic-ci-{VERSION}-linux-{machine}'

    def test_every_file_of_a_release_is_there(self):
        wanted = {'checksums.txt'}
        for machine, debian in MACHINES.items():
            wanted |= {self.asset(machine).name + suffix for suffix in ('', '.tar.gz', '.spdx.json', '.cdx.json', '.licences.txt')}
            wanted.add(f'agentic-ci_{VERSION}_{debian}.deb')
        self.assertEqual({path.name for path in self.asset('x86_64').parent.iterdir()}, wanted)
        done = subprocess.run(['sha256sum', '--check', '--strict', 'checksums.txt'], cwd=self.asset('x86_64').parent, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.count(': OK')), (0, len(wanted) - 1), done.stderr)

    def test_each_binary_and_its_packages_are_attested_and_both_sboms(self):
        attested = [line.split() for line in (self.root / 'attested').read_text().splitlines()]
        for machine, debian in MACHINES.items():
            digest = hashlib.sha256(self.asset(machine).read_bytes()).hexdigest()
            self.assertEqual(len([1 for sum, *_ in attested if sum == digest]), 3)
            self.assertIn(f'agentic-ci_{VERSION}_{debian}.deb', [name for _, name, *_ in attested])

    def test_both_were_built_again_and_checked(self):
        self.assertEqual(len(re.findall(r'[0-9a-f]{64}  another/folder', self.output)), 2)
        self.assertEqual(sorted((self.root / 'checked').read_text().splitlines()),
                         ['1 passed, 0 failed ()', '1 passed, 0 failed (--arch arm64)', '1 passed, 0 failed (--fuzz 10)'])

    def test_the_archive_and_the_package_have_the_same_binary(self):
        for machine, debian in MACHINES.items():
            binary = self.asset(machine).read_bytes()
            unpacked = subprocess.check_output(['tar', '-xzOf', f'{self.asset(machine)}.tar.gz', 'agentic-ci'])
            self.assertEqual(unpacked, binary)
            with tempfile.TemporaryDirectory() as into:
                package = self.asset(machine).parent / f'agentic-ci_{VERSION}_{debian}.deb'
                subprocess.run(['dpkg-deb', '-x', package, into], check=True)
                self.assertEqual(pathlib.Path(into, 'usr/bin/agentic-ci').read_bytes(), binary)
                self.assertEqual(subprocess.check_output(['dpkg-deb', '-f', package, 'Architecture'], text=True).strip(), debian)

    def test_the_release_s_commit_pins_both_and_changes_nothing_else(self):
        self.assertEqual(json.loads((self.root / 'pull-request').read_text()), ['main', f'release-{TAG}'])
        changed = self.git('diff', '--name-only', SOURCE, TAG, cwd=self.remote).splitlines()
        self.assertEqual(changed, ['action/checksums.txt', *(f'gitlab-component/templates/{name}/template.yml' for name in ('forks', 'post', 'run'))])
        pinned = self.git('show', f'{TAG}:action/checksums.txt', cwd=self.remote)
        for machine in MACHINES:
            self.assertIn(f'{hashlib.sha256(self.asset(machine).read_bytes()).hexdigest()}  {self.asset(machine).name}', pinned)

    def test_the_pinned_commit_was_used(self):
        self.assertRegex(self.output, r'::set-output:: conclusion=success')

    def install(self, **variables):
        """Runs the pinned commit's installation, from this release."""
        with tempfile.TemporaryDirectory(dir=self.root) as scratch:
            self.git('clone', '-q', '-b', TAG, str(self.remote), f'{scratch}/action')
            environment = {'PATH': os.environ['PATH'], 'GITHUB_OUTPUT': f'{scratch}/output', 'RUNNER_TEMP': scratch,
                           'VERSION': VERSION, 'GITHUB_SERVER_URL': self.url, 'ACTION_REPOSITORY': 'acme/agentic-ci',
                           'CURL_CA_BUNDLE': f'{self.root}/ca.pem', **variables}
            run = subprocess.run(['bash', f'{scratch}/action/action/install.sh'], env=environment, capture_output=True, text=True)
            if run.returncode == 0:
                path = pathlib.Path(scratch, 'output').read_text().removeprefix('path=').strip()
                run.stdout = subprocess.check_output([path, '--version'], text=True)
            return run

    def test_the_pinned_commit_installs_this_release_and_nothing_else(self):
        asset, other = self.asset(os.uname().machine), self.asset({'x86_64': 'aarch64', 'aarch64': 'x86_64'}[os.uname().machine])
        right = asset.read_bytes()
        self.addCleanup(asset.write_bytes, right)
        self.assertIn(VERSION, self.install().stdout)
        changed = bytearray(right)
        changed[len(right) // 2] ^= 1
        for wrong in (bytes(changed), right[:-1], other.read_bytes()):
            asset.write_bytes(wrong)
            run = self.install()
            self.assertEqual((run.returncode, 'is not what action/checksums.txt pins' in run.stdout), (77, True), run.stdout)
        asset.write_bytes(right)
        self.assertIn(VERSION, self.install().stdout)


if __name__ == '__main__':
    unittest.main(verbosity=2)
