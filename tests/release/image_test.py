#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.yml, run by act on this machine as root: both images are built, pushed to a registry and signed by their digest.
tools/check --release runs it, since the larger image is half a gigabyte of packages.

usage: image_test.py ACT

Stand-ins are the actions of others, the container engine (commands run on this machine, which is a Debian 12), a machine of the
other architecture, and cosign. The registry is Debian's, where ghcr.io is: in a network of its own.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

from dry_run import SOURCE, TAG, DryRun

ACT = os.path.abspath(sys.argv.pop(1))
KINDS = {'base': 'agent-base', 'full': 'agent'}
REGISTRY = 'ghcr.io'

INSTALLER = '''
name: cosign-installer
description: The stand-in for sigstore/cosign-installer.
runs: { using: composite, steps: [{ shell: bash, run: "true" }] }
'''
SCANNER = '''
name: scan-action
description: The stand-in for anchore/scan-action.
inputs:
  image: { required: true }
  fail-build: { default: "false" }
  only-fixed: { default: "false" }
  severity-cutoff: { default: medium }
  output-format: { default: sarif }
runs:
  using: composite
  steps:
    - shell: bash
      env: { IMAGE: "${{ inputs.image }}", HOW: "${{ inputs.fail-build }} ${{ inputs.only-fixed }} ${{ inputs.severity-cutoff }}" }
      run: |
        test -e "${IMAGE#oci-dir:}/index.json"
        echo "$IMAGE $HOW" >>"$TEST_ROOT/scanned"
'''
ENGINE = '''#!/bin/bash
# docker run ... IMAGE sh -c SCRIPT sh COMMAND...: runs COMMAND, once for both architectures, whose name is all that differs then.
set -e
while [ "$1" != sh ]; do shift; done
shift 4
exec 9>"$TEST_ROOT/lock-$KIND"
flock 9
[ -e "$TEST_ROOT/layout-$KIND" ] || { "$@" && cp -a "layout/$KIND" "$TEST_ROOT/layout-$KIND"; }
[ -e "layout/$KIND" ] || { mkdir -p layout && cp -a "$TEST_ROOT/layout-$KIND" "layout/$KIND"; }
[ "$MACHINE" = x86_64 ] || umoci config --image "layout/$KIND:$KIND" --architecture arm64
'''
# What the job installs is here; mmdebstrap needs the real one.
APT = '#!/bin/sh\n[ "$1" = install ] || exec /usr/bin/apt-get "$@"\n'
# What talks to the registry does so where the registry is.
INSIDE = '''#!/bin/sh
exec nsenter --target "$(cat "$TEST_ROOT/registry.pid")" --net --mount --wd="$PWD" env SSL_CERT_FILE="$TEST_ROOT/ca.pem" {line} "$@"
'''
COSIGN = '''#!/usr/bin/env python3
"""cosign, as far as image.yml needs it: it signs what the registry has."""
import os, pathlib, subprocess, sys
root = pathlib.Path(os.environ['TEST_ROOT'])
identity = f'{os.environ["GITHUB_SERVER_URL"]}/acme/agentic-ci/.github/workflows/image.yml@{os.environ["GITHUB_REF"]}'
match sys.argv[1:]:
    case ['login', 'ghcr.io', '--username', _, '--password-stdin']:
        assert sys.stdin.read() == os.environ['TOKEN']
    case ['sign', '--yes', '--recursive', image]:
        subprocess.check_call(['skopeo', 'inspect', '--raw', 'docker://' + image], stdout=subprocess.DEVNULL)
        with open(root / 'signed', 'a') as signed:
            signed.write(image + '\\n')
    case ['verify', image, '--certificate-identity', who, '--certificate-oidc-issuer', issuer]:
        assert (who, issuer) == (identity, 'https://token.actions.githubusercontent.com'), who
        assert image in (root / 'signed').read_text()
    case other:
        sys.exit(f'cosign: what is {other}?')
'''


