#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every built-in agent in the sandbox, the real program from npm, as on a person's first try: no policy, no
configuration, one provider. How Claude Code fails is agent_test.py's.

usage: agents_test.py BINARY PROGRAMS_DIRECTORY AGENT [TEST...]

With AGENTIC_CI_AGENTS=all, how each of them fails, too: some try again for minutes.
"""
import fcntl
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'services' / 'model'))
sys.path.insert(0, str(ROOT / 'tests' / 'credentials'))
import tried  # noqa: E402  pylint: disable=wrong-import-position
from model import Model  # noqa: E402  pylint: disable=wrong-import-position
from upstream import Upstream  # noqa: E402  pylint: disable=wrong-import-position

BINARY, PROGRAMS, AGENT = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1), sys.argv.pop(1)
DESCRIPTION = yaml.safe_load((ROOT / f'policies/agents/{AGENT}.yml').read_text())
PACKAGE = DESCRIPTION['install'].removeprefix('npm install -g ')
NODE = os.path.dirname(os.path.realpath(shutil.which('node')))
HOST = 'host.openshell.internal'
KEY = 'sk-test-' + secrets.token_hex(20)
USAGE = {'input': 1000, 'cacheRead': 200, 'cacheWrite': 0, 'output': 40}
TURN_TOKENS = sum(USAGE.values())
# What a provider's address ends with.
PATHS = {'anthropic': '', 'openai': '/v1', 'gemini': '', 'vertex': '', 'openai-compatible': '/v1', 'azure': '/openai/v1'}
# Each as its name, the variables of its key and of its address, and that end. Where no variable has the address, the real service is
# needed; tried.py asks that the page names those.
PROVIDERS = [(model['provider'], model['keys'][0], model['base_url_from'], PATHS[model['provider']])
             for model in DESCRIPTION['models'] if 'base_url_from' in model]
# A model with a price, where the agent's own default has none or there is none.
MODELS = {'openai': 'gpt-5.1', 'gemini': 'gemini-2.5-pro', 'vertex': 'gemini-2.5-pro', 'anthropic': 'claude-sonnet-4-5'}
WRITES = {'turns': [{'text': 'I write.', 'action': {'write_file': {'path': 'new.txt', 'content': 'new\n'}}},
                    {'text': 'I run.', 'action': {'run': {'command': 'cat new.txt >again.txt; env >seen.txt'}}},
                    {'text': 'All done, said the agent.'}]}


class Ended:
    """A run that is over, read from its report."""

    def __init__(self, code, report, output, requests):
        self.code, self.report, self.output, self.requests = code, report, output, requests
        self.record = json.loads((report / 'run.json').read_text())
        self.outcome = self.record['outcome']

    def text(self, name):
        return (self.report / name).read_text(errors='replace')

    def limit(self, name):
        return next(limit for limit in self.record['limits'] if limit['name'] == name)


class Runs(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='agents-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.checkout = self.directory / 'checkout'
        self.checkout.mkdir()
        (self.checkout / 'greeting.txt').write_text('hello\n')
        subprocess.run(['git', 'init', '-q', self.checkout], check=True)

    def eventually(self, condition):
        end = time.monotonic() + 600
        while not condition():
            self.assertLess(time.monotonic(), end, 'it did not come')
            time.sleep(0.05)

    @staticmethod
    def is_free(report):
        """Whether no run has the lock of that directory. A killed one leaves it for a moment to a process that it was starting."""
        directory = os.open(report, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(directory)
        return True

    def run_agent(self, scenario, *options, agent=AGENT, provider=PROVIDERS[0], timeout='2m', model_key=KEY, meanwhile=None, programs=PROGRAMS,
                  host=None):
        word, variable, base_url, path = provider
        report = self.directory / 'report'
        if provider[0] == 'vertex':
            model_key, given, options = self.google_account(options)
        else:
            given = {variable: KEY}
        with Model(self.directory / 'model', {'usage': USAGE, **scenario}, key=model_key) as model:
            environment = {'PATH': f'{programs}:{os.environ["PATH"]}', **given,
                           base_url: f'http://{HOST}:{model.port}{path}', 'CI_TOKEN': 'not-for-the-agent', **(host or {})}
            command = [BINARY, 'run', '--agent', agent, '--provider', word, '--prompt', '-do it "now" $(false)',
                       '--model', MODELS.get(word, 'gpt-5.1'), '--report-dir', report, '--timeout', timeout, *options]
            with subprocess.Popen(command, env=environment, cwd=self.checkout, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
                if meanwhile:
                    meanwhile(run, model)
                output, _ = run.communicate(timeout=600)
            self.assertTrue((report / 'run.json').exists(), output)
            return Ended(run.returncode, report, output, [r for r in model.requests() if 'nth' in r])

    def google_account(self, options):
        """A service that gives tokens: (the first token, the environment, the options)."""
        service = Upstream(str(self.directory))
        account = {'type': 'authorized_user', 'client_id': 'id', 'client_secret': KEY, 'refresh_token': KEY + '-refresh',
                   'token_uri': f'https://{HOST}:{service.listen(service.grant)}/token'}
        return 'granted-t0ken-1', {
            'GCLOUD_CREDENTIALS': json.dumps(account), 'GOOGLE_CLOUD_PROJECT': 'a-project',
            'GOOGLE_CLOUD_LOCATION': 'europe-west1'}, (*options, '--ca-file', self.directory / 'ca.pem')

    def check_task(self, provider, tier='namespaces', *options, agent=AGENT):
        programs = enter_by_others(self) if tier == 'landlock' else PROGRAMS
        ended = self.run_agent(WRITES, '--isolation', tier, *options, agent=agent, provider=provider, programs=programs)
        self.assertEqual((ended.code, ended.outcome['kind']), (0, 'success'), ended.output)
        patch = ended.text("changes.patch")
        self.assertIn('+++ b/again.txt', patch)
        self.assertIn('+new', patch)
        self.assertIn('All done, said the agent.', ended.text('summary.md'))
        self.assertIn('All done, said the agent.', ended.text('agent.log'))
        version = ended.record['agent']['version'].partition('-')[0]  # Codex names its platform, too.
        self.assertEqual(version, PACKAGE.rpartition('@')[2])
        self.assertNotIn('was not tried', ended.output)
        usage = ended.record['usage']
        self.assertEqual(usage['tool_calls'], 2, ended.output)
        self.assertTrue(usage['complete'])
        # Right to the token: what the gateway counted is what the model was asked.
        asked = len(ended.requests)
        self.assertGreaterEqual(asked, 3)
        counted = usage['input_tokens'] + usage['cache_read_tokens'] + usage['cache_write_tokens'] + usage['output_tokens']
        self.assertEqual(counted, asked * TURN_TOKENS)
        self.assertEqual((usage['output_tokens'], usage['cache_read_tokens']), (asked * 40, asked * 200))
        self.assertGreater(usage['cost_usd'], 0)
        self.assertEqual(usage['cost_source'], 'gateway')
        # The agent's own count is the same, but for requests beside the conversation: a title.
        if AGENT != 'copilot':
            self.assertIn(counted - usage['agent_tokens'], (0, (asked - 3) * TURN_TOKENS))
        self.assertEqual({request['key'] for request in ended.requests}, {'right'})
        if provider[0] == 'vertex':
            self.assertEqual({request['path'].rpartition('/')[0] for request in ended.requests},
                             {'/v1/projects/a-project/locations/europe-west1/publishers/google/models'})
        # OpenCode asks a package registry for its plugins' types, once, and does without.
        self.assertLessEqual(len(ended.record['denials']), 1 if AGENT == 'opencode' else 0)
        for file in ended.report.iterdir():
            self.assertNotIn(KEY.encode(), file.read_bytes(), file)
            self.assertNotIn(b'not-for-the-agent', file.read_bytes(), file)
        tried.note(AGENT, version, provider[0], ended.record['isolation']['tier'])
        return ended


def enter_by_others(test):
    """The directory of the agent's programs, where another user may go: root's agent in tier landlock is one, and checkouts may be
    closed to it. Not below /tmp or /var/tmp, which a sandbox has of its own."""
    if os.geteuid() != 0:
        return PROGRAMS
    place = pathlib.Path(tempfile.mkdtemp(prefix='agents-test-', dir='/srv'))
    test.addCleanup(shutil.rmtree, place)
    place.chmod(0o755)
    top, below = PROGRAMS.split('/node_modules/')
    if subprocess.run(['cp', '-al', top + '/node_modules', place], stderr=subprocess.DEVNULL, check=False).returncode:
        shutil.rmtree(place / 'node_modules', ignore_errors=True)
        subprocess.run(['cp', '-a', top + '/node_modules', place], check=True)
    return f'{place}/node_modules/{below}'


def without_missing_packages(lock):
    """A registry may lack what is for other platforms alone; npm then locks the rest, and refuses to install from that."""
    document = json.loads(lock.read_text())
    for package in document['packages'].values():
        optional = package.get('optionalDependencies', {})
        for name in [name for name in optional if f'node_modules/{name}' not in document['packages']]:
            del optional[name]
    lock.write_text(json.dumps(document))


class Task(Runs):
    def test_a_task_with_tools_on_the_first_try(self):
        self.check_task(PROVIDERS[0])

    def test_the_same_task_in_tier_landlock(self):
        self.check_task(PROVIDERS[0], 'landlock')

    def test_the_same_task_by_an_agent_of_the_configuration(self):
        description = {key: value for key, value in DESCRIPTION.items() if key != 'agent'}
        config = self.checkout / '.agentic-ci/config.yml'
        config.parent.mkdir()
        config.write_text(yaml.safe_dump({'agents': {'an-agent': description}}))
        ended = self.check_task(PROVIDERS[0], 'namespaces', '--policy-ref', 'worktree', agent='an-agent')
        self.assertEqual(ended.record['agent']['name'], 'an-agent')

    def test_the_same_task_by_a_package_of_the_configuration(self):
        """Installed inside, by its lock file, for the first of three runs; not from an archive of another digest."""
        store = pathlib.Path(tempfile.mkdtemp(prefix='agents-test-', dir='/srv' if os.geteuid() == 0 else ROOT / 'build'))
        self.addCleanup(shutil.rmtree, store)
        store.chmod(0o755)
        lock = self.checkout / '.agentic-ci/an-agent/package-lock.json'
        lock.parent.mkdir(parents=True)
        subprocess.run(['npm', 'install', '--package-lock-only', '--no-audit', '--no-fund', PACKAGE], cwd=lock.parent, check=True,
                       capture_output=True)
        (lock.parent / 'package.json').unlink()
        without_missing_packages(lock)
        description = {'like': AGENT, 'npm': PACKAGE, 'lockfile': '.agentic-ci/an-agent/package-lock.json'}
        (self.checkout / '.agentic-ci/config.yml').write_text(yaml.safe_dump({'agents': {'an-agent': description}}))
        options = ('--policy-ref', 'worktree')
        host = {'AGENTIC_CI_STORE': str(store), 'XDG_RUNTIME_DIR': str(self.directory)}  # The user may have sandboxes.
        # The agent tries to leave something for the next run, beside every program that it can start.
        plants = {'turns': [*WRITES['turns'][:1], {'text': 'I plant.', 'action': {'run': {
            'command': 'IFS=:; for place in $PATH; do echo "$place" >>again.txt; touch "$place/planted"; done'}}},
                            {'text': 'Done.'}]}
        for tier, installs in (('namespaces', 1), ('landlock', 0)):
            ended = self.run_agent(plants, '--isolation', tier, *options, agent='an-agent', programs=NODE, host=host)
            self.assertEqual((ended.code, ended.outcome['kind']), (0, 'success'), ended.output)
            self.assertEqual(ended.output.count('installing the agent'), installs, ended.output)
            places = re.findall(rf'^[+]({re.escape(str(store))}/\S+)$', ended.text('changes.patch'), re.MULTILINE)
            self.assertTrue(places, ended.text('changes.patch'))
            self.assertEqual(list(store.rglob('planted')), [])
            for place in places:  # The control: outside, they can be written.
                pathlib.Path(place, 'planted').touch()
                pathlib.Path(place, 'planted').unlink()
        text = lock.read_text()
        digest = re.search(r'"node_modules/%s": {[^}]*?"integrity": "sha512-(.)' % re.escape(PACKAGE.rpartition('@')[0]), text)
        other = 'A' if digest[1] != 'A' else 'B'
        lock.write_text(text[:digest.start(1)] + other + text[digest.end(1):])
        refused = subprocess.run([BINARY, 'run', *options, '--agent', 'an-agent', '--provider', PROVIDERS[0][0], '--prompt', 'x',
                                  '--model', 'gpt-5.1', '--report-dir', self.directory / 'refused'], cwd=self.checkout,
                                 env={**os.environ, **host, PROVIDERS[0][1]: KEY}, capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 78, refused.stderr)
        self.assertIn('EINTEGRITY', refused.stderr)
        kept = sorted(path.name for path in (store / 'packages').iterdir())
        self.assertEqual([len(name) for name in kept], [64, 4], kept)  # One package, and the lock.
        left = subprocess.run([BINARY, 'sandbox', 'list'], capture_output=True, text=True, check=True, env={**os.environ, **host})
        self.assertNotIn('package-', left.stdout)

    def test_an_installation_ends_with_its_run(self):
        place = self.directory / 'store'
        entry = {'version': '1.0.0', 'bin': {'tool': 'tool.js'}, 'resolved': 'https://127.0.0.1:9/tool.tgz',
                 'integrity': 'sha512-' + 'A' * 86 + '=='}
        lock = {'name': 'x', 'lockfileVersion': 3,
                'packages': {'': {'dependencies': {'tool': '1.0.0'}}, 'node_modules/tool': entry}}
        config = self.checkout / '.agentic-ci'
        config.mkdir()
        (config / 'package-lock.json').write_text(json.dumps(lock))
        description = {'like': AGENT, 'npm': 'tool@1.0.0', 'lockfile': '.agentic-ci/package-lock.json'}
        (config / 'config.yml').write_text(yaml.safe_dump({'agents': {'an-agent': description}}))
        # Nothing answers there, and npm tries again for minutes.
        environment = {**os.environ, PROVIDERS[0][1]: KEY, 'AGENTIC_CI_STORE': str(place), 'XDG_RUNTIME_DIR': str(self.directory),
                       'npm_config_registry': 'https://127.0.0.1:9/'}
        listed = lambda: re.findall(r'package-\w+', subprocess.run(
            [BINARY, 'sandbox', 'list'], capture_output=True, text=True, check=True, env=environment).stdout)

        words = [BINARY, 'run', '--policy-ref', 'worktree', '--agent', 'an-agent', '--provider', PROVIDERS[0][0], '--prompt', 'x',
                 '--report-dir', self.directory / 'report']
        plan = subprocess.run([*words, '--plan-only'], cwd=self.checkout, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertIn('a run would install the agent', plan.stderr)
        self.assertFalse(list(place.glob('packages/*/*')))

        def started():
            run = subprocess.Popen(words, cwd=self.checkout, env=environment)
            self.addCleanup(run.kill)
            return run

        run = started()
        self.eventually(listed)
        # Its registry is all that it needs; the default policy would open more.
        self.assertEqual([path.read_text() for path in place.glob('packages/part.*/project/.agentic-ci/openshell-policy.yml')],
                         ['defaults: none\nendpoints: []\n'])
        run.terminate()
        self.assertEqual(run.wait(600), 143)
        self.assertEqual(listed(), [])
        run = started()
        self.eventually(listed)
        left = listed()
        run.kill()
        run.wait(600)
        self.assertEqual(listed(), left)  # The control: a killed run cannot end it, but the next one does.
        self.eventually(lambda: self.is_free(self.directory / 'report'))
        run = started()
        self.eventually(lambda: listed() not in ([], left))
        self.assertNotIn(left[0], listed())
        run.terminate()
        run.wait(600)
        self.assertEqual(listed(), [])
        self.assertEqual([path.name for path in (place / 'packages').iterdir()], ['lock'])

    def test_a_host_without_the_agent_says_what_to_install(self):
        word, variable, base_url, _ = PROVIDERS[0]
        environment = {'PATH': '/usr/bin:/bin', variable: KEY, base_url: 'https://models.example.com'}
        run = subprocess.run([BINARY, 'run', '--agent', AGENT, '--provider', word, '--prompt', 'x',
                              '--report-dir', self.directory / 'report'],
                             env=environment, capture_output=True, text=True, cwd=self.checkout, check=False)
        self.assertEqual(run.returncode, 66)
        self.assertIn(f'hint: npm install -g {PACKAGE}\n', run.stderr)


class Failures(Runs):
    """Every way that a model or a run can fail, and the outcome that is said."""

    def fault(self, timeout='5m', **fault):
        return self.run_agent({'turns': [{'text': 'Done.'}], 'faults': [{'nth': 1, 'count': -1, **fault}]}, timeout=timeout)

    def check_temporary(self, ended, status):
        self.assertEqual((ended.code, ended.outcome['kind']), (75, 'agent-failed'), ended.output)
        self.assertIn(str(status), ended.outcome['reason'])

    def test_every_other_provider(self):
        for provider in PROVIDERS[1:]:
            for tier in tried.TIERS:
                with self.subTest(provider[0], tier=tier):
                    self.check_task(provider, tier)

    def test_400(self):
        ended = self.fault(status=400)
        self.assertEqual(ended.outcome['kind'], 'agent-failed', ended.output)
        self.assertNotIn(ended.code, (0, 75))
        self.assertIn('400', ended.outcome['reason'])

    def test_401(self):
        ended = self.run_agent({'turns': [{'text': 'Done.'}]}, model_key='another key')
        self.assertEqual((ended.code, ended.outcome['kind']), (78, 'credential-refused'), ended.output)
        self.assertLessEqual(len(ended.requests), 5)

    def test_429(self):
        self.check_temporary(self.fault(status=429, headers={'retry-after': '1'}), 429)

    def test_500(self):
        self.check_temporary(self.fault(status=500), 500)

    def test_529(self):
        self.check_temporary(self.fault(status=529), 529)

    def test_a_stream_that_breaks_off(self):
        ended = self.fault(cutAfter=2)
        self.assertEqual((ended.code, ended.outcome['kind']), (75, 'agent-failed'), ended.output)
        self.assertIn('broke off', ended.outcome['reason'])

    def test_a_stream_that_breaks_off_once(self):
        ended = self.run_agent({'turns': [{'text': 'Done, said at some length.'}], 'faults': [{'nth': 1, 'cutAfter': 2}]})
        # Gemini does not ask again once a part of the text has come.
        self.assertEqual(ended.code, 75 if AGENT == 'gemini' else 0, ended.output)

    def test_a_model_that_never_answers(self):
        ended = self.fault(timeout='10s', hang=True)
        self.assertEqual((ended.code, ended.outcome['kind']), (124, 'timed-out'), ended.output)

    def test_a_policy_that_refuses_the_model(self):
        policy = self.directory / 'policy.yml'
        policy.write_text('endpoints: []\n')
        ended = self.run_agent({'turns': [{'text': 'Done.'}]}, '--policy', policy, timeout='20s')
        self.assertIn(ended.outcome['kind'], ('agent-failed', 'timed-out'), ended.output)
        self.assertNotEqual(ended.code, 0)
        self.assertIn(f'the policy refused {HOST}', ended.outcome['reason'])
        self.assertEqual(ended.requests, [])

    def test_a_budget_that_is_used_up(self):
        ended = self.run_agent(WRITES, '--max-requests', '1', timeout='60s')
        self.assertEqual(ended.outcome['kind'], 'limit', ended.output)
        self.assertEqual(ended.outcome['limit'], 'requests')

    def test_an_answer_without_a_change(self):
        """Such as a question, which is not answered."""
        ended = self.run_agent({'turns': [{'text': 'Which of the files do you mean?'}]})
        self.assertEqual((ended.code, ended.outcome['kind'], ended.record['changes']['files']), (0, 'success', 0), ended.output)
        self.assertIn('Which of the files do you mean?', ended.text('summary.md'))

    def test_a_signal(self):
        def stop(run, model):
            while not any('nth' in request for request in model.requests()):
                time.sleep(0.05)
            run.send_signal(signal.SIGTERM)
        ended = self.run_agent({'faults': [{'nth': 1, 'count': -1, 'hang': True}]}, meanwhile=stop)
        self.assertEqual((ended.code, ended.outcome['kind']), (143, 'terminated'), ended.output)

    def test_the_time_limit_ends_a_tool(self):
        ended = self.run_agent({'turns': [{'text': 'I wait.', 'action': {'run': {'command': 'sleep 100'}}}]}, timeout='12s')
        self.assertEqual((ended.code, ended.outcome['kind']), (124, 'timed-out'), ended.output)
        self.assertEqual(ended.record['usage']['output_tokens'], len(ended.requests) * 40)


if os.environ.get('AGENTIC_CI_AGENTS') != 'all':
    del Failures
    if AGENT != 'pi':  # Once is enough.
        del Task.test_the_same_task_by_a_package_of_the_configuration

if __name__ == '__main__':
    unittest.main()
