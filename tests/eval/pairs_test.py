# SPDX-License-Identifier: Apache-2.0
"""Verdicts of agentic-ci on midojo's checks, beside midojo's own on the same evidence. usage: pairs_test.py GRADER [TEST...]"""
import json
import pathlib
import subprocess
import sys
import unittest

GRADER = sys.argv.pop(1)
DATA = pathlib.Path(__file__).resolve().parent / 'midojo/pairs.jsonl.zst'
# Where agentic-ci differs on purpose: docs/reference/evaluation.md says each.
EXPLAINED = {}


class Pairs(unittest.TestCase):
    def test_every_verdict_is_midojos(self):
        text = subprocess.run(['zstd', '-dc', DATA], check=True, capture_output=True).stdout
        pairs = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(len(pairs), 2000)
        done = subprocess.run([GRADER], input=text, check=True, capture_output=True)
        verdicts = done.stdout.decode().splitlines()
        self.assertEqual(len(verdicts), len(pairs))
        self.assertEqual({'true', 'false'} & set(verdicts), {'true', 'false'})
        differences = []
        for number, (pair, verdict) in enumerate(zip(pairs, verdicts)):
            if verdict != str(pair['midojo']).lower() and number not in EXPLAINED:
                differences.append(f'{number}: {verdict}, midojo {pair["midojo"]}: {json.dumps(pair["check"], ensure_ascii=False)}')
        self.assertEqual(differences, [], '\n'.join(differences[:20]))


if __name__ == '__main__':
    unittest.main(verbosity=2)
