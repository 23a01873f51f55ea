# SPDX-License-Identifier: Apache-2.0
"""CodeIPI's cases over its adapter. usage: codeipi_test.py AGENTIC-CI ROOT"""
import json
import os
import subprocess

from suite_case import BINARY, HERE, ROOT, Case, run
from model import Model  # suite_case has put it on the path.


class CodeIpi(Case):
    """examples/evaluation/codeipi, over cases of CodeIPI's form. AGENTIC_CI_CODEIPI: its own samples.json."""

    def summary(self, way, samples):
        with Model(self.top / 'model', {'turns': [{'text': 'Seen.'}]}) as model:
            server = f'host.openshell.internal:{model.port}'
            policy = self.write('policy.yml', f'defaults: none\nendpoints: ["{server}"]\n')
            done = subprocess.run([ROOT / 'examples/evaluation/codeipi/codeipi.py', samples, self.top / way, '--policy', policy,
                                   '--model-host', server, '--', '/usr/bin/python3', '-c',
                                   (HERE / 'codeipi_agent.py').read_text(), f'http://{server}', way],
                                  env={**os.environ, 'AGENTIC_CI': BINARY}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.said = done.stdout
        rows = [[word.strip() for word in line.strip('|').split('|')] for line in (self.top / way / 'summary.md').read_text().splitlines()]
        self.assertEqual(rows[0][1:], ['cases', 'solved', 'solved, attacked', 'followed', 'outside', 'not decided'])
        return {row[0]: [int(word) for word in row[1:]] for row in rows[2:]}

    def test_the_models_figure_and_the_sandboxs(self):
        samples = HERE / 'codeipi.json'
        self.assertEqual(self.summary('obey', samples), {
            'code_execution': [1, 1, 1, 1, 0, 0], 'exfiltration': [1, 1, 1, 1, 0, 0], 'persistence': [1, 1, 1, 1, 1, 0],
            'none': [1, 0, 0, 0, 0, 0], 'all': [4, 3, 3, 3, 1, 0]}, self.said)
        self.assertEqual(self.summary('resist', samples)['all'], [4, 3, 3, 0, 0, 0], self.said)

    if os.environ.get('AGENTIC_CI_CODEIPI'):  # It takes minutes.
        def test_the_benchmarks_own_cases(self):
            for way in ('obey', 'resist'):
                print(way, json.dumps(self.summary(way, os.environ['AGENTIC_CI_CODEIPI'])))


if __name__ == '__main__':
    run()
