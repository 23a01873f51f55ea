# SPDX-License-Identifier: Apache-2.0
"""What the agent did is what the patch says: each patch is applied to a fresh clone, beside the same commands outside."""
import os
import subprocess

from harness import Case, git, read, write

HIDDEN = """version: 1
filesystem_policy:
  %s
  read_only: [/usr, /bin, /lib, /lib64, /etc]
network_policies: {}
"""


class Patches(Case):
    def test_checkout_that_the_policy_hides_is_not_deleted(self):
        for key in ('include_workdir: false', ''):
            with self.subTest(key=key):
                options = ['--policy', self.policy(HIDDEN % key), '--apply']
                run = self.run_agent('true', options=options, kind='success')
                self.assertEqual(read(run.report + '/changes.patch'), '')
                self.assertTrue(run.record['changes']['complete'])
                self.assertEqual(read(self.checkout + '/README.md'), 'hello\n')
                denied = self.shell('cat README.md || true', options=options)
                self.assertNotIn('hello', denied.out)

    def test_sha256_repository_is_refused_by_name(self):
        other = self.dir + '/sha256'
        os.mkdir(other)
        made = subprocess.run(['git', 'init', '-q', '--object-format=sha256', other], capture_output=True)
        self.feature('sha256', made.returncode == 0, 'this git makes no such repository')
        for options in ((), ('--policy-ref', 'worktree')):
            run = self.run_agent('true', checkout=other, options=options, code=69)
            self.assertIn('names its objects by SHA-256, and only SHA-1 is supported', run.err)
            self.assertIn('hint: git init --object-format=sha1 DIR', run.err)
