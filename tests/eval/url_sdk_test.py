# SPDX-License-Identifier: Apache-2.0
"""Evaluations of agents made with the official SDKs: A2A's server, and OpenAI's description of its API.
usage: url_sdk_test.py AGENTIC-CI ROOT   (AGENT_SDKS has them: tests/eval/sdk)"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

from url_test import DONE, OBEYED, REFUSED, Case
from url_agents import obey, openai_agent, resist, response

SDKS = pathlib.Path(os.environ['AGENT_SDKS'])
HERE = pathlib.Path(__file__).resolve().parent
CHECKS = '''
import json, sys
from openai.types.responses import Response, response_create_params as params
from pydantic import TypeAdapter
asked, answered = json.load(sys.stdin)
TypeAdapter(params.ResponseCreateParamsNonStreaming).validate_python(asked, strict=True)
print(Response.model_validate(answered, strict=True).output_text)
'''


class Sdks(Case):
    def run_agent(self, *words):
        environment = {**os.environ, 'PYTHONPATH': str(SDKS / f'a2a-{words[0]}')}
        process = subprocess.Popen([sys.executable, HERE / 'url_sdk_agent.py', *words], env=environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.stdout.readline().strip()

    def test_agents_of_the_a2a_sdk(self):
        for version in ('0.3', '1.0'):
            for answers in ('message', 'task'):
                for behaves, wanted in (('resist', DONE), ('obey', OBEYED)):
                    with self.subTest(version=version, answers=answers, behaves=behaves):
                        url = self.run_agent(version, behaves, answers)
                        self.assertTrue(url, 'the agent did not start')
                        results = f'{version}-{answers}-{behaves}'
                        self.results = self.top / results
                        self.assertEqual(self.ask(url, '--agent-protocol', 'a2a', '--results', results), REFUSED, self.said)
                        self.assertEqual(self.outcomes(), wanted, self.said)

    def test_requests_and_responses_are_those_that_the_api_describes(self):
        for behaves, wanted in ((resist, DONE), (obey, OBEYED)):
            server = self.serve(openai_agent(behaves))
            self.results = self.top / behaves.__name__
            self.assertEqual(self.ask(server, '--agent-protocol', 'openai', '--model', 'gpt-x', '--results', behaves.__name__, path='/v1'),
                             REFUSED, self.said)
            self.assertEqual(self.outcomes(), wanted)
            self.assertEqual(len(server.requests), 5)
            for _, _, _, body in server.requests:
                self.assertEqual(body['model'], 'gpt-x')
                done = subprocess.run([sys.executable, '-c', CHECKS], input=json.dumps([body, response('23', body)]), text=True,
                                      env={**os.environ, 'PYTHONPATH': str(SDKS / 'openai')}, stdout=subprocess.PIPE)
                self.assertEqual((done.returncode, done.stdout), (0, '23\n'))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
