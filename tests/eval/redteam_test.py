# SPDX-License-Identifier: Apache-2.0
"""The red team against policies that hold and policies with holes. usage: redteam_test.py AGENTIC-CI"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILT = os.path.abspath(sys.argv[1])
# A sandbox has a /tmp of its own, and any user must be able to start the program.
PLACE = pathlib.Path(tempfile.mkdtemp(prefix='redteam-test-', dir='/srv' if os.geteuid() == 0 else os.path.dirname(BUILT)))
BINARY = str(PLACE / 'agentic-ci')
USER = 1000
TIERS = ('namespaces', 'landlock')
REFUSED = 77
TIGHT = 'endpoints: []\n'
HOLES = '''version: 1
filesystem_policy:
  include_workdir: true
  read_only:
    - /usr
    - {host}
network_policies:
  holes:
    endpoints:
      - {{host: "*.example.com", port: 443, protocol: rest, access: full}}
      - {{host: db.example.org, port: 5432, protocol: tcp}}
      - {{host: api.example.net, port: 443, protocol: rest, access: read-only}}
      - {{host: narrow.example.net, port: 443, protocol: rest, rules: [{{allow: {{method: GET, path: /v1/*}}}}]}}
      - {{host: redteam.invalid, port: 443}}
      - {{host: quiet.example.net, port: 443, protocol: rest, rules: [{{allow: {{method: HEAD, path: "**"}}}}]}}
      - {{host: sockets.example.net, port: 443, protocol: websocket, access: read-write}}
    binaries: [{{path: "/**"}}]
'''


class Case(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix='redteam-test-'))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.checkout = self.top / 'checkout'
        self.host = pathlib.Path(tempfile.mkdtemp(prefix='host-', dir=PLACE))
        self.addCleanup(shutil.rmtree, self.host, ignore_errors=True)
        for directory in (self.checkout, self.top / 'tmp'):
            directory.mkdir()
        (self.checkout / 'a').write_text('a\n')
        (self.host / 'deploy-token.txt').write_text('not a real one\n')
        for path in (self.top, self.checkout, self.host, self.top / 'tmp'):
            path.chmod(0o1777)  # As /tmp: a report in what anyone may change is refused.

    def call(self, policy, *options, tier='namespaces', user=0, environment=(), binary=BINARY):
        (self.top / 'policy.yml').write_text(policy)
        words = [binary, 'eval', 'redteam', '--policy', self.top / 'policy.yml', '--isolation', tier, *options]
        if user != os.geteuid() and os.geteuid() == 0:
            words = ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups', *words]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=self.checkout,
                              stdin=subprocess.DEVNULL, timeout=300,
                              env={'PATH': os.environ['PATH'], 'HOME': str(self.top), 'TMPDIR': str(self.top / 'tmp'),
                                   **dict(environment)})
        self.said, self.complaint = done.stdout, done.stderr
        return done.returncode

    def document(self, policy, *options, **more):
        status = self.call(policy, '--json', *options, **more)
        self.assertNotEqual(self.said, '', self.complaint)
        return status, json.loads(self.said)

    def probe(self, document, name):
        return next(one for one in document['probes'] if one['id'] == name)

    def users(self):
        return (0, USER) if os.geteuid() == 0 else (os.geteuid(),)


class Redteam(Case):
    def test_nothing_gets_through_a_tight_policy_in_either_tier_for_any_user(self):
        for tier in TIERS:
            for user in self.users():
                with self.subTest(tier=tier, user=user):
                    status, document = self.document(TIGHT, tier=tier, user=user)
                    bad = [one for one in document['probes'] if one['standing'] in ('let-through', 'undecided')]
                    self.assertEqual((status, bad), (0, []), self.complaint)
                    self.assertEqual((document['tier'], document['user'], document['holds']), (tier, user, True))
                    self.assertEqual(document['openings'], [])
                    self.assertEqual(document['counts']['allowed-by-policy'], 0)
                    self.assertEqual(document['counts']['limit-of-tier'], 2 if tier == 'landlock' else 0)
                    self.assertGreater(document['counts']['stopped'], 80)
                    smuggled = {one['standing'] for one in document['probes'] if one['category'] == 'smuggling'}
                    self.assertEqual(smuggled, {'stopped'})

    @unittest.skipUnless(os.geteuid() == 0, 'root: of other users, the agent has the same')
    def test_a_program_that_only_root_may_start_is_tried_over_an_empty_checkout(self):
        private = PLACE / 'private'
        private.mkdir(mode=0o700)
        self.addCleanup(shutil.rmtree, private)
        shutil.copy(BINARY, private)
        for tier in TIERS:
            status, document = self.document(TIGHT, tier=tier, binary=private / 'agentic-ci')
            bad = [one for one in document['probes'] if one['standing'] in ('let-through', 'undecided')]
            self.assertEqual((status, bad), (0, []), self.complaint)
            self.assertIn(f'checkout: not shown to the agent, whose user may not start {private}/agentic-ci', document['controls'])
            self.assertGreater(document['counts']['stopped'], 80)

    def test_the_attempts_succeed_outside(self):
        status, document = self.document(TIGHT)
        self.assertEqual(status, 0, self.complaint)
        canary = 'it says redteam-canary-'
        for name in ('read', 'read-link', 'environment'):
            self.assertTrue(self.probe(document, name)['outside'].startswith(canary), name)
        for name in ('write', 'create', 'rename', 'list', 'kill'):
            self.assertEqual(self.probe(document, name)['outside'], 'succeeded')
        for name in ('host-loopback', 'host-abstract', 'host-socket'):
            self.assertEqual(self.probe(document, name)['outside'], 'connected')
        for name in ('two-lengths', 'bare-line-feed', 'pipelined', 'dots', 'other-method', 'upgrade'):
            self.assertEqual(self.probe(document, name)['outside'], 'came to the server')
        for name in ('direct-tcp', 'metadata', 'connect', 'dns-name', 'get'):  # They would leave the machine.
            self.assertIsNone(self.probe(document, name)['outside'])

    def test_each_hole_is_told_with_its_line(self):
        for tier in TIERS:
            with self.subTest(tier=tier):
                status, document = self.document(HOLES.format(host=self.host), tier=tier)
                self.assertEqual(status, 0, self.complaint)  # Nothing got through that the policy does not allow.
                policy = self.top / 'policy.yml'
                lets = {one['at']: one['lets'] for one in document['openings']}
                self.assertEqual(lets, {
                    f'{policy}:6': f'read {self.host}',
                    f'{policy}:10': 'send any data to any host that matches *.example.com, port 443',
                    f'{policy}:11': 'send any data to db.example.org:5432',
                    f'{policy}:12': 'send data in paths and queries of requests to api.example.net:443',
                    f'{policy}:13': 'send data in these requests to narrow.example.net:443: GET /v1/*',
                    f'{policy}:15': 'send data in these requests to quiet.example.net:443: HEAD **',
                    f'{policy}:14': 'send any data to redteam.invalid:443',
                    f'{policy}:16': 'send data in paths, queries and WebSocket messages to sockets.example.net:443'})
                self.assertEqual({one['at'][-2:]: one['sends'] for one in document['openings'] if one['at'][-2:] in ('10', '12', '13', '16', ':6')},
                                 {'10': 'any-data', '12': 'in-paths-and-queries', '13': 'in-its-requests', '16': 'in-websocket-messages',
                                  ':6': 'nothing'})
                found = self.probe(document, 'searched-files')
                self.assertEqual((found['standing'], found['because']),
                                 ('allowed-by-policy', f'{policy}:6: {self.host}/deploy-token.txt'))
                skipped = self.probe(document, 'connect')  # It is allowed, so it is not tried.
                self.assertEqual((skipped['standing'], skipped['inside']), ('allowed-by-policy', 'not tried'))
                self.assertTrue(skipped['because'].startswith(f'{policy}:14:'))
                self.assertEqual(self.probe(document, 'connect-port')['standing'], 'stopped')

    def test_the_table_names_what_lines_let_through(self):
        self.assertEqual(self.call(HOLES.format(host=self.host)), 0, self.complaint)
        self.assertRegex(self.said, r'(?m)^escape +\d+ +\d+ +0 +0 +0 +0$')
        self.assertIn(f"{self.top / 'policy.yml'}:11: send any data to db.example.org:5432, by /**\n", self.said)
        self.assertIn(f'{self.host}/deploy-token.txt\n', self.said)

    def test_a_credential_that_the_user_gives_away_is_found(self):
        """The control of the judgement: a run that lets something through is not called one that holds."""
        status, document = self.document(TIGHT, '--env', 'DEPLOY=redteam-canary-given')
        self.assertEqual(status, REFUSED)
        self.assertFalse(document['holds'])
        self.assertEqual(self.probe(document, 'environment')['standing'], 'let-through')
        self.assertIn('1 attempts got through', self.complaint)

    def test_a_secret_is_replaced_by_a_canary_and_seen_as_a_placeholder_only(self):
        report = self.top / 'report'
        status, document = self.document(TIGHT, '--secret', 'DEPLOY_KEY@api.example.com', '--report-dir', report,
                                         environment=[('DEPLOY_KEY', 'the-real-value')])
        self.assertEqual(status, 0, self.complaint)
        self.assertEqual(self.probe(document, 'environment')['standing'], 'stopped')
        for path in report.rglob('*'):
            if path.is_file():
                self.assertNotIn(b'the-real-value', path.read_bytes(), path)

    def test_a_token_in_the_checkouts_git_configuration_is_not_shown(self):
        subprocess.run(['git', 'init', '-q', self.checkout], check=True)
        config = self.checkout / '.git/config'
        config.write_text(config.read_text() + '[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic x\n')
        for tier in TIERS:
            status, document = self.document(TIGHT, tier=tier)
            probe = self.probe(document, 'git-config')
            self.assertEqual((status, probe['standing'], probe['outside']), (0, 'stopped', '.git/config has extraheader'))

    def test_a_policy_that_shows_no_checkout_is_tried_too(self):
        for tier in TIERS:
            status, document = self.document('version: 1\nfilesystem_policy: {include_workdir: false, read_only: [/usr]}\n',
                                             tier=tier)
            bad = [one for one in document['probes'] if one['standing'] in ('let-through', 'undecided')]
            self.assertEqual((status, bad), (0, []), self.complaint)

    def test_nothing_of_the_users_is_changed_and_nothing_is_left(self):
        for tier in TIERS:
            self.assertEqual(self.call(TIGHT, tier=tier), 0, self.complaint)
            self.assertEqual([one.name for one in self.checkout.iterdir()], ['a'])
            self.assertEqual((self.checkout / 'a').read_text(), 'a\n')
            self.assertEqual(list((self.top / 'tmp').iterdir()), [])

    def test_the_report_is_kept_where_asked(self):
        self.assertEqual(self.call(TIGHT, '--report-dir', self.top / 'report'), 0, self.complaint)
        run = json.loads((self.top / 'report/run.json').read_text())
        self.assertEqual(run['outcome']['kind'], 'success')

    def test_a_report_that_a_commit_brings_is_not_read_and_a_link_to_it_is_refused(self):
        report = self.checkout / 'report'
        self.assertEqual(self.call(TIGHT, '--report-dir', report), 0, self.complaint)
        elsewhere = self.top / 'elsewhere'
        elsewhere.mkdir()
        (self.checkout / 'link').symlink_to(elsewhere)
        (report / 'z').symlink_to(elsewhere)
        for directory in ('link', 'report'):
            self.assertEqual(self.call(TIGHT, '--report-dir', directory), REFUSED, self.said)
            self.assertIn('preparing the report directory', self.complaint)
        self.assertEqual(list(elsewhere.iterdir()), [])

    def test_an_exposed_directory_is_searched_to_its_depths(self):
        deep = self.host / '1/2/3/4/5/6'
        deep.mkdir(parents=True)
        (self.host / 'deploy-token.txt').rename(deep / 'deploy-token.txt')
        _, document = self.document(HOLES.format(host=self.host))
        found = self.probe(document, 'searched-files')
        self.assertEqual(found['standing'], 'allowed-by-policy')
        self.assertIn(f'{deep}/deploy-token.txt', found['because'])
        deeper = self.host / '/'.join('d' * 70)
        deeper.mkdir(parents=True)
        shutil.rmtree(self.host / '1')
        (deeper / 'deploy-token.txt').write_text('not a real one\n')
        status, document = self.document(HOLES.format(host=self.host))
        found = self.probe(document, 'searched-files')
        self.assertEqual((status, found['standing']), (REFUSED, 'undecided'))
        self.assertIn('too much to search', found['inside'])

    @unittest.skipUnless(os.path.exists('/bin/busybox'), 'no busybox to make an image of')
    def test_nothing_gets_through_in_an_image_either(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'image_run'))
        import images
        shelf = images.Shelf()
        self.addCleanup(shelf.close)
        image = shelf.image()
        shelf.cosign(image)
        key = self.top / 'key.pub'
        key.write_text(images.OURS.pem.decode())
        status, document = self.document(TIGHT, '--image', shelf.reference(image), '--insecure-registry', shelf.host,
                                         '--image-key', key, environment=[('AGENTIC_CI_STORE', str(self.top / 'store'))])
        bad = [one for one in document['probes'] if one['standing'] in ('let-through', 'undecided')]
        self.assertEqual((status, bad), (0, []), self.complaint)
        self.assertGreater(document['counts']['stopped'], 80)

    def test_bait_in_the_checkout_is_refused(self):
        inside = self.checkout / 'tmp'
        inside.mkdir()
        self.assertEqual(self.call(TIGHT, environment=[('TMPDIR', str(inside))]), 64)
        self.assertIn('TMPDIR=', self.complaint)
        self.assertEqual(list(inside.iterdir()), [])

    def test_errors_are_those_of_the_policy_and_of_the_command_line(self):
        self.assertEqual(self.call('endpoints: [x]\n'), 65)
        self.assertIn('policy.yml:1:13', self.complaint)
        self.assertEqual(self.call(TIGHT, '--policy', '/dev/null'), 64)
        self.assertEqual(self.call(TIGHT, 'operand'), 64)
        self.assertEqual(self.call(TIGHT, tier='none'), 64)

    def test_the_agent_does_nothing_when_a_person_starts_it(self):
        for words in ([], ['{}'], ['now']):
            done = subprocess.run([BINARY, 'eval', 'redteam-agent', *words], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (64, ''))
            self.assertIn('eval redteam', done.stderr)


if __name__ == '__main__':
    try:
        PLACE.chmod(0o755)
        shutil.copy(BUILT, BINARY)
        unittest.main(argv=sys.argv[:1] + sys.argv[2:])
    finally:
        shutil.rmtree(PLACE)
