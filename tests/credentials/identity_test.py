#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job's identity becomes the model's credential in the gateway: each provider's exchange, what is in the sandbox (nothing), and what
happens when tokens end, are revoked or are refused.

usage: identity_test.py AGENTIC_CI [unittest arguments]
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from identity_service import AUDIENCES, ISSUER, POOL, SUBJECT, Services  # noqa: E402
from upstream import Upstream  # noqa: E402

BINARY = os.path.abspath(sys.argv.pop(1))
HOST = 'host.openshell.internal'
REQUEST = 'request-t0ken-5ecret'
# By the provider: its configuration, the agent's variable, and the one that leads to the test's API.
PROVIDERS = {
    'anthropic': ('federation_rule: fdrl_1, organization: org-1, service_account: svac_1, workspace: default', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_BASE_URL'),
    'openai': ('identity_provider: idp_1, service_account: sa_1', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'),
    'azure': ('tenant: tenant-1, client: client-1', 'AZURE_OPENAI_API_KEY', 'AZURE_OPENAI_BASE_URL'),
    'vertex': (f'workload_provider: {POOL}, service_account: ci@p.iam.gserviceaccount.com', 'GOOGLE_ACCESS_TOKEN', 'ANTHROPIC_VERTEX_BASE_URL'),
    'bedrock': ('role: "arn:aws:iam::123456789012:role/ci", region: eu-central-1', 'AWS_SECRET_ACCESS_KEY', 'ANTHROPIC_BEDROCK_BASE_URL'),
}


class Runs(unittest.TestCase):
    """Runs of the binary with an identity, against the services."""

    def setUp(self):
        # Not beneath /tmp: the sandbox has one of its own.
        self.top = pathlib.Path(tempfile.mkdtemp(prefix='identity-test-', dir='/var/tmp'))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.top.chmod(0o755)
        self.checkout = self.top / 'checkout'
        (self.checkout / '.agentic-ci').mkdir(parents=True)
        self.services = Services()
        upstream = Upstream(str(self.top))
        self.port = upstream.listen(self.services.answer)
        self.at = f'https://{HOST}:{self.port}'
        # The job's own is not reached by an alias.
        self.github = {'GITHUB_ACTIONS_TEST': '1', 'ACTIONS_ID_TOKEN_REQUEST_URL': f'{self.at}/gh/token?api-version=2.0',
                       'ACTIONS_ID_TOKEN_REQUEST_TOKEN': REQUEST}

    def configure(self, provider, more='', values=None, shown=()):
        text = PROVIDERS[provider][0] if values is None else values
        hosts = f', host: "{self.at}"' + (f', iam_host: "{self.at}"' if provider == 'vertex' else '')
        (self.checkout / '.agentic-ci/config.yml').write_text(f'providers: {{{provider}: {{identity: {{{text}{hosts}{more}}}}}}}\n')
        (self.checkout / '.agentic-ci/openshell-policy.yml').write_text(
            'version: 1\n'
            + (f'filesystem_policy: {{include_workdir: true, read_only: [/usr, /lib, /etc, {", ".join(map(str, shown))}]}}\n' if shown else '')
            + f'network_policies:\n  api:\n    endpoints: [{{host: {HOST}, port: {self.port}, protocol: rest, access: full'
            + (', credential_signing: "sigv4:body", signing_service: bedrock, signing_region: eu-central-1' if provider == 'bedrock' else '') + '}]\n'
            '    binaries: [{path: "/**"}]\n')
        git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-C', self.checkout]
        for line in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'one', '--allow-empty']):
            subprocess.run([*git, *line], check=True)

    def start(self, provider, script, environment=None, options=()):
        base = {PROVIDERS[provider][2]: f'{self.at}/api/{provider}'} if provider in PROVIDERS else {}
        return subprocess.Popen(
            [BINARY, 'run', '--workdir', self.checkout, '--provider', provider, '--ca-file', self.top / 'ca.pem', '--report-dir',
             self.top / 'report', '--timeout', '100s', *options, '--', 'sh', '-c', script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={'PATH': '/usr/local/bin:/usr/bin:/bin', 'HOME': str(self.top), **base, **(self.github if environment is None else environment)})

    def go(self, *arguments, code=0, **named):
        run = self.start(*arguments, **named)
        out, self.err = run.communicate(timeout=200)
        self.assertEqual(run.returncode, code, out[-3000:] + self.err[-5000:])
        for name, text in [('output', out), ('errors', self.err)] + [(str(path), path.read_text(errors='replace'))
                                                                   for path in (self.top / 'report').rglob('*') if path.is_file()]:
            self.assertNotIn('5ecret', text, name)
        return out

    def ask(self, provider, more=''):
        variable = PROVIDERS[provider][1]
        # Clients of Google's and AWS hold nothing: the gateway puts the credential in, or signs.
        sent = f'-H "Authorization: Bearer ${variable}"' if provider not in ('bedrock', 'vertex') else "-H 'X-Client: 1'"
        return f'curl -sS -o /dev/null -w "%{{http_code}} " {sent} {more} {self.at}/api/{provider}/v1/x -d "{{}}"; '

    def record(self):
        return json.loads((self.top / 'report/run.json').read_text())


class Identity(Runs):
    def test_each_provider_takes_the_identity_of_a_job_of_github(self):
        for provider, (_, variable, _) in PROVIDERS.items():
            with self.subTest(provider):
                self.configure(provider)
                # The agent has a placeholder, and no trace of the right to ask for a token.
                said = self.go(provider, f'echo "${variable}"; env | grep -c ACTIONS_ID; {self.ask(provider)}')
                shown = [] if provider == 'vertex' else [f'openshell:resolve:env:{variable}']
                self.assertEqual(said.split(), [*shown, '0', '200'], (self.services.refusals, self.err))
                taken = self.record()['identities']
                service = {'bedrock': 'aws', 'vertex': 'google'}.get(provider, provider)
                self.assertEqual([(one['provider'], one['issuer'], one['subject'], one['audience']) for one in taken],
                                 [(provider, ISSUER, SUBJECT, AUDIENCES[service])])
                self.assertIn(SUBJECT, (self.top / 'report/report.html').read_text())
        self.assertEqual(self.services.exchanges, ['anthropic', 'openai', 'azure', 'google', 'account', 'aws'])
        self.assertIn('oauth-2025-04-20', self.services.api[0][1]['anthropic-beta'])

    def test_the_clients_own_words_stay_beside_what_the_identity_adds(self):
        self.configure('anthropic')
        self.go('anthropic', self.ask('anthropic', '-H "anthropic-beta: mine-1"'))
        self.assertEqual(self.services.api[0][1]['anthropic-beta'], 'mine-1,oauth-2025-04-20')

    def test_two_hundred_requests_at_once_share_one_exchange(self):
        self.configure('anthropic')
        said = self.go('anthropic', f'for i in $(seq 200); do ({self.ask("anthropic")}) & done; wait')
        self.assertEqual(said.split(), ['200'] * 200)
        self.assertEqual(self.services.exchanges, ['anthropic'])

    def test_a_token_that_ends_or_is_revoked_in_the_middle_of_a_run_is_replaced(self):
        self.configure('anthropic')
        self.services.lifetime = 4  # It is renewed after three seconds.
        said = self.go('anthropic', f'{self.ask("anthropic")} sleep 5; {self.ask("anthropic")}')
        self.assertEqual((said.split(), self.services.exchanges), (['200', '200'], ['anthropic'] * 2))
        self.services.exchanges.clear()
        self.services.lifetime = 3600
        run = self.start('anthropic', f'{self.ask("anthropic")} sleep 4; {self.ask("anthropic")}')
        before, deadline = len(self.services.api), time.time() + 60
        while len(self.services.api) == before and time.time() < deadline:
            time.sleep(0.05)
        self.services.valid.clear()
        out, err = run.communicate(timeout=100)
        self.assertEqual((out.split(), run.returncode), (['200', '200'], 0), err)
        self.assertEqual(self.services.exchanges, ['anthropic'] * 2)

    def test_a_service_that_is_busy_is_asked_again_with_another_token(self):
        self.configure('anthropic')
        self.services.failing = [429, 503]
        self.assertEqual(self.go('anthropic', self.ask('anthropic')).split(), ['200'])
        self.assertEqual(self.services.minted, 3)  # Each exchange has one of its own.
        self.services.failing = [500] * 9
        self.go('anthropic', self.ask('anthropic'), code=75)
        self.assertIn('500', self.err)

    def test_a_refusal_ends_the_run_before_its_agent_and_says_what_was_sent(self):
        self.configure('anthropic', values='federation_rule: fdrl_2, organization: org-1, service_account: svac_1, workspace: default')
        self.go('anthropic', 'touch started', code=78)
        for word in ('401', 'authentication_error', ISSUER, SUBJECT, AUDIENCES['anthropic']):
            self.assertIn(word, self.err)
        self.configure('azure', more=', audience: api://other')
        self.go('azure', 'touch started', code=78)
        self.assertIn('AADSTS700213', self.err)
        self.configure('bedrock', more=', audience: other')
        self.go('bedrock', 'touch started', code=78)
        self.assertIn('InvalidIdentityToken', self.err)

    def test_a_clock_that_is_wrong_is_named(self):
        self.configure('openai')
        self.services.skew = 600
        stamp = time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime(time.time() + 600))
        upstream = Upstream(str(self.top))
        self.port = upstream.listen(lambda asked: self.services.answer(asked), extra=lambda: f'Date: {stamp}\r\n')
        self.at = f'https://{HOST}:{self.port}'
        self.github['ACTIONS_ID_TOKEN_REQUEST_URL'] = f'{self.at}/gh/token?api-version=2.0'
        self.configure('openai')
        self.go('openai', 'true', code=78)
        self.assertRegex(self.err, r"this machine's clock is (599|600|601) s behind")

    def test_a_token_in_a_file_is_read_again_when_another_one_is_needed(self):
        token = self.top / 'token'
        token.write_text(self.services.mint(AUDIENCES['anthropic']))
        self.configure('anthropic', more=f', token_file: {token}')
        self.services.lifetime = 4
        stop = threading.Event()

        def renew():
            while not stop.wait(0.5):
                fresh = self.top / 'fresh'
                fresh.write_text(self.services.mint(AUDIENCES['anthropic']))
                fresh.rename(token)

        threading.Thread(target=renew, daemon=True).start()
        self.addCleanup(stop.set)
        said = self.go('anthropic', f'{self.ask("anthropic")} sleep 5; {self.ask("anthropic")} cat {token} 2>&1 | tail -c 20', environment={})
        stop.set()
        self.assertEqual(said.split()[:2], ['200', '200'])
        self.assertIn('file or directory', said)
        self.assertEqual(self.services.exchanges, ['anthropic'] * 2)

    def test_a_renewed_token_is_hidden_whatever_its_name(self):
        # As the kubelet does it: `token` leads to `..data/token`, and that to a directory which is replaced.
        shown = self.top / 'shown'
        tokens = shown / 'tokens'
        (tokens / '..1').mkdir(parents=True)
        (tokens / '..data').symlink_to('..1')
        (tokens / 'token').symlink_to('..data/token')
        (shown / 'other').write_text('other\n')
        for tier in ('namespaces', 'landlock'):
            with self.subTest(tier):
                (tokens / '..1/token').write_text(self.services.mint(AUDIENCES['anthropic']))
                self.configure('anthropic', more=f', token_file: {tokens}/token', shown=[shown])
                run = self.start('anthropic', f'{self.ask("anthropic")} sleep 3; cat {shown}/other; find {shown} -type f -exec cat {{}} + 2>/dev/null; true',
                                 environment={}, options=['--isolation', tier])
                time.sleep(1.5)
                shutil.copytree(tokens / '..1', tokens / '..2', dirs_exist_ok=True)
                out, err = run.communicate(timeout=100)
                shutil.rmtree(tokens / '..2')
                self.assertEqual(out, '200 other\nother\n', err)

    def test_a_token_in_the_checkout_is_for_the_gateway_alone(self):
        token = self.checkout / 'token'
        token.write_text(self.services.mint(AUDIENCES['anthropic']))
        self.configure('anthropic', more=f', token_file: {token}')  # Its commit has the file, too.
        for tier in ('namespaces', 'landlock'):
            with self.subTest(tier):
                token.write_text(self.services.mint(AUDIENCES['anthropic']))
                said = self.go('anthropic', f'{self.ask("anthropic")} ls token 2>&1; git status --porcelain', environment={},
                               options=['--isolation', tier])
                self.assertRegex(said, r"^200 ls: cannot access 'token': No such file")
                self.assertIn('not given to the agent: it is a credential of this run', (self.top / 'report/report.html').read_text())
                self.assertEqual(self.record()['changes']['files'], 0)
        for make in (os.mkfifo, lambda path: os.symlink('/proc/self/environ', path), os.mkdir):
            token.unlink()
            make(token)
            self.go('anthropic', 'true', environment={}, code=65)
            self.assertIn(str(token) + ':', self.err)

    def test_the_token_of_a_job_of_gitlab_is_exchanged_once_and_lasts_as_long_as_it_lasts(self):
        self.configure('anthropic')
        job = {'ANTHROPIC_ID_TOKEN': self.services.mint(AUDIENCES['anthropic'], seconds=3600)}
        said = self.go('anthropic', self.ask('anthropic') + 'echo "$ANTHROPIC_ID_TOKEN"', environment=job)
        self.assertEqual(said.split(), ['200'])
        # The same token again, as after a restart: the service takes it once.
        self.go('anthropic', 'true', environment=job, code=78)
        self.services.lifetime = 4
        job = {'ANTHROPIC_ID_TOKEN': self.services.mint(AUDIENCES['anthropic'], seconds=3600)}
        said = self.go('anthropic', f'{self.ask("anthropic")} sleep 6; curl -sS -H "Authorization: Bearer $ANTHROPIC_AUTH_TOKEN" {self.at}/api/anthropic/x', environment=job)
        self.assertIn('was exchanged already', said)

    def test_what_is_missing_is_said_before_anything_starts(self):
        self.configure('anthropic')
        event = self.top / 'event.json'
        event.write_text('{"repository": {"default_branch": "main"}}')
        self.go('anthropic', 'true', code=78, options=['--policy-ref', 'HEAD'], environment={
            'GITHUB_ACTIONS': 'true', 'GITHUB_EVENT_PATH': str(event), 'GITHUB_EVENT_NAME': 'workflow_dispatch', 'GITHUB_ACTOR': 'me',
            'GITHUB_REPOSITORY': 'acme/site', 'GITHUB_SHA': 'a' * 40, 'GITHUB_REF': 'refs/heads/main'})
        self.assertIn('id-token: write', self.err)
        self.go('anthropic', 'true', environment={}, code=78)
        self.assertIn('token_file', self.err)
        for values, wanted in (('organization: org-1', 'federation_rule'), ('federation_rul: x', 'federation_rule'),
                               ('federation_rule: fdrl_1, organization: org-1, token_file: relative', 'token_file')):
            self.configure('anthropic', values=values)
            self.go('anthropic', 'true', code=65)
            self.assertIn('config.yml:1:', self.err)
            self.assertIn(wanted, self.err)

    def test_the_command_line_says_the_same(self):
        self.configure('anthropic')
        (self.checkout / '.agentic-ci/config.yml').unlink()
        subprocess.run(['git', '-C', self.checkout, '-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-qam', 'two'], check=True)
        values = 'federation_rule=fdrl_1,organization=org-1,service_account=svac_1,workspace=default,host=' + self.at
        run = self.start('anthropic:' + values, self.ask('anthropic'), environment={**self.github, 'ANTHROPIC_BASE_URL': f'{self.at}/api/anthropic'})
        out, err = run.communicate(timeout=100)
        self.assertEqual((out.split(), run.returncode), (['200'], 0), err)


if __name__ == '__main__':
    unittest.main(verbosity=2)
