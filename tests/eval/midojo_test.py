# SPDX-License-Identifier: Apache-2.0
"""midojo's own suites, as they are. usage: midojo_test.py AGENTIC-CI ROOT"""
import base64
import json

from suite_case import HERE, ROOT, Case, run
from model import Model  # suite_case has put it on the path.

MIDOJO = HERE / 'midojo'
SUITES, TOOLS = MIDOJO / 'suites', ROOT / 'examples/evaluation/midojo'
CELLS = {'weather': 20, 'minibank': 40, 'document_assistant': 6}


def tools(name):
    return [] if name == 'document_assistant' else ['--tools', TOOLS / f'{name}-tools.yaml']


class Suites(Case):
    def outcomes(self, name, way):
        """The outcome of each cell with an injection, with an agent that obeys or resists."""
        results = self.top / f'{name}-{way}'
        with Model(self.top / 'model', {'turns': [{'text': 'Seen.'}]}) as model:
            server = f'host.openshell.internal:{model.port}'
            policy = self.write('policy.yml', f'defaults: none\nendpoints: ["{server}"]\n')
            status = self.call('run', SUITES / f'{name}.yaml', *tools(name), '--policy', policy, '--results', results, '--jobs', 2,
                               '--max-succeeded', 99, '--model-host', server, '--',
                               '/usr/bin/python3', '-c', (MIDOJO / 'agent.py').read_text(), f'http://{server}', way)
        self.assertEqual(status, 0, self.out + self.err)
        cells = json.loads((results / 'eval.json').read_text())['cells']
        self.assertEqual(len(cells), CELLS[name])
        for cell in cells:
            self.assertEqual(cell['utility']['value'], 'true', cell)
            self.assertEqual(cell.get('unspecific', []), [], cell)
        return {(cell['user_task'], cell['injection_task']): cell['outcome'] for cell in cells if cell['injection_task']}

    def test_each_attack_works_on_an_agent_that_obeys_and_on_no_other(self):
        in_prompt = {'embedded_city_name_injection': 'weather_for_city_input', 'garak_hijack': 'recent_transactions',
                     'ladder_a': 'recent_transactions', 'ladder_b': 'recent_transactions'}
        for name in CELLS:
            for way, outcome in (('obey', 'succeeded'), ('resist', 'resisted')):
                with self.subTest(name, way=way):
                    found = self.outcomes(name, way)
                    # An injection of a prompt is in that task alone.
                    wanted = {cell: outcome if in_prompt.get(cell[1], cell[0]) == cell[0] else 'not-applicable' for cell in found}
                    self.assertEqual(found, wanted)


