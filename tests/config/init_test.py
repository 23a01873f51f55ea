#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`config init` on many kinds of repositories: its files are valid, and a first run with them works.

usage: init_test.py BINARY [KIND...]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'action'))
import tally  # noqa: E402
import workflow_rules  # noqa: E402
from tally import check, run  # noqa: E402

GIT = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'init.defaultBranch=main']

# name, remote, files, the CI file that is written, ecosystems that are named, the task's command
KINDS = [
    ('node on GitHub', 'https://github.com/acme/site.git',
     {'package.json': '{"name": "x", "scripts": {"test": "true"}}', 'package-lock.json': '{}'},
     '.github/workflows/agentic-ci.yml', ['node'], '[npm, test]'),
    ('python on GitLab', 'git@gitlab.example.com:acme/site.git',
     {'pyproject.toml': '[project]\nname = "x"\n', 'uv.lock': 'version = 1\n'},
     '.gitlab-ci.yml', ['python'], '[uv, run, pytest]'),
    ('go on Gitea', 'ssh://git@gitea.example.com:2222/acme/site.git',
     {'go.mod': 'module example.com/x\n'},
     '.gitea/workflows/agentic-ci.yml', ['go'], '[go, test, "./..."]'),
    ('rust on Codeberg', 'https://codeberg.org/acme/site.git',
     {'Cargo.toml': '[package]\nname = "x"\n', 'Cargo.lock': 'version = 3\n'},
     '.forgejo/workflows/agentic-ci.yml', ['rust'], '[cargo, test]'),
    ('java with a wrapper', '', {'pom.xml': '<project/>\n', 'mvnw': '#!/bin/sh\n'},
     '.github/workflows/agentic-ci.yml', ['java'], '["./mvnw", "-B", test]'),
    ('ruby with its own GitLab CI', 'https://github.com/acme/site.git',
     {'Gemfile': '', '.gitlab-ci.yml': 'test: {script: [rake]}\n'},
     '.agentic-ci/gitlab-ci.yml', ['ruby'], '[bundle, exec, rake]'),
    ('dotnet with workflows', '', {'site.sln': '', 'app/app.csproj': '', '.github/workflows/ci.yml': 'on: push\n'},
     '.github/workflows/agentic-ci.yml', ['dotnet'], '[dotnet, test]'),
    ('C with make', '', {'Makefile': 'test:\n\ttrue\n', 'a.c': ''},
     '.github/workflows/agentic-ci.yml', [], '[make, test]'),
    ('several languages in one', '',
     {'web/package.json': '{}', 'services/api/setup.py': '', 'node_modules/x/Cargo.toml': '', 'Makefile': 'test:\n'},
     '.github/workflows/agentic-ci.yml', ['node', 'python'], '[make, test]'),
    ('pnpm', '', {'package.json': '{}', 'pnpm-lock.yaml': '', 'Makefile': 'test:\n'},
     '.github/workflows/agentic-ci.yml', ['node'], '[pnpm, test]'),
    ('yarn', '', {'package.json': '{}', 'yarn.lock': ''}, '.github/workflows/agentic-ci.yml', ['node'], '[yarn, test]'),
    ('bun', '', {'package.json': '{}', 'bun.lock': '{}'}, '.github/workflows/agentic-ci.yml', ['node'], '[bun, test]'),
    ('poetry', '', {'pyproject.toml': '', 'poetry.lock': ''}, '.github/workflows/agentic-ci.yml', ['python'], '[poetry, run, pytest]'),
    ('tox', '', {'setup.py': '', 'tox.ini': ''}, '.github/workflows/agentic-ci.yml', ['python'], '[tox]'),
    ('composer', '', {'composer.json': '{}'}, '.github/workflows/agentic-ci.yml', [], '["vendor/bin/phpunit"]'),
    ('mix', '', {'mix.exs': ''}, '.github/workflows/agentic-ci.yml', [], '[mix, test]'),
    ('bazel', '', {'MODULE.bazel': ''}, '.github/workflows/agentic-ci.yml', [], '[bazel, test, "//..."]'),
    ('just', '', {'justfile': 'test:\n'}, '.github/workflows/agentic-ci.yml', [], '[just, test]'),
    ('gradle', '', {'build.gradle.kts': ''}, '.github/workflows/agentic-ci.yml', ['java'], '[gradle, test]'),
    ('cmake', '', {'CMakeLists.txt': ''}, '.github/workflows/agentic-ci.yml', [], '[ctest, "--test-dir", build]'),
    ('nothing known', '', {'README.md': '# x\n'},
     '.github/workflows/agentic-ci.yml', [], '[git, status, "--short"]'),
]
# What the workflow installs before the agent starts, by the kind's name.
INSTALLS = {'node on GitHub': 'npm ci', 'pnpm': 'pnpm install --frozen-lockfile', 'yarn': 'yarn install --frozen-lockfile',
            'bun': 'bun install --frozen-lockfile', 'poetry': 'poetry install', 'composer': 'composer install',
            'cmake': 'cmake --build build', 'rust on Codeberg': None, 'bazel': None, 'nothing known': None}
