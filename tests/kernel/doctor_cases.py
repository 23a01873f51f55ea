# SPDX-License-Identifier: Apache-2.0
"""`agentic-ci doctor` says what a run then finds."""
import json
import os
import subprocess

from harness import BASE, BIN, FIXTURES, PLAIN_ENV, SCRATCH, Case, only_as

STATES = {'enforced': 'available', 'emulated': 'restricted', 'unavailable': 'absent'}


class Doctor(Case):
    def doctor(self, *options, code=0, before=(), checkout=None):
        done = subprocess.run([*before, BIN, 'doctor', '--workdir', checkout or self.checkout, *options],
                              env=dict(PLAIN_ENV, HOME=self.home), capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_doctor_finds_what_a_run_finds(self):
        found = json.loads(self.doctor('--json').stdout)
        self.assertEqual((found['tier'], found['error']), ('namespaces', ''))
        said = {m['name']: m['availability'] for m in found['mechanisms']}
        run = self.run_agent('true', options=['--cpus', '1'])
        for control in run.record['isolation']['controls']:
            self.assertEqual(said[control['name']], STATES[control['state']], control)
        self.assertIn('tier namespaces: runs can start here\n', self.doctor().stdout)

    def test_doctor_names_what_is_missing_and_what_to_type(self):
        """In a user namespace without ids, which the kernel gives no other."""
        control = subprocess.run(['unshare', '-U', 'true'])
        self.feature('user namespaces', control.returncode == 0, 'this host has none')
        os.chmod(self.dir, 0o755)
        found = json.loads(self.doctor('--json', before=['unshare', '-U']).stdout)
        self.assertEqual(found['tier'], 'landlock')
        self.assertEqual([(m['name'], m['availability']) for m in found['mechanisms'][:2]],
                         [('user namespaces', 'restricted'), ('tier landlock', 'available')])
        self.assertRegex(found['error'], r'^starting the sandbox: .*: Operation not permitted')
        self.assertIn('--isolation landlock', self.doctor(before=['unshare', '-U']).stdout)

    def test_root_of_a_namespace_without_others_is_an_ordinary_user(self):
        script = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
        found = json.loads(self.doctor('--json', before=['unshare', '-U', '-r', 'sh', '-c', script, 'sh']).stdout)
        self.assertEqual(found['tier'], 'landlock')
        self.assertIn('max_user_namespaces', found['mechanisms'][0]['remedy'])

    @only_as('user')
    def test_doctor_says_that_a_checkout_would_be_copied_and_does_not_copy_it(self):
        self.feature('root', FIXTURES, 'nobody here can give a checkout to another user')
        done = self.doctor(checkout=BASE + '/foreign')
        self.assertIn('restricted  checkout', done.stdout)
        self.assertIn('hown -R', done.stdout)
        self.assertNotIn('copied', done.stderr)
        self.assertEqual(os.listdir(SCRATCH), [])

    def test_doctor_looks_at_a_host_from_its_top(self):
        done = self.doctor(checkout='/')
        self.assertIn('tier namespaces: runs can start here', done.stdout)
        self.assertNotIn('copying', done.stderr)
        self.assertEqual(os.listdir(SCRATCH), [])
