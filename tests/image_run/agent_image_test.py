#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The project's own image, built here (images/agent/build), signed with a key, in Debian's docker-registry: what works in it.

usage: agent_image_test.py BINARY LAYOUT [TEST...]    LAYOUT: of the kind `base`
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY, LAYOUT = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402  pylint: disable=wrong-import-position

USER = 1000 if os.geteuid() == 0 else os.geteuid()
NAME = 'agent-base'
# What stands for an agent: it works with the tools of the image, and tries what the image's policy does not have.
AGENT = '''set -eu
id -un >who
git log --format=%s >log; jq -r .name data.json >name; rg --count hello README.md >count; patch --version >patch-version
! curl -sS --max-time 120 https://example.com/ 2>refused
grep -q '^defaults' /etc/agentic-ci/policies/minimal.yml; test ! -e /usr/bin/apt-get; test ! -e /usr/bin/python3; test -e /usr/share/doc/git/copyright
! echo x 2>/dev/null >/etc/x
'''


class AgentImage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix='agent-image-'))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.top.chmod(0o755)
        shutil.copy(BINARY, cls.top / 'agentic-ci')  # Where the user may go.
        (cls.top / 'key.pub').write_bytes(images.OURS.pem)
        cls.home = cls.top / 'home'
        cls.checkout = cls.home / 'checkout'
        cls.checkout.mkdir(parents=True)
        (cls.checkout / 'README.md').write_text('hello\n')
        (cls.checkout / 'data.json').write_text('{"name":"value"}\n')
        git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com']
        for line in (['init', '-q'], ['add', '.'], ['commit', '-qm', 'one']):
            subprocess.run([*git, *line], cwd=cls.checkout, check=True)
        if os.geteuid() == 0:
            subprocess.run(['chown', '-R', f'{USER}:{USER}', cls.home], check=True)
        cls.registry = images.DebianRegistry(cls.top)
        cls.addClassCleanup(cls.registry.close)
        cls.host = cls.registry.host
        subprocess.run(['skopeo', 'copy', '--quiet', '--dest-tls-verify=false', f'oci:{LAYOUT}:base', f'docker://{cls.host}/{NAME}:v1'],
                       check=True, capture_output=True)
        cls.digest = json.loads(pathlib.Path(LAYOUT, 'index.json').read_text())['manifests'][0]['digest']

    def run_agent(self):
        report = self.home / 'report'
        shutil.rmtree(report, ignore_errors=True)
        line = [self.top / 'agentic-ci', 'run', '--workdir', self.checkout, '--report-dir', report, '--image-key', self.top / 'key.pub',
                '--image', f'{self.host}/{NAME}@{self.digest}', '--insecure-registry', self.host, '--', 'sh', '-c', AGENT]
        if os.geteuid() != USER:
            line = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', *line]
        done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, env={
            'PATH': '/usr/bin:/bin', 'HOME': str(self.home), 'AGENTIC_CI_STORE': str(self.home / 'store')})
        return done, json.loads((report / 'run.json').read_text()), report

    def test_it_is_refused_unsigned_and_has_tools_and_a_policy_of_its_own_signed(self):
        done, _, _ = self.run_agent()
        self.assertEqual((done.returncode, images.unpacked(self.home / 'store')), (77, []), done.stderr)
        self.registry.sign(NAME, self.digest)
        done, record, report = self.run_agent()
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(record['image']['digest'], self.digest)
        self.assertEqual((record['policy']['source'], record['policy']['path']), ('image', '/etc/openshell/policy.yaml'))
        self.assertEqual([denial['host'] for denial in record['denials']], ['example.com'])
        patch = (report / 'changes.patch').read_text()
        for line in ('+sandbox', '+one', '+value', '+1', '+GNU patch 2.7.6'):
            self.assertIn(line + '\n', patch)

    def test_an_agent_can_make_an_image_of_files_in_both_tiers(self):
        """docs/reference/container-builds.md."""
        command = ('set -e; export HOME=$PWD/home; mkdir home; cp -r given layout; '
                   'umoci unpack --rootless --image layout:base bundle; echo made >bundle/rootfs/opt/made; '
                   'umoci repack --image layout:new bundle; umoci insert --rootless --image layout:new --tag newer README.md /opt/README.md; '
                   'umoci ls --layout layout | sort >tags; skopeo copy --quiet oci:layout:newer oci:copy:newer; '
                   'umoci unpack --rootless --image copy:newer again; cat again/rootfs/opt/made again/rootfs/opt/README.md >both; '
                   'rm -rf home layout bundle copy again')
        site = self.home / 'site'
        shutil.copytree(self.checkout, site)
        for words in (['init', '--layout', 'given'], ['new', '--image', 'given:base'],
                      ['insert', '--rootless', '--image', 'given:base', '/bin/busybox', '/opt/busybox']):
            subprocess.run(['umoci', *words], cwd=site, check=True, capture_output=True)
        if os.geteuid() == 0:
            subprocess.run(['chown', '-R', f'{USER}:{USER}', site], check=True)
        for tier in ('namespaces', 'landlock'):
            report = self.home / f'report-{tier}'
            line = [self.top / 'agentic-ci', 'run', '--isolation', tier, '--workdir', site, '--report-dir', report,
                    '--', 'sh', '-c', command]
            if os.geteuid() != USER:
                line = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', *line]
            done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                                  env={'PATH': '/usr/bin:/bin', 'HOME': str(self.home)})
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            patch = (report / 'changes.patch').read_text()
            self.assertIn('+base\n+new\n+newer\n', patch)
            self.assertIn('+made\n+hello\n', patch)

    def test_the_layout_says_what_it_is(self):
        inspected = json.loads(subprocess.check_output(['skopeo', 'inspect', '--config', f'oci:{LAYOUT}:base']))
        self.assertEqual((inspected['config']['User'], inspected['config']['Cmd']), ('agent', ['/bin/bash']))
        self.assertEqual(len(inspected['rootfs']['diff_ids']), 1)


if __name__ == '__main__':
    if not os.path.exists(LAYOUT):
        print(f'# SKIP root: {LAYOUT} is not there, which only root can build')
        sys.exit(4)
    unittest.main(verbosity=2)
