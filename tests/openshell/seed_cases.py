# SPDX-License-Identifier: Apache-2.0
"""What users of the Python agentic-ci count on, on both generations of OpenShell: which policy holds, what an agent is given, and what
comes back of it. backend_test.py runs these cases with the real 0.0, rpc_test.py with a gateway of 0.1.
"""
import json
import pathlib
import subprocess
import unittest

from real import GIT, SECRET, Case, Server, read

DEFAULTS = {('github.com', 443, 'full'), ('*.github.com', 443, 'full'), ('gitlab.com', 443, 'full'), ('*.gitlab.com', 443, 'full'),
            ('aiplatform.googleapis.com', 443, 'read-write'), ('*.aiplatform.googleapis.com', 443, 'read-write'),
            ('oauth2.googleapis.com', 443, 'read-write'), ('api.anthropic.com', 443, 'read-write')}
HOST = 'host.openshell.internal'
ELSEWHERE = 'host.containers.internal'  # The same machine by another name.

# An agent in the form of Claude Code's output, whose prompt says how it ends.
STREAM = '\n'.join(['{"type":"system","subtype":"init","model":"house-1","claude_code_version":"9"}', 'not JSON', '',
                    '{"type":"assistant","message":{"id":"m","model":"house-1","content":[{"type":"text","text":"I have seen it."}]}}',
                    '{"type":"user","message":{"content":[{"type":"tool_result","content":"FULL RUN COMPLETE"}]}}'])
RESULT = ('{"type":"result","subtype":"success","is_error":%s,"num_turns":1,"result":"It is done.","total_cost_usd":0.25,'
          '"usage":{"input_tokens":1000,"output_tokens":40}}')
AGENT = f"""
printf '%s\\n' "$@" "$KEY" "$(cat ~/.house/instructions)" >seen.txt; echo "$ADDRESS" >address.txt
ask() {{ curl -s -m 20 -o /dev/null -w '%{{http_code}} ' "$@" >>asked.txt; }}
ask -H "x-api-key: $(cat ~/.house/key)" "$ANTHROPIC_BASE_URL/v1/models"; ask "$OTHER"
cat <<'END'
{STREAM}
END
for last do :; done
case $last in *fail*) echo '{RESULT % 'true'}' ;; *part*) ;; *) echo '{RESULT % 'false'}' ;; esac
case $last in *workflow*) mkdir -p .github/workflows; echo x >.github/workflows/x.yml ;; *exit*) exit 3 ;; esac
"""


