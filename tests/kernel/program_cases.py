# SPDX-License-Identifier: Apache-2.0
"""Programs where people have them: in a home that only its owner may enter, shown without the rest of it."""
import os
import shutil
import tempfile

from harness import CANARY, FIXTURES, PLACE, ROOT, Case, read, write

HOME = '/home/kernel-test-' + ('root' if ROOT else 'user')
FILES = {
    # Path in the home: text. A shell under another name is an interpreter that lies there, too.
    '.local/bin/own': '#!/bin/sh\necho own works',
    '.local/share/pipx/venvs/tool/pyvenv.cfg': '',
    '.local/share/pipx/venvs/tool/bin/tool':
        f'#!{HOME}/.local/share/pipx/venvs/tool/bin/python\ncat $(dirname $(readlink -f $0))/../lib/text',
    '.local/share/pipx/venvs/tool/lib/text': 'tool works',
    '.pyenv/shims/python': '#!/bin/sh\necho pyenv works',
    '.pyenv/libexec/pyenv': '',
    '.npm-global/lib/node_modules/agent/cli.js': '#!/usr/bin/env kernel-test-node\necho agent works',
    '.nvm/versions/node/v20/lib/text': 'node works',
    '.cargo/bin/rustup': '#!/bin/sh\ncat $RUSTUP_HOME/toolchains/text',
    '.rustup/toolchains/text': 'cargo works',
    'sdk/go1/bin/go': '#!/bin/sh\ncat ${0%/bin/go}/pkg/tool/text',
    'sdk/go1/pkg/tool/text': 'go works',
    'open/anyone': '#!/bin/sh\necho anyone works',
    'in-home': '#!/bin/sh\necho in-home works',
}
LINKS = {'.local/bin/tool': '../share/pipx/venvs/tool/bin/tool',
         '.local/share/pipx/venvs/tool/bin/python': f'{HOME}/.pyenv/versions/3/bin/python3',
         '.npm-global/bin/agent': '../lib/node_modules/agent/cli.js',
         '.cargo/bin/cargo': 'rustup'}
SHELLS = ['.pyenv/versions/3/bin/python3', '.nvm/versions/node/v20/bin/kernel-test-node']
SECRETS = ['.ssh/id_ed25519', '.netrc', '.cargo/credentials.toml', '.local/share/keyrings/login',
           '.npm-global/etc/npmrc', '.pyenv/.npmrc', '.rustup/.netrc', '.local/bin/.env', 'notes',
           'sdk/notes', '.nvm/notes', '.local/share/notes']
PLACES = ['.local/bin', '.pyenv/shims', '.nvm/versions/node/v20/bin', '.npm-global/bin', '.cargo/bin',
          'sdk/go1/bin']
PROGRAMS = ['own', 'tool', 'python', 'agent', 'cargo', 'go']


class Programs(Case):
    def setUp(self):
        super().setUp()
        self.feature('root', FIXTURES, 'a home outside /tmp')
        self.home = HOME
        for name in os.listdir(HOME):
            shutil.rmtree(f'{HOME}/{name}') if os.path.isdir(f'{HOME}/{name}') else os.remove(f'{HOME}/{name}')
        for path, text in FILES.items():
            write(f'{HOME}/{path}', text + '\n', 0o755)
        for path in SECRETS:
            write(f'{HOME}/{path}', CANARY + '\n')
        for path, text in LINKS.items():
            os.makedirs(os.path.dirname(f'{HOME}/{path}'), exist_ok=True)
            os.symlink(text, f'{HOME}/{path}')
        for path in SHELLS:
            os.makedirs(os.path.dirname(f'{HOME}/{path}'), exist_ok=True)
            shutil.copy('/bin/sh', f'{HOME}/{path}')
        os.chmod(HOME + '/open', 0o777)
        self.path = ':'.join(f'{HOME}/{place}' for place in PLACES)

    def start(self, command, path=None, **more):
        return super().start(command, env={'PATH': (path or self.path) + ':/usr/bin:/bin'}, **more)

    def test_programs_of_the_path_run_under_the_same_names(self):
        script = ';'.join(PROGRAMS)
        expected = [f'{name} works' for name in ('own', 'tool', 'pyenv', 'agent', 'cargo', 'go')]
        outside = self.outside(f'PATH={self.path}:$PATH; export RUSTUP_HOME={HOME}/.rustup; {script}')
        self.assertEqual(outside.splitlines(), expected)
        self.assertEqual(self.shell(script).out.splitlines(), expected)
        place = self.shell('echo $PATH').out.strip().split(':')
        # Its own programs come first.
        self.assertEqual(place[1:len(PLACES) + 1], [f'{HOME}/{name}' for name in PLACES])
        self.assertTrue(place[0].endswith('/.local/bin') and not place[0].startswith(HOME), place)

    def test_started_program_brings_its_installation(self):
        node = f'{HOME}/.nvm/versions/node/v20/bin'
        for command, path, text in ((f'{HOME}/.npm-global/bin/agent', node, 'agent works'),
                                    (f'{HOME}/.local/bin/tool', '/usr/bin', 'tool works'),
                                    (f'{HOME}/.local/share/pipx/venvs/tool/bin/tool', '/usr/bin', 'tool works'),
                                    (f'{HOME}/sdk/go1/bin/go', '/usr/bin', 'go works'),
                                    (f'{HOME}/in-home', '/usr/bin', 'in-home works')):
            self.assertEqual(self.run_agent(command, path=path).out.strip(), text, command)

    def test_nothing_else_of_the_home_is_shown_and_nothing_can_be_written(self):
        search = f'grep -rls {CANARY} {HOME} || true'
        self.assertEqual(len(self.outside(search).split()), len(SECRETS))
        run = self.shell(f'{search}; own; cat {HOME}/.nvm/versions/node/v20/lib/text;'
                         f'for p in {" ".join(PLACES)} .rustup; do'
                         f'  (echo x > {HOME}/$p/new) 2>/dev/null && echo wrote $p; done; true')
        self.assertEqual(run.out.splitlines(), ['own works', 'node works'])

    def test_places_that_hold_more_than_programs_are_left_out_and_named(self):
        os.symlink(HOME + '/sdk', self.checkout + '/escape')
        os.makedirs(self.checkout + '/node_modules/.bin')
        write(self.checkout + '/node_modules/.bin/inside', '#!/bin/sh\necho inside works\n', 0o755)
        bad = [self.checkout + '/escape', '.', 'relative', '/', '/home', HOME, HOME + '/open', HOME + '/.ssh', '/tmp']
        path = ':'.join([*bad, self.checkout + '/node_modules/.bin', self.path])
        run = self.shell(f'own; inside; (anyone; in-home) 2>/dev/null; grep -rls {CANARY} {HOME}; echo $PATH; true', path=path)
        *said, inside_path = run.out.splitlines()
        self.assertEqual(said, ['own works', 'inside works'])
        self.assertEqual(inside_path.split(':')[1:3],
                         [self.checkout + '/node_modules/.bin', f'{HOME}/{PLACES[0]}'])
        plan = self.finish(self.start(['own'], path=path, options=['--plan-only'])).out
        for place in bad:
            self.assertTrue(any(line.startswith(f'note        PATH without {place}: ') or
                                line.startswith(f"note        PATH without '{place}': ")
                                for line in plan.splitlines()), f'{place}\n{plan}')
        self.assertIn(f'read-only   {HOME}/.local/bin\n', plan)
        self.assertIn(f'hidden      {HOME}/.local/bin/.env\n', plan)
        self.assertNotIn('read-only   ' + HOME + '/sdk\n', plan)


