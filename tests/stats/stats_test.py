# SPDX-License-Identifier: Apache-2.0
"""Figures over many reports. usage: stats_test.py BINARY [TEST...]"""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY = os.path.abspath(sys.argv.pop(1))
HOSTILE = '<script>alert(1)</script>|`x`\n::add-mask::y\x1b[31m@all'


class Stats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A month of three real runs: one succeeds, one fails, one is refused a host."""
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix='stats-test-'))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.month = cls.top / 'month'
        (cls.top / 'policy.yml').write_text('endpoints: []\n')
        asks = ['sh', '-c', 'for i in 1 2; do curl -s -m 20 -o /dev/null http://pkg.example.com/a; done']
        for name, command in (('good', ['true']), ('bad', ['sh', '-c', 'exit 3']), ('asks', asks)):
            work = cls.top / name
            work.mkdir()
            subprocess.run([BINARY, 'run', '--quiet', '--policy', cls.top / 'policy.yml', '--report-dir',
                            cls.month / f'job-{name}/agentic-ci-report', '--', *command],
                           cwd=work, env={'PATH': os.environ['PATH']}, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def stats(self, *words, expect=0):
        done = subprocess.run([BINARY, 'stats', *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        self.said = done.stderr
        return done.stdout

    def changed(self, name, change):
        """A report whose record is another one's, with something else in it."""
        place = self.top / 'made' / name
        place.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.top / 'made', ignore_errors=True)
        record = json.loads((self.month / 'job-good/agentic-ci-report/run.json').read_text())
        change(record)
        (place / 'run.json').write_text(json.dumps(record))
        return record

    def test_a_month_of_runs(self):
        found = json.loads(self.stats('--json', self.month))
        self.assertEqual((found['runs'], found['not_read']), (3, 0))
        self.assertEqual({row['outcome']: row['runs'] for row in found['outcomes']}, {'success': 2, 'agent-failed': 1})
        work, = found['work']
        self.assertEqual((work['agent'], work['runs'], round(work['succeeded'], 3)), ('command', 3, 0.667))
        denied, = found['denials']
        self.assertEqual(denied, {'host': 'pkg.example.com:80', 'allow_line': 'pkg.example.com:80:read-only', 'runs': 1, 'requests': 2})
        failure, = found['failures']
        self.assertEqual((failure['kind'], failure['runs']), ('agent-failed', 1))
        self.assertIn('3', failure['reason'])
        self.assertIn('agent', {row['phase'] for row in found['phases']})
        self.assertEqual(sum(row['runs'] for row in found['days']), 3)
        text = self.stats(self.month)
        self.assertRegex(text, r'^3 runs, \d{4}-\d\d-\d\d(, | to )')
        self.assertRegex(text, r'(?m)^  pkg\.example\.com:80 +pkg\.example\.com:80:read-only +1 +2$')
        # A report by itself, and the same runs in two places.
        self.assertEqual(json.loads(self.stats('--json', self.month / 'job-bad/agentic-ci-report'))['runs'], 1)
        self.assertEqual(json.loads(self.stats('--json', self.month / 'job-bad', self.month / 'job-good'))['runs'], 2)

    def test_costs_and_durations_by_model(self):
        def change(number):
            def do(record):
                record['usage'].update(model='m', turns=1, input_tokens=10, output_tokens=number, cost_usd=number / 10)
                record['agent'].update(name='claude-code', task='review')
                record['finished_at_ms'] = record['started_at_ms'] + 1000 * number
            return do
        for number in range(1, 21):
            self.changed(f'r{number}', change(number))
        self.changed('unknown', lambda record: record['usage'].update(turns=1, cost_usd=None))
        found = json.loads(self.stats('--json', self.top / 'made'))
        work = next(row for row in found['work'] if row['model'] == 'm')
        self.assertEqual((work['task'], work['agent'], work['runs'], work['tokens']), ('review', 'claude-code', 20, 410))
        self.assertAlmostEqual(work['cost_usd'], 21)
        self.assertAlmostEqual(work['cost_per_run_usd'], 1.05)
        self.assertEqual((work['median_ms'], work['p95_ms']), (11000, 19000))
        self.assertEqual(found['cost_unknown'], 1)
        self.assertIn('$21.00 without what 1 run did not know', self.stats(self.top / 'made'))

    def test_what_a_report_says_is_shown_and_does_nothing(self):
        def change(record):
            record['agent']['task'] = record['outcome']['reason'] = HOSTILE
            record['outcome'].update(kind='setup-failed', exit_code=70)
        self.changed('hostile', change)
        made = self.top / 'made'
        self.assertEqual(json.loads(self.stats('--json', made))['work'][0]['task'], HOSTILE)
        for words in ((), ('--markdown',)):
            text = self.stats(*words, made)
            self.assertNotIn('\x1b', text)
            self.assertIsNone(re.search(r'(?m)^::', text))
        self.assertIn('`', text)
        page = self.stats('--html', made)
        tags = set()
        parser = html.parser.HTMLParser()
        parser.handle_starttag = lambda tag, attributes: tags.add(tag)
        parser.feed(page)
        self.assertNotIn('script', tags)
        self.assertIn('table', tags)
        self.assertIn('alert(1)', page)

    def test_what_is_no_report_is_named_and_the_rest_is_counted(self):
        made = self.top / 'made'
        self.changed('good', lambda record: None)
        for name, text in (('cut', '{"version": 1'), ('other', '[]'), ('newer', '{"version": 99}')):
            (made / name).mkdir()
            (made / name / 'run.json').write_text(text)
        (made / 'link').mkdir()
        (made / 'link/run.json').symlink_to(made / 'good/run.json')
        (made / 'pipe').mkdir()
        os.mkfifo(made / 'pipe/run.json')
        (made / 'tree').symlink_to(self.month)
        shutil.copytree(made / 'good', made / 'good/checks/1')  # Part of its run.
        found = json.loads(self.stats('--json', made))
        self.assertEqual((found['runs'], found['not_read']), (1, 5))
        for name in ('cut', 'other', 'newer', 'link', 'pipe'):
            self.assertIn(f'made/{name}', self.said)
        self.assertIn('; 5 reports could not be read', self.stats(made))

    def test_bad_input(self):
        (self.top / 'empty').mkdir(exist_ok=True)
        self.stats(self.top / 'empty', expect=66)
        self.assertIn('no report of a run is in', self.said)
        self.stats(self.top / 'absent', expect=66)
        self.stats(expect=64)
        self.assertIn('agentic-ci stats artifacts/', self.said)
        self.stats('--json', '--html', self.month, expect=64)


if __name__ == '__main__':
    unittest.main(verbosity=2)