class Sources(Case):
    def test_tools_in_python_have_to_be_declared(self):
        self.assertEqual(self.call('validate', SUITES / 'weather.yaml'), 65)
        self.assertIn('weather.yaml:2:12: error: the state has no tools', self.err)
        self.assertIn('--tools FILE', self.err)
        self.assertEqual(self.call('validate', SUITES / 'weather.yaml', *tools('weather')), 0, self.err)
        self.assertEqual(self.call('list', SUITES / 'weather.yaml', *tools('weather')), 0, self.err)
        self.assertEqual(len(self.out.splitlines()), CELLS['weather'])

    def test_a_file_of_tools_that_does_not_fit_is_refused_with_its_place(self):
        weather = SUITES / 'weather.yaml'
        for text, said in (('tools: []\n', 'tools.yaml:1:8: error: the file has no tools'),
                           ('tool: []\n', "tools.yaml:1:1: error: unknown key 'tool'"),
                           ('tools:\n  - {name: x, description: y, read: towns}\n',
                            "tools.yaml:2:37: error: the state has no field 'towns'"),
                           ('tools:\n  - {name: x, description: y}\n  - {name: x, description: y}\n',
                            "tools.yaml:3:12: error: the tool 'x' is there already")):
            path = self.write('tools.yaml', text)
            self.assertEqual(self.call('validate', weather, '--tools', path), 65)
            self.assertIn(said, self.err)
        own = ROOT / 'examples/evaluation/weather.yaml'
        self.assertEqual(self.call('validate', own, *tools('weather')), 65)
        self.assertIn('the suite has tools of its own', self.err)
        self.assertEqual(self.call('validate', SUITES / 'document_assistant.yaml', *tools('weather')), 65)
        self.assertEqual(self.call('validate', weather, '--tools', self.top / 'none'), 66)

    def test_cells_with_other_tools_are_not_resumed(self):
        words = ['run', SUITES / 'weather.yaml', '--user-task', 'warmest_city', '--injection-task', 'hate_humans_output_hijack',
                 '--results', 'results', '--max-undecided', 9]
        path = self.write('tools.yaml', (TOOLS / 'weather-tools.yaml').read_text())
        self.assertEqual(self.call(*words, '--tools', path, '--', 'true'), 0, self.err)
        self.assertEqual(self.call(*words, '--resume', '--tools', path, '--', 'true'), 0, self.err)
        path.write_text(path.read_text() + '  - {name: more, description: More.}\n')
        self.assertEqual(self.call(*words, '--resume', '--tools', path, '--', 'true'), 64)
        self.assertIn('was run with another suite', self.err)

    def test_payload_sets_of_a_directory(self):
        suite = self.write('suite.yaml', '''environment: {backend: sandbox, state: {notes.txt: "{leak:note}"}}
user_tasks: [{id: u, prompt: p, utility: {output_contains: May}}]
injection_tasks: [{id: leak, description: d, security: {output_contains: leaked}, probes: {note: {source: "own:set", index: 1}}}]
''')
        self.write('sets/a.json', json.dumps({'id': 'own:set', 'license': 'MIT', 'payloads': ['one', 'two']}))
        self.write('sets/README.md', 'no set')
        self.assertEqual(self.call('validate', suite), 65)
        self.assertIn('--payloads DIR', self.err)
        self.assertEqual(self.call('validate', suite, '--payloads', 'sets'), 0, self.err)
        self.assertEqual(self.call('run', suite, '--payloads', 'sets', '--', 'cat', 'notes.txt'), 77)
        for words in (['list', suite, '--payloads', 'sets'], ['list', '--payloads', 'sets', suite]):
            self.assertEqual(self.call(*words), 0, self.err)
            self.assertEqual(self.out, 'u,,1\nu,leak,1\n')
        self.assertEqual(self.call('list', '--payloads'), 0, self.err)
        built_in = self.out.splitlines()
        self.assertEqual(len(built_in), 5)
        self.assertEqual(self.call('list', '--payloads', 'sets'), 0, self.err)
        self.assertEqual(self.out.splitlines(), [*built_in, 'own:set  2 payloads    MIT  sets/a.json'])
        self.write('sets/b.json', json.dumps({'id': 'garak:hijack_hate_humans', 'payloads': ['x']}))
        self.assertEqual(self.call('validate', suite, '--payloads', 'sets'), 65)
        self.assertIn("sets/b.json: there is a payload set 'garak:hijack_hate_humans' already", self.err)
        self.assertEqual(self.call('list'), 64)

    def test_what_the_suites_own_agent_needs_is_an_option(self):
        document = SUITES / 'document_assistant.yaml'
        self.assertEqual(self.call('run', document, '--policy', self.write('policy.yml', 'defaults: none\n')), 65)
        self.assertIn("document_assistant.yaml:7:12: error: the suite's agent needs the image 'quay.io/", self.err)
        self.assertIn('hint: --image', self.err)
        named = self.write('suite.yaml', '''environment: {backend: {type: sandbox, agent_command: [echo], providers: [claude]}}
user_tasks: [{id: u, prompt: p, utility: {output_contains: p}}]
''')
        self.assertEqual(self.call('run', named), 65)
        self.assertIn("suite.yaml:1:74: error: the suite's agent needs OpenShell's provider 'claude'", self.err)
        # The control: another agent runs, and the warning names what it does not get.
        self.assertEqual(self.call('run', named, '--', 'echo'), 0, self.err)
        self.assertIn("suite.yaml:1:74: warning: OpenShell's provider 'claude' is not taken from a suite: --provider", self.err)

    def test_a_warning_says_nothing_to_a_terminal_or_a_log(self):
        suite = self.write('suite.yaml', 'environment: {backend: {type: sandbox, image: "a\\n::warning::b\\e[2J"}}\n'
                           'user_tasks: [{id: u, prompt: p, utility: {output_contains: p}}]\n')
        for words in (['validate', suite], ['run', suite, '--results', 'results', '--', 'echo']):
            self.assertEqual(self.call(*words), 0, self.err)
            said = [line for line in (self.out + self.err).splitlines() if 'is not taken' in line]
            self.assertEqual(len(said), 1)
            self.assertIn('warning: the image', said[0])  # The control: it is said.
            self.assertIn('::warning::b', said[0])
            self.assertNotIn('\x1b', self.out + self.err)

    def test_manifests_have_the_tools_and_the_sets(self):
        image = 'registry.example.com/agent@sha256:' + 'a' * 64
        self.assertEqual(self.call('run', SUITES / 'weather.yaml', *tools('weather'), '--kubernetes', image, '--', 'true'), 0, self.err)
        self.assertIn('get_weather', self.out)
        self.assertIn('--tools=/evaluation/options/', self.out)
        self.write('sets/a.json', json.dumps({'id': 'own:set', 'payloads': ['one thing']}))
        suite = self.write('suite.yaml', '''environment: {backend: sandbox, state: {notes.txt: "{leak:note}"}}
user_tasks: [{id: u, prompt: p, utility: {output_contains: May}}]
injection_tasks: [{id: leak, description: d, security: {output_contains: leaked}, probes: {note: {source: "own:set"}}}]
''')
        self.assertEqual(self.call('run', suite, '--payloads', 'sets', '--kubernetes', image, '--', 'true'), 0, self.err)
        self.assertIn(base64.b64encode((self.top / 'sets/a.json').read_bytes()).decode(), self.out)
        self.assertIn('--payloads=/evaluation/payloads', self.out)


if __name__ == '__main__':
    run()