class HostPrograms(Case):
    """What is asked outside of the sandbox, and before it: never a program of the checkout."""

    def setUp(self):
        super().setUp()
        self.said = os.path.join(self.dir, 'said')
        self.tools = os.path.join(self.dir, 'tools')
        self.tool(self.tools + '/npm', 'own')

    def tool(self, path, name, first='#!/bin/sh'):
        """A program that says that it was run, and what it could see."""
        return write(path, f'{first}\necho {name} >> {self.said}\necho https://{name}.test/\n'
                           f'env >> {self.said}.env\n', 0o755)

    def ask(self, *places, checkout=None):
        """Who was asked, with these places before the usual ones."""
        checkout = checkout or self.checkout
        write(checkout + '/.agentic-ci/config.yml', 'ecosystems: [node]\n')
        for path in (self.said, self.said + '.env'):
            write(path, '')
        run = self.finish(self.start(
            ['true'], options=['--plan-only', '--policy-ref', 'worktree'], checkout=checkout,
            env={'PATH': ':'.join([*places, '/usr/bin:/bin']), 'TOKEN': CANARY,
                 'XDG_CACHE_HOME': tempfile.mkdtemp(dir=self.dir)}))  # Nothing was answered before.
        self.assertNotIn(CANARY, read(self.said + '.env'))
        return read(self.said).split(), run

    def test_tool_beside_the_checkout_is_asked(self):
        said, run = self.ask(self.tools)
        self.assertEqual(said, ['own'])
        self.assertIn('endpoint    own.test:443', run.out)

    def test_tool_in_the_checkout_is_not_asked_wherever_the_path_has_it(self):
        inside = self.checkout + '/node_modules/.bin'
        self.tool(inside + '/npm', 'theirs')
        self.tool(self.checkout + '/node', 'theirs')
        links = os.path.join(self.dir, 'links')
        os.symlink(inside, links)
        linked = os.path.join(self.dir, 'linked')
        os.mkdir(linked)
        os.symlink(links + '/npm', linked + '/npm')
        interpreted = os.path.join(self.dir, 'interpreted')
        self.tool(interpreted + '/npm', 'theirs', f'#!{inside}/npm')
        through_env = os.path.join(self.dir, 'through-env')
        self.tool(through_env + '/npm', 'theirs', '#!/usr/bin/env node')
        os.symlink(self.checkout + '/node', through_env + '/node')
        for place in (inside, links, linked, interpreted, through_env, inside + '/../.bin/'):
            with self.subTest(place):
                said, run = self.ask(place, self.tools)
                self.assertEqual(said, ['own'], run.err)
                self.assertNotIn('theirs.test', run.out)
        self.assertIn(f'path={inside}', self.ask(inside, self.tools)[1].err)

    def test_tool_in_a_part_of_the_checkout_that_is_mounted_elsewhere_is_not_asked(self):
        self.feature('root', FIXTURES, 'a mount of a part of a checkout')
        self.tool(PLACE + '/bound/tools/npm', 'theirs')
        said, run = self.ask(PLACE + '/tools', self.tools, checkout=PLACE + '/bound')
        self.assertEqual(said, ['own'], run.err)

    def test_checkout_below_the_top_of_its_repository(self):
        self.tool(self.checkout + '/bin/npm', 'theirs')
        os.mkdir(self.checkout + '/app')
        write(self.checkout + '/.agentic-ci/config.yml', 'ecosystems: [node]\n')
        self.assertEqual(self.ask(self.checkout + '/bin', self.tools, checkout=self.checkout + '/app')[0], ['own'])