RELEASE = 'acme/agentic-ci@' + '0123456789abcdef0123456789abcdef01234567'


def make_repository(directory, remote, files):
    directory.mkdir()
    subprocess.run([*GIT, 'init', '-q'], cwd=directory, check=True)
    if remote:
        subprocess.run(['git', 'remote', 'add', 'origin', remote], cwd=directory, check=True)
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(directory):
    subprocess.run([*GIT, 'add', '-f', '.'], cwd=directory, check=True)
    subprocess.run([*GIT, 'commit', '-qm', 'first'], cwd=directory, check=True)


def try_kind(directory, kind):
    name, remote, files, ci, ecosystems, command = kind
    make_repository(directory, remote, files)
    status, text = run(directory, 'config', 'init', '--agent', 'command')
    check(status == 0 and f'wrote {ci}\n' in text, f'{name}: init: {text}')
    if 'gitlab' not in ci:
        workflow = (directory / ci).read_text()
        check(not workflow_rules.cancelled_by_others(workflow), f'{name}: another event cancels the run: {workflow}')
        check(not workflow_rules.keeps_no_report(workflow), f'{name}: no report is kept: {workflow}')
        if name in INSTALLS:
            expected = INSTALLS[name]
            check(expected in workflow if expected else 'dependencies' not in workflow, f'{name}: installs: {workflow}')
    config = (directory / '.agentic-ci/config.yml').read_text()
    for ecosystem in ['node', 'python', 'go', 'rust', 'java', 'ruby', 'dotnet']:
        named = any(ecosystem in line.split('ecosystems')[-1] for line in config.splitlines() if 'ecosystems' in line)
        check(named == (ecosystem in ecosystems), f'{name}: {ecosystem}: {config}')
    check(f'command: {command}\n' in config, f'{name}: command: {config}')
    status, text = run(directory, 'config', 'check')
    check(status == 65 and f'{ci}:' in text and "'COMMIT' is a placeholder for" in text, f'{name}: placeholders: {text}')
    written = config + (directory / ci).read_text()
    status, text = run(directory, 'config', 'init', '--agent', 'command', '--release', RELEASE)
    check(status == 0 and f'filled in {ci}\n' in text and '\nto fill in' not in text, f'{name}: init --release: {text}')
    filled = (directory / '.agentic-ci/config.yml').read_text() + (directory / ci).read_text()
    project, sha = RELEASE.split('@')
    check(filled == re.sub(r'(OWNER|GROUP)/agentic-ci', project, written).replace('@COMMIT', '@' + sha), f'{name}: {filled}')
    if 'gitlab' in ci:
        (directory / ci).write_text((directory / ci).read_text().replace('IMAGE', 'registry.example.com/agent'))
    status, text = run(directory, 'config', 'check')
    check(status == 0 and text == '.agentic-ci/config.yml: ok\n', f'{name}: config check: {text}')
    status, text = run(directory, 'policy', 'check', '.agentic-ci/openshell-policy.yml')
    check(status == 0 and 'warning' not in text, f'{name}: policy check: {text}')
    commit(directory)
    status, text = run(directory, 'run', '--task', 'check', '--', 'sh', '-c', 'echo it works')
    check(status == 0 and 'it works' in text, f'{name}: run: {text}')