class Seed(Case):
    @classmethod
    def setUpClass(cls):
        if not cls.INSTALLED:
            raise unittest.SkipTest('testbed: OpenShell cannot run here')

    def setUp(self):
        super().setUp()
        self.other = Server().__enter__()
        self.addCleanup(self.other.__exit__)

    def tearDown(self):
        self.start('stop', '--name', 'box').communicate(timeout=600)  # A case that failed has left it.
        super().tearDown()

    def commit(self, **files):
        """Commits files of .agentic-ci/, by their names with `_` in place of `-`."""
        place = self.work / '.agentic-ci'
        place.mkdir(exist_ok=True)
        for name, text in files.items():
            (place / (name.replace('_', '-') + '.yml')).write_text(text)
        for words in (['add', '-A'], ['commit', '-qm', 'settings']):
            subprocess.run([*GIT, *words], cwd=self.work, check=True, capture_output=True)

    def begin(self, *words, **env):
        self.call('setup', '--name', 'box', '--backend', self.NAME, *self.OPTIONS, '--report-dir', self.base + '/r', *words, **env)

    def inside(self, script):
        return self.call('exec', '--name', 'box', '--', 'sh', '-c', script)

    def asked(self, *urls):
        """The status codes of requests to these."""
        return self.inside('; '.join(f'curl -s -m 20 -o /dev/null -w "%{{http_code}} " {url}' for url in urls)).split()

    def other_url(self, path):
        return f'http://{HOST}:{self.other.port}{path}'

    def denied(self, report):
        return {(one['host'], one['port']) for one in self.record(report)['denials']}

    def in_force(self):
        """[(host, port, access)] of the policy that OpenShell has for `box`; without access, an endpoint has rules."""
        state = self.state()
        shown = subprocess.run([self.INSTALLED.programs + '/openshell', 'policy', 'get', '--base', '-o', 'json', state.name], check=True,
                               env=self.env | {'XDG_CONFIG_HOME': f'{state}/config'}, capture_output=True, timeout=600).stdout
        return [(one['host'], one['port'], one.get('access', '')) for policy in json.loads(shown)['policy']['network_policies'].values()
                for one in policy['endpoints']]

    def check_in_force(self, *more):
        """It is the defaults and these, each once."""
        self.assertEqual(sorted(self.in_force()), sorted([*DEFAULTS, *more]))

    def test_the_policy_and_the_files_of_the_repository(self):
        """The commit's policy is added to the defaults, and nothing else is open; the files of earlier steps are there, and work comes back."""
        extra = f'{HOST}:{self.server.port}:read-only'
        self.commit(openshell_policy=f'endpoints: ["github.com:443:full", "{extra}", "{extra}"]\n')
        (self.work / '.agentic-ci/openshell-policy.yml').write_text(f'endpoints: ["{HOST}:{self.other.port}:full"]\n')  # Of no commit.
        (self.work / 'marker').write_text('made by a step\n')
        pathlib.Path(self.work, '.git/info/exclude').write_text('ignored\n')
        (self.work / 'ignored').write_text('made by another\n')
        head = read(self.work / '.git/refs/heads/main')
        self.begin()
        self.check_in_force((HOST, self.server.port, 'read-only'))
        self.assertEqual(self.asked(self.url('/x'), '-d x ' + self.url('/x'), self.other_url('/x')), ['200', '403', '403'])
        self.assertEqual(self.inside('pwd; cat marker ignored; git log -1 --format=%s'),
                         '/sandbox/workspace\nmade by a step\nmade by another\nsettings\n')
        self.inside('echo omega >a.txt; rm d/b.txt; chmod +x marker; ln -s a.txt link; git config core.fsmonitor /tmp/evil; '
                    'echo evil >.git/hooks/post-commit; git -c user.name=a -c user.email=a@localhost commit -qam work')
        self.call('stop', '--name', 'box', '--apply')
        self.assertEqual((self.record('r')['policy']['source'], self.denied('r')),
                         ('repository', {(HOST, self.server.port), (HOST, self.other.port)}))
        self.assertEqual((read(self.work / 'link'), (self.work / 'd').exists()), ('omega\n', False))
        self.assertEqual((self.work / 'marker').stat().st_mode & 0o777, 0o755)
        self.assertFalse((self.work / '.git/hooks/post-commit').exists())
        self.assertNotIn('fsmonitor', read(self.work / '.git/config'))
        self.assertEqual(read(self.work / '.git/refs/heads/main'), head)

    def test_a_policy_file_in_place_of_the_repositorys(self):
        """The option takes precedence, and its endpoints are added to the defaults; a credential is sent to its own host alone."""
        self.commit(openshell_policy=f'endpoints: ["{HOST}:{self.other.port}:read-only"]\n')
        pathlib.Path(self.policy).write_text(
            f'endpoints: ["{HOST}:{self.server.port}:read-only:rest", "{ELSEWHERE}:{self.other.port}:read-only:rest"]\n')
        self.begin('--policy', self.policy, '--secret', 'TOKEN@' + HOST, TOKEN=SECRET)
        self.check_in_force((HOST, self.server.port, 'read-only'), (ELSEWHERE, self.other.port, 'read-only'))
        elsewhere = f'http://{ELSEWHERE}:{self.other.port}'
        token = '-H "Authorization: Bearer $TOKEN" '
        self.assertEqual(self.asked(token + self.url('/bound'), elsewhere + '/plain', token + elsewhere + '/sent', self.other_url('/')),
                         ['200', '200', '403', '403'])
        self.assertEqual((self.server.seen, self.other.seen), ([('/bound', 'Bearer ' + SECRET)], [('/plain', None)]))
        self.assertNotIn(SECRET, self.inside('env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"; echo $TOKEN'))
        self.call('stop', '--name', 'box')
        self.assertEqual(self.record('r')['policy']['source'], 'file')

    def describe(self):
        """Makes the agent `house` one of the repository's; gives the variables of a run of it."""
        self.commit(config='agents:\n  house: ' + json.dumps({
            'program': 'sh', 'stream': 'claude-code', 'prompt': 'argument', 'arguments': ['-c', AGENT, 'house', '--model', '${model}'],
            'environment': {'KEY': '${key_name}', 'ADDRESS': '${base_url}'}, 'files': {'.house/instructions': 'be brief', '.house/key': '${key}'},
            'models': [{'provider': 'anthropic', 'keys': ['ANTHROPIC_API_KEY'], 'base_url': 'https://api.anthropic.com',
                        'base_url_from': 'ANTHROPIC_BASE_URL', 'model': 'house-1'}]}) + '\n')
        return {'ANTHROPIC_API_KEY': SECRET, 'ANTHROPIC_BASE_URL': self.url('')}

    def test_an_agent_and_no_policy_file(self):
        """Its model and the repository's forge are open, and nothing else; how a command of it ends is what its output says."""
        model = self.describe()
        subprocess.run(['git', 'remote', 'add', 'origin', 'https://forge.invalid/a/b.git'], cwd=self.work, check=True)
        self.begin('--agent', 'house', '--provider', 'anthropic', '--env', 'OTHER=' + self.other_url('/'), **model)
        self.assertEqual(sorted(self.in_force()), [('forge.invalid', 443, ''), (HOST, self.server.port, 'read-write')])
        run = ['run', '--sandbox', 'box', '--agent', 'house', '--prompt']
        output = self.call(*run, '-say "it" $(false)\ntwice', '--', '--extra', 'two words')
        self.assertIn('I have seen it.', output)
        self.assertEqual(self.inside('cat seen.txt'), '--model\nhouse-1\n--extra\ntwo words\n-say "it" $(false)\ntwice\n'
                         'ANTHROPIC_API_KEY\nbe brief\n')
        self.assertEqual(self.inside('cat address.txt asked.txt'), f'{self.url("")}\n200 403 ')
        self.assertEqual([one['x-api-key'] for one in self.server.headers], [SECRET])
        for prompt, status in (('fail', 1), ('part', 1), ('exit', 3)):
            with self.subTest(prompt):
                self.call(*run, prompt, expect=status)
        self.call('stop', '--name', 'box')
        self.assertEqual((self.record('r')['policy']['source'], self.denied('r')), ('default', {(HOST, self.other.port)}))

    def test_what_a_gate_refuses(self):
        """Nothing of an agent's changes is applied, though it succeeded; the report and a collector have what it did and used."""
        model = self.describe()
        _, said = self.end(self.start(
            'run', '--backend', self.NAME, *self.OPTIONS, '--report-dir', self.base + '/r', '--apply', '--agent', 'house', '--provider', 'anthropic',
            '--env', 'OTHER=' + self.other_url('/'), '--prompt', 'workflow', **model, OTEL_EXPORTER_OTLP_PROTOCOL='http/json',
            OTEL_EXPORTER_OTLP_ENDPOINT=f'http://127.0.0.1:{self.other.port}'), 77)
        self.assertIn('policy read source=default', said)
        record = self.record('r')
        self.assertEqual(record['outcome']['reason'], 'a gate refused the changes')
        self.assertEqual({(one['rule'], one.get('path')) for one in record['findings'] if one['severity'] == 'error'},
                         {('protected-paths', '.github/workflows/x.yml')})
        self.assertFalse((self.work / '.github').exists() or (self.work / 'seen.txt').exists())
        self.assertEqual((record['usage']['input_tokens'], record['usage']['output_tokens'], record['usage']['cost_usd']), (1000, 40, 0.25))
        self.assertEqual(self.denied('r'), {(HOST, self.other.port)})
        self.assertIn(f'+{self.url("")}\n', read(self.base + '/r/changes.patch'))
        self.assertIn('I have seen it.', read(self.base + '/r/agent.log'))
        spans = json.loads(self.other.bodies['/v1/traces'])['resourceSpans'][0]['scopeSpans'][0]['spans']
        self.assertLessEqual({'agentic-ci run', 'invoke_agent house', 'turn', 'GET'}, {span['name'] for span in spans})
        self.assertIn('"asDouble":0.25', self.other.bodies['/v1/metrics'].decode())
