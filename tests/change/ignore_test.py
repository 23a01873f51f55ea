#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ignore rules beside `git check-ignore`, over trees and rules made at random, and beside lists of what people write.

ignore_test.py PROBE
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

PROBE = os.path.abspath(sys.argv.pop(1))
ROUNDS = 15
NAMES = ['a', 'b', 'ab', 'a.o', '.c', 'b c', 'a]', '[a]', 'a-', '#a', '!b', 'a\\', 'x*', 'é', 'B', 'a ']
PIECES = ['a', 'b', 'ab', '*', '**', '***', '?', '[ab]', '[!a]', '[^b]', '[a-c]', '[]a]', '[]-a]', '[[:alpha:]]', '[[:upper:]a]', '[[:x:]]', '[[:]',
          '[a', '[\\]]', '[a/b]', '\\a', '\\*', '\\[', '.o', '.', ' ', '\\ ', '#', '!', '\\#', '\\!', '\\', 'é', 'x', '-', ']', 'B', '[--a]', '[a-', '[\\a-c]']
LINES = ['packages/**/src/**/gen/**', '**/a/**/b/**/*.o', '/**', '/', '//a', 'a//', '**', '**/', '/*', '!*/', '!a', '\tb', 'a\t', '*a*b*c*d*e*f*g*h*i*j*k*l*m', '\ufeffa', 'a\r']


class Ignores(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ignore-')
        self.addCleanup(shutil.rmtree, self.dir)
        self.env = {'PATH': os.environ['PATH'], 'HOME': self.dir, 'GIT_CONFIG_NOSYSTEM': '1', 'LC_ALL': 'C.UTF-8'}
        subprocess.run(['git', 'init', '-q', self.dir], env=self.env, check=True)

    def compare(self, rules, paths):
        """`rules`: directory -> text; `paths`: those that end in a slash are directories."""
        for path in paths:
            place = os.path.join(self.dir, path)
            os.makedirs(place if path.endswith('/') else os.path.dirname(place), exist_ok=True)
            if not path.endswith('/') and not os.path.isdir(place):
                open(place, 'w').close()
        for directory, text in rules.items():
            with open(os.path.join(self.dir, directory), 'w', newline='') as file:
                file.write(text)
        # With a slash at its end, git asks of a directory as of a nameless file in it.
        theirs = self.tell(['git', 'check-ignore', '--no-index', '-z', '--stdin'], [path.rstrip('/') for path in paths])
        ours = self.tell([PROBE, 'ignored', self.dir], paths)
        self.assertEqual([path.rstrip('/') for path in ours], theirs, rules)
        return len(theirs)

    def tell(self, command, paths):
        done = subprocess.run(command, cwd=self.dir, env=self.env, input='\0'.join(paths).encode() + b'\0', capture_output=True,
                              timeout=120, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout.decode().split('\0')[:-1]

    def clear(self):
        for name in os.listdir(self.dir):
            path = os.path.join(self.dir, name)
            if name != '.git':
                (shutil.rmtree if os.path.isdir(path) else os.remove)(path)

    def test_rules_made_at_random_ignore_what_git_ignores(self):
        seed = random.randrange(1 << 32)
        rand = random.Random(seed)
        ignored = asked = 0

        def line():
            if rand.random() < 0.15:
                return rand.choice(LINES)
            parts = [''.join(rand.choice(PIECES) for _ in range(rand.randint(1, 3))) for _ in range(rand.randint(1, 3))]
            whole = rand.choice(['/', '/', '/', '\\/']).join(parts)
            return rand.choice(['', '', '', '!', '/', '**/']) + whole + rand.choice(['', '', '', '/', '/**', ' '])

        for number in range(ROUNDS):
            paths = {'/'.join(rand.choice(NAMES) for _ in range(rand.randint(1, 5))) for _ in range(150)}
            directories = {path[:at] for path in paths for at, c in enumerate(path) if c == '/'}
            paths = sorted((paths - directories) | {path + '/' for path in directories})
            rules = {'.gitignore': '\n'.join(line() for _ in range(rand.randint(1, 8))),
                     '.git/info/exclude': line() + '\n'}
            for directory in rand.sample(sorted(directories), 6):
                rules[directory + '/.gitignore'] = '\n'.join(line() for _ in range(rand.randint(1, 3)))
            with self.subTest(seed=seed, number=number):
                ignored += self.compare(rules, paths)
            asked += len(paths)
            self.clear()
        self.assertGreater(ignored, asked // 20)
        self.assertLess(ignored, asked * 19 // 20)

    def test_a_slash_is_one_with_a_backslash_before_it(self):
        for rule in ('[\\a-c]\\/#a', 'a\\/b', '\\/a', 'a\\/**', '**\\/b', 'a/**\\/b', 'a\\/', 'a\\\\/b', 'a\\//b', 'x\\', '[a\\/]/b'):
            with self.subTest(rule):
                self.compare({'.gitignore': rule + '\n'}, ['a/', 'a/b/', 'a/b/c', 'a/x/b', 'b/', 'b/#a', 'a\\/b', 'x', 'x\\'])
                self.clear()

    def test_rules_with_many_stars_are_asked_in_no_time(self):
        # Not beside git, which takes exponential time for them.
        deep = 'a/' * 100
        with open(self.dir + '/.gitignore', 'w') as file:
            file.write('**/a*/' * 40 + 'b\n' + 'a*' * 60 + 'b\n' + 'packages/**/src/**/gen/**\n')
        given = [deep + 'a' * 200, deep + 'b', 'packages/p/src/q/gen/r', 'packages/p/src/gen']
        self.assertEqual(self.tell([PROBE, 'ignored', self.dir], given), given[1:3])


if __name__ == '__main__':
    unittest.main(verbosity=1)