class Image(DryRun):
    act = ACT
    actions = {**DryRun.actions, 'cosign-installer': INSTALLER, 'scan-action': SCANNER}
    programs = {'docker': ENGINE, 'cosign': COSIGN, 'apt-get': APT,
                'skopeo': INSIDE.format(line='/usr/bin/skopeo'),
                'buildah': INSIDE.format(line='/usr/bin/buildah --root "$TEST_ROOT/storage" --runroot "$TEST_ROOT/runroot" '
                                              '--storage-driver vfs')}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.environment['REGISTRY_AUTH_FILE'] = f'{cls.root}/auth.json'
        cls.serve()
        cls.publish_source()
        cls.run_workflow('image', {  # act does not set which workflow it is.
            'GITHUB_SERVER_URL': 'https://github.com', 'REGISTRY_AUTH_FILE': f'{cls.root}/auth.json',
            'GITHUB_WORKFLOW_REF': f'acme/agentic-ci/.github/workflows/image.yml@refs/tags/{SOURCE}'})

    @classmethod
    def serve(cls):
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1',
                        '-subj', f'/CN={REGISTRY}', '-addext', f'subjectAltName=DNS:{REGISTRY}', '-keyout', cls.root / 'key.pem',
                        '-out', cls.root / 'ca.pem'], check=True, capture_output=True)
        words = subprocess.check_output(['htpasswd', '-nbB', 'nektos/act', 'token'], text=True)  # act's actor.
        cls.write('htpasswd', words)
        cls.write('hosts', f'127.0.0.1 localhost {REGISTRY}\n')
        cls.write('registry.yml', json.dumps({
            'version': 0.1, 'log': {'level': 'error', 'accesslog': {'disabled': True}},
            'storage': {'filesystem': {'rootdirectory': f'{cls.root}/registry'}},
            'auth': {'htpasswd': {'realm': 'test', 'path': f'{cls.root}/htpasswd'}},
            'http': {'addr': '127.0.0.1:443', 'tls': {'certificate': f'{cls.root}/ca.pem', 'key': f'{cls.root}/key.pem'}}}))
        start = f'mount --bind {cls.root}/hosts /etc/hosts && ip link set lo up && exec docker-registry serve {cls.root}/registry.yml'
        process = subprocess.Popen(['unshare', '--net', '--mount', 'sh', '-c', start], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        cls.write('registry.pid', str(process.pid))
        asked = ['nsenter', '--target', str(process.pid), '--net', '--mount', 'curl', '-s', '--cacert', cls.root / 'ca.pem',
                 f'https://{REGISTRY}/v2/']
        while subprocess.run(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            if process.poll() is not None:
                raise AssertionError('docker-registry does not start')
            time.sleep(0.05)

    def inspect(self, *words):
        return subprocess.check_output([self.root / 'bin/skopeo', 'inspect', *words], text=True,
                                       env={**self.environment, 'TEST_ROOT': str(self.root)}).strip()

    def test_both_images_are_there_for_both_architectures_under_the_tag_of_the_release(self):
        for name in KINDS.values():
            index = json.loads(self.inspect('--raw', f'docker://{REGISTRY}/acme/agentic-ci/{name}:{TAG}'))
            self.assertEqual(sorted(one['platform']['architecture'] for one in index['manifests']), ['amd64', 'arm64'])
            for one in index['manifests']:
                manifest = json.loads(self.inspect('--raw', f'docker://{REGISTRY}/acme/agentic-ci/{name}@{one["digest"]}'))
                self.assertEqual({layer['mediaType'] for layer in manifest['layers']},
                                 {'application/vnd.oci.image.layer.v1.tar+zstd'})

    def test_each_was_scanned_and_what_can_be_mended_fails_the_build(self):
        self.assertEqual(sorted((self.root / 'scanned').read_text().splitlines()),
                         sorted(2 * [f'oci-dir:layout/{kind} true true high' for kind in KINDS]))
        workflow = (self.root / 'site/.github/workflows/image.yml').read_text()
        self.assertLess(workflow.index('scan-action'), workflow.index('upload-artifact'))  # What is pushed was uploaded.

    def test_each_was_signed_by_its_digest_and_the_summary_names_it(self):
        signed = (self.root / 'signed').read_text().split()
        self.assertEqual(len(signed), 2)
        for name in KINDS.values():
            digest = self.inspect('--format', '{{.Digest}}', f'docker://{REGISTRY}/acme/agentic-ci/{name}:{TAG}')
            self.assertIn(f'{REGISTRY}/acme/agentic-ci/{name}@{digest}', signed)
            self.assertRegex(self.output, re.escape(f'{name}@{digest}'))

    def test_the_full_one_has_the_agents_that_are_pinned(self):
        root = self.root / 'full'
        subprocess.run(['umoci', 'unpack', '--image', f'{self.root}/layout-full:full', root], check=True, capture_output=True)
        for program in ('claude', 'codex', 'opencode', 'node'):
            # Claude Code ends without /proc.
            done = subprocess.run(['/usr/bin/unshare', '--pid', '--fork', f'--mount-proc={root}/rootfs/proc',
                                   '/usr/sbin/chroot', root / 'rootfs', f'/opt/agents/bin/{program}', '--version'],
                                  capture_output=True, text=True, timeout=120, env={'HOME': '/tmp', 'PATH': '/usr/bin:/bin'})
            self.assertEqual(done.returncode, 0, program + done.stderr)
            self.assertRegex(done.stdout, r'\d+\.\d+\.\d+')


if __name__ == '__main__':
    if os.geteuid() != 0:
        print('# SKIP root: only root builds images')
        sys.exit(4)
    unittest.main(verbosity=2)
