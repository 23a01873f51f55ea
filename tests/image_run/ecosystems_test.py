#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ecosystems:` with `--image`: the image's tools say which registries are opened, not the host's,
and not the pull request.

ecosystems_test.py AGENTIC_CI [unittest arguments]
"""
import json
import os
import re
import subprocess
import sys
import time
import unittest
import urllib.request

import image_run_test
from image_run_test import read

SETUP = 78
ASK_SECONDS = 20  # How long an image's tools are waited for.


class Case(image_run_test.Case):
    def setUp(self):
        super().setUp()
        self.bin = self.top + '/bin'
        os.mkdir(self.bin)
        self.variables = {'PATH': self.bin + ':/usr/bin:/bin'}
        self.write('checkout/.agentic-ci/config.yml', 'ecosystems: [node]\n')
        self.commit()
        self.own()

    def host_tool(self, name, script):
        os.chmod(self.write('bin/' + name, '#!/bin/sh\n' + script), 0o755)

    def image_with(self, layers=(), config=None, **tools):
        scripts = [('bin/' + name, '#!/bin/sh\n' + script) for name, script in tools.items()]
        return self.signed(layers=[[*scripts, *layers]], config=config)

    def start(self, image, *command, report='report'):
        """A run; of the host's own root without an image."""
        surroundings = self.surroundings()
        surroundings['env'].update(self.variables)
        options = ['--image', self.shelf.reference(image), '--insecure-registry', self.shelf.host,
                   '--image-key', self.key] if image else []
        return subprocess.Popen(
            self.line(['run', '--workdir', self.checkout, '--report-dir', f'{self.top}/home/{report}',
                       *options, '--', *(command or ['true'])]),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace', **surroundings)

    def finish(self, process, code=0):
        out, self.log = process.communicate(timeout=600)
        self.assertEqual(process.returncode, code, self.log + out)
        self.out = out
        return sorted(re.findall(r'registry opened.*?host=(\S+)', self.log))

    def opened(self, image, *command, code=0):
        return self.finish(self.start(image, *command), code)

    def check_that_the_image_is_asked(self):
        self.host_tool('npm', 'echo https://host.example/')
        self.host_tool('yarn', 'echo https://host-alone.example/')
        image = self.image_with(
            layers=[('etc/npmrc', 'https://file.image.example:8443/\n')], npm='''
            cat /etc/npmrc; echo $NPM_CONFIG_REGISTRY''', config={
                'Env': ['NPM_CONFIG_REGISTRY=https://variable.image.example/', 'PATH=/bin']})
        self.assertEqual(self.opened(None), ['host-alone.example', 'host.example'])  # The control.
        self.assertEqual(self.opened(image, 'sh', '-c', '''
            for host in file.image.example:8443 host.example:443; do
              wget -q -O - http://$host/ 2>&1 | sed "s/^/$host /"
            done; true'''), ['file.image.example', 'variable.image.example'])
        # Opened is what the gateway lets through, to where there is nobody; the host's is refused.
        denied = json.dumps(json.loads(read(self.top + '/home/report/run.json'))['denials'])
        self.assertIn('"host.example"', denied)
        self.assertNotIn('file.image.example', denied)


class Ecosystems(Case):
    def test_tools_of_the_image_say_which_registries_there_are(self):
        self.check_that_the_image_is_asked()

    def test_pull_request_has_no_say(self):
        image = self.image_with(npm=f'''
            cat .npmrc "$HOME/.npmrc" {self.checkout}/.npmrc; set -- *; [ "$*" = 0 ] || echo https://full.example/
            [ -e {self.checkout} ] && echo https://checkout.example/
            [ -e {self.top}/home ] && echo https://home.example/
            [ -n "$CI_TOKEN$AGENTIC_CI_STORE" ] && echo https://leak.example/
            echo https://image.example/''')
        self.variables['CI_TOKEN'] = 't'
        lock = '{"packages": {"a": {"resolved": "https://%s/a.tgz"}}}'
        self.write('checkout/package-lock.json', lock % 'trusted.example')
        self.write('home/.npmrc', 'https://home-file.example/')
        self.commit()
        # What the working tree says beside its commit is the pull request's.
        self.write('checkout/package-lock.json', lock % 'evil.example')
        self.write('checkout/.npmrc', 'registry=https://evil.example/\n')
        self.own()
        self.assertEqual(self.opened(image, 'cat', '.npmrc'), ['image.example', 'trusted.example'])
        self.assertIn('evil.example', self.out)  # The control: it is there for the agent.

    def test_without_a_tool_in_the_image_nothing_is_known(self):
        self.host_tool('npm', 'echo https://host.example/')
        shells = [[], [('bin/.wh.sh', '')]]
        for image in (self.image_with(), self.image_with(layers=shells[1], npm='echo https://a.example/')):
            self.opened(image, code=SETUP)
            self.assertIn("no registry found for the ecosystem 'node': none of its tools in the "
                          'image', self.log)
        self.write('checkout/package-lock.json', '{"a": {"resolved": "https://lock.example/a"}}')
        self.commit()
        self.own()
        self.assertEqual(self.opened(self.image_with()), ['lock.example'])

    def test_hostile_tools_open_nothing_and_end(self):
        port, asked = self.serve(b'https://fetched.example/\n')
        url = f'http://127.0.0.1:{port}/'
        self.assertIn(b'fetched.example', urllib.request.urlopen(url).read())  # The control.
        self.assertEqual(asked, ['/'])

        began = time.monotonic()
        endless = self.start(self.image_with(npm='echo https://kept.example/; exec sleep 1000',
                                             pnpm='echo https://beside.example/'), report='endless')
        self.addCleanup(endless.kill)
        for script, code, hosts in (
                ('''printf '\\377\\000 https:// https://a..b https://localhost/ https://10.0.0.1/ https://[::1]/' ''',
                 SETUP, []),
                ('echo https://first.example/; exec cat /dev/zero', 0, ['first.example']),
                ('rm 0; busybox mkfifo 0', SETUP, []),
                (f'wget -Y off -O - {url}; wget -O - {url}; https_proxy= wget -Y off -O - http://10.200.0.1:3128/ ;'
                 'echo https://after.example/', 0, ['after.example']),
                ('i=0; while [ $i -lt 70 ]; do echo https://r$i.example/; i=$((i+1)); done', SETUP, [])):
            self.assertEqual(self.opened(self.image_with(npm=script), code=code), hosts, script)
        self.assertIn('has more than 64 registries', self.log)
        self.assertEqual(asked, ['/'])
        self.assertEqual(self.finish(endless), ['beside.example', 'kept.example'])
        self.assertGreater(time.monotonic() - began, ASK_SECONDS)

    def test_signal_ends_the_asking(self):
        began = time.monotonic()
        process = self.start(self.image_with(npm='exec sleep 1000'))
        time.sleep(2)
        process.terminate()
        self.finish(process, 143)
        self.assertLess(time.monotonic() - began, ASK_SECONDS)


@unittest.skipUnless(os.geteuid() == 0, 'root: only root may')
class Root(Case):
    uid = 0

    def test_tools_of_the_image_are_asked_by_root_too(self):
        self.check_that_the_image_is_asked()


if __name__ == '__main__':
    image_run_test.main()
