# SPDX-License-Identifier: Apache-2.0
"""What `watch` says of a sandbox and of a run while they go on."""
import os
import subprocess
import time

from harness import BIN, BUSY_SECONDS, Case, read, wait_until

REQUEST = 'python3 -c "import urllib.request as r; r.urlopen(\'http://example.com/x\')"'
REFUSED = 'refused  GET example.com:80/x by '


class Watches(Case):
    def watch(self, what):
        with open(self.base + '/watched', 'w') as file:
            process = subprocess.Popen([BIN, 'watch', what], stdout=file, stderr=subprocess.STDOUT, cwd=self.base,
                                       env=self.env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def sees(self, text):
        seen = wait_until(lambda: text in read(self.base + '/watched'), BUSY_SECONDS)
        self.assertTrue(seen, f'no {text!r} in {read(self.base + "/watched")!r}')

    def test_a_sandbox_is_followed_to_its_end(self):
        self.create('--disk', '16MiB')
        watch = self.watch('one')
        self.script(REQUEST)
        self.sees(REFUSED)
        self.sees('would be allowed by  example.com:80')
        self.assertIsNone(watch.poll())
        self.script('head -c 10000000 /dev/zero >big')
        self.sees('\nlimit    disk: ')
        self.script(REQUEST)
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        self.assertEqual(watch.wait(BUSY_SECONDS), 0, read(self.base + '/watched'))
        text = read(self.base + '/watched')
        self.assertIn('Done', text.splitlines()[-2])
        self.assertEqual(text.count(REFUSED), 1)
        self.assertNotIn('\x1b', text)

    def run_until(self, name):
        """A run that makes a request, and goes on until there is a file."""
        command = [BIN, 'run', '--workdir', self.work, '--report-dir', self.report, '--isolation', self.TIER, '--',
                   'sh', '-c', f'{REQUEST}; until [ -e {name} ]; do sleep 0.1; done']
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.base, env=self.env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        events = self.report + '/events.ocsf.jsonl'
        self.assertTrue(wait_until(lambda: os.path.exists(events), BUSY_SECONDS))
        return process

    def test_a_run_is_followed_by_its_report_directory(self):
        run = self.run_until('/proc/no-such-file')
        watch = self.watch(self.report)
        self.sees(REFUSED)
        time.sleep(1)
        self.assertIsNone(watch.poll())
        run.terminate()
        run.wait(BUSY_SECONDS)
        self.assertEqual(watch.wait(BUSY_SECONDS), 0, read(self.base + '/watched'))
        self.assertIn('Terminated', read(self.base + '/watched'))
        again = self.call('watch', self.report)  # It has ended: all of it at once.
        self.assertEqual((again.returncode, again.stdout), (0, read(self.base + '/watched')), again.stderr)

    def test_a_run_that_is_killed_has_no_report(self):
        run = self.run_until('/proc/no-such-file')
        watch = self.watch(self.report)
        self.sees(REFUSED)
        run.kill()
        run.wait()
        self.assertEqual(watch.wait(BUSY_SECONDS), 74)
        self.assertIn('it ended without a report', read(self.base + '/watched'))
        self.create()  # Which removes what was left.

    def test_what_is_not_there_is_not_watched(self):
        refused = self.call('watch', 'none')
        self.assertEqual(refused.returncode, 66, refused.stderr)