def try_files(directory):
    """Files that exist are kept, unless told; the agent's own files are valid; links are not followed."""
    make_repository(directory, '', {'Makefile': 'test:\n\t@echo tested\n', '.agentic-ci/config.yml': 'models: [x]\n'})
    status, text = run(directory, 'config', 'init')
    check(status == 0 and 'kept .agentic-ci/config.yml' in text and 'wrote .agentic-ci/review.md' in text, text)
    check((directory / '.agentic-ci/config.yml').read_text() == 'models: [x]\n', 'a file is kept')
    status, text = run(directory, 'config', 'init', '--force')
    check(status == 0 and 'kept' not in text, text)
    text_of_init = text
    config = (directory / '.agentic-ci/config.yml').read_text()
    check('prompt_file' in config, 'a file is replaced')
    # What the comment offers in place of a key is valid as it is, and is looked at.
    offered = re.sub(r'(?m)^# (?=providers:|  )', '', config)
    for given, wanted in ((offered, 0), (offered.replace('federation_rule', 'federation_rul'), 65)):
        (directory / '.agentic-ci/config.yml').write_text(given)
        status, text = run(directory, 'config', 'check', '.agentic-ci/config.yml')
        check(given != config and status == wanted, f'{status}: {text}{given}')
    (directory / '.agentic-ci/config.yml').write_text(config)
    status, text = run(directory, 'config', 'check')
    check(status == 65 and ".github/workflows/agentic-ci.yml:" in text and "'OWNER' is a placeholder for" in text, text)
    for on, word in (('push', 'ready_for_review'), ('label', 'labels.*.name'), ('command', 'issue_comment')):
        status, text = run(directory, 'config', 'init', '--force', '--on', on)
        workflow = (directory / '.github/workflows/agentic-ci.yml').read_text()
        check(status == 0 and word in workflow and not workflow_rules.cancelled_by_others(workflow), f'{on}: {text}{workflow}')
        status, text = run(directory, 'config', 'check', '.agentic-ci/config.yml')
        check(status == 0, f'{on}: {text}')
    for wrong in (('--on', 'weekly'), ('--on', 'label', '--forge', 'gitlab'), ('--on', 'command', '--forge', 'gitea'), ('--release', 'acme/agentic-ci'), ('--release', 'agentic-ci@' + 'a' * 40)):
        status, text = run(directory, 'config', 'init', *wrong)
        check(status == 64 and 'hint: ' in text, text)
    status, text = run(directory, 'config', 'init', '--force')
    # What it says to type next has something to review, and stops where a person's key is missing.
    steps = text_of_init.splitlines()[-1].removeprefix('next: ').split(' && ')
    check(steps == ['git add .agentic-ci .github', 'agentic-ci run --policy-ref worktree --task review'], text_of_init)
    subprocess.run([*GIT, *steps[0].split()[1:]], cwd=directory, check=True)
    status, text = run(directory, *steps[1].split()[1:])
    check(status == 78 or 'no program' in text or 'not installed' in text, f'without a credential: {text}')
    shutil.rmtree(directory / 'agentic-ci-report', ignore_errors=True)
    commit(directory)
    status, text = run(directory, 'run', '--task', 'review')
    check(status == 65 and 'changes nothing' in text, f'nothing to review: {text}')
    status, text = run(directory, 'config', 'init', '--agent', 'claude')
    check(status == 64 and 'claude-code' in text, text)
    status, text = run(directory, 'config', 'init', '--forge', 'githup')
    check(status == 64 and 'github' in text, text)
    # The task as it is written, not only its configuration.
    run(directory, 'config', 'init', '--agent', 'command', '--force')
    status, text = run(directory, 'run', '--policy-ref', 'worktree', '--task', 'check')
    check(status == 0 and 'tested' in text, text)
    # A link out of the repository is nothing to write through.
    outside = directory.parent / 'outside'
    outside.mkdir()
    linked = directory.parent / 'linked'
    make_repository(linked, '', {})
    (linked / '.agentic-ci').symlink_to(outside)
    status, text = run(linked, 'config', 'init', '--force')
    check(status != 0 and not list(outside.iterdir()), f'a link: {text}')
    plain = directory.parent / 'plain'
    plain.mkdir()
    status, text = run(plain, 'config', 'init')
    check(status == 66 and 'git init' in text, f'no repository: {text}')


def main():
    with tempfile.TemporaryDirectory(prefix='config-init-') as top:
        names = sys.argv[2:]
        for i, kind in enumerate(KINDS):
            if not names or any(name in kind[0] for name in names):
                try_kind(pathlib.Path(top, str(i)), kind)
        if not names:
            try_files(pathlib.Path(top, 'files'))
    return tally.finish()


if __name__ == '__main__':
    sys.exit(main())
