# SPDX-License-Identifier: Apache-2.0
"""A workflow of this project's, run by act on this machine from the tag of a release."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r'kVersion = "([^"]+)"', (ROOT / 'runner/base/version.h').read_text())[1]
TAG, SOURCE = f'v{VERSION}', f'source-v{VERSION}'
USES = re.compile(r'uses: ([a-z-]+/[a-z-]+)@([0-9a-f]{40})')

CHECKOUT = '''
name: checkout
description: The stand-in for actions/checkout.
inputs: { ref: { default: "" }, path: { default: "." }, persist-credentials: { default: "true" } }
runs:
  using: composite
  steps:
    - shell: bash
      env: { REF: "${{ inputs.ref || github.ref }}", INTO: "${{ inputs.path }}", CREDENTIALS: "${{ inputs.persist-credentials }}" }
      run: |
        [ "$CREDENTIALS" = false ]
        mkdir -p "$INTO" && cd "$INTO"
        git init --quiet . && git remote add origin "$TEST_REMOTE"
        git fetch --quiet origin "$REF" && git checkout --quiet FETCH_HEAD
'''
UPLOAD = '''
name: upload-artifact
description: The stand-in for actions/upload-artifact.
inputs: { name: { required: true }, path: { required: true }, if-no-files-found: {} }
runs:
  using: composite
  steps:
    - shell: bash
      env: { NAME: "${{ inputs.name }}", FROM: "${{ inputs.path }}" }
      run: |
        mkdir -p "$TEST_ROOT/artifacts/$NAME"
        for file in $FROM; do
          [ ! -d "$file" ] || file=$file/.
          cp -r "$file" "$TEST_ROOT/artifacts/$NAME"
        done
'''
DOWNLOAD = '''
name: download-artifact
description: The stand-in for actions/download-artifact. Like that, it forgets which files are executable.
inputs: { name: {}, pattern: {}, merge-multiple: {}, path: { required: true } }
runs:
  using: composite
  steps:
    - shell: bash
      env: { NAME: "${{ inputs.name || inputs.pattern }}", INTO: "${{ inputs.path }}" }
      run: |
        mkdir -p "$INTO"
        for artifact in "$TEST_ROOT"/artifacts/$NAME; do cp -r "$artifact/." "$INTO"; done
        find "$INTO" -type f -exec chmod 644 {} +
'''


class DryRun(unittest.TestCase):
    """What is committed is released. Stand-ins are only what lies outside: `actions`, text by name, and `programs`."""
    act = None
    actions = {'checkout': CHECKOUT, 'upload-artifact': UPLOAD, 'download-artifact': DOWNLOAD}
    programs = {}

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix='release-test-', dir=ROOT / 'build'))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        for name, text in cls.actions.items():
            cls.write(f'actions/{name}/action.yml', text)
        for name, text in cls.programs.items():
            cls.write(f'bin/{name}', text).chmod(0o755)
        cls.write('home/.gitconfig', '[user]\nname = a\nemail = a@example.com\n[init]\ndefaultBranch = main\n')
        for name in ('tmp', 'site'):
            (cls.root / name).mkdir()
        cls.environment = {'PATH': f'{cls.root}/bin:{os.environ["PATH"]}', 'HOME': f'{cls.root}/home',
                           'XDG_CACHE_HOME': f'{cls.root}/cache', 'TMPDIR': f'{cls.root}/tmp', 'GIT_CONFIG_NOSYSTEM': '1',
                           'CCACHE_DIR': os.environ.get('CCACHE_DIR', os.path.expanduser('~/.cache/ccache')),
                           'LANG': os.environ.get('LANG', 'C.UTF-8')}  # ccache tells languages apart.

    @classmethod
    def write(cls, name, text):
        path = cls.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @classmethod
    def git(cls, *arguments, cwd=None):
        return subprocess.run(['git', *arguments], cwd=cwd or cls.root / 'site', env=cls.environment, check=True,
                              capture_output=True, text=True).stdout.strip()

    @classmethod
    def publish_source(cls):
        """The repository of the project on its forge: what is committed here, with checks that end at once, and the tag."""
        archive = subprocess.run(['git', 'archive', 'HEAD'], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(['tar', '-x', '-C', cls.root / 'site'], input=archive, check=True)
        cls.write('site/.ci/run', '#!/bin/sh\necho "1 passed, 0 failed ($*)" >>"$TEST_ROOT/checked"\n')
        cls.git('init', '-q')
        cls.git('add', '-A')
        cls.git('commit', '-qm', 'release')
        cls.git('tag', SOURCE)
        cls.remote = cls.root / 'remote.git'
        cls.git('clone', '-q', '--mirror', '.', str(cls.remote))

    @classmethod
    def run_workflow(cls, name, variables):
        """Runs .github/workflows/NAME.yml; its log stays in build/."""
        event = cls.write('event.json', json.dumps({'ref': f'refs/tags/{SOURCE}', 'repository': {
            'full_name': 'acme/agentic-ci', 'name': 'agentic-ci', 'owner': {'login': 'acme'}, 'default_branch': 'main'}}))
        command = [cls.act, 'push', '-W', f'.github/workflows/{name}.yml', '-e', event, '--no-skip-checkout', '--action-offline-mode',
                   '--no-cache-server', '-s', 'GITHUB_TOKEN=token',
                   *(word for runner in ('ubuntu-24.04', 'ubuntu-24.04-arm') for word in ('-P', f'{runner}=-self-hosted'))]
        workflow = (cls.root / f'site/.github/workflows/{name}.yml').read_text()
        for action, sha in sorted(set(USES.findall(workflow))):
            command += ['--local-repository', f'{action}@{sha}={cls.root}/actions/{action.split("/")[1]}']
        variables = {'GITHUB_REPOSITORY': 'acme/agentic-ci', 'GITHUB_REF': f'refs/tags/{SOURCE}', 'GITHUB_REF_NAME': SOURCE,
                     'TEST_ROOT': cls.root, 'TEST_SOURCE': ROOT, 'TEST_REMOTE': cls.remote,
                     **{name: cls.environment[name] for name in ('CCACHE_DIR', 'LANG')}, **variables}
        command += [word for name, value in variables.items() for word in ('--env', f'{name}={value}')]
        run = subprocess.run(command, cwd=cls.root / 'site', env=cls.environment, capture_output=True, text=True)
        cls.output = re.sub(r'\x1b\[[0-9;]*m', '', run.stdout + run.stderr)
        (ROOT / f'build/{name}-dry-run.log').write_text(cls.output)
        if run.returncode:
            raise AssertionError(cls.output[-6000:])
