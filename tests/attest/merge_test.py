#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Only what was proven is posted, and merged: `post --require-run` and `verify-run --pull-request`.

merge_test.py BINARY SOURCE SIGSTORE [TEST...]
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from attest_case import BINARY, GIT, Base, git, plain


class Post(Base):
    """`post --require-run`, up to the forge, which is not there."""

    def post(self, report, word, *words, expect=77, run='77'):
        event = self.top / 'push.json'
        event.write_text(json.dumps({'repository': {'full_name': 'acme/site', 'default_branch': 'main'}, 'inputs': {}}))
        job = plain(GITHUB_ACTIONS='true', GITHUB_EVENT_NAME='workflow_dispatch', GITHUB_EVENT_PATH=str(event), GITHUB_RUN_ID=run,
                    GITHUB_RUN_ATTEMPT='2', GITHUB_REPOSITORY='acme/site', GITHUB_SERVER_URL='https://github.com',
                    GITHUB_SHA=git(self.work, 'rev-parse', 'HEAD'), GITHUB_REF='refs/heads/main', GITHUB_TOKEN='t',
                    GITHUB_API_URL='http://127.0.0.1:9')
        self.job = job | {'GITHUB_RUN_ATTEMPT': '1'}
        if word is None:
            return
        done = subprocess.run([BINARY, 'post', report, '--number', '7', '--timeout', '1s', *words], env=job, cwd=self.top,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        self.assertIn(word, done.stderr)

    def test_only_a_stated_report_of_this_run_is_posted(self):
        self.post(None, None)
        report = self.top / 'posted'
        made = self.run_in(self.work, report, '--attest-key', self.key, environment=self.job)
        self.assertEqual(made.returncode, 0, made.stderr)
        asked = ['--require-run', '--key', self.public]
        self.post(report, '127.0.0.1', *asked, expect=75)  # The control: it gets as far as the forge.
        self.post(report, 'another run: https://github.com/acme/site/actions/runs/77', *asked, run='78')
        self.post(self.report, 'one outside of CI', *asked)
        self.post(report, 'needs a signer', '--require-run', expect=64)
        other = self.top / 'posted-other'
        shutil.copytree(report, other)
        (other / 'changes.patch').write_text((other / 'changes.patch').read_text().replace('print(2)', 'print(6)'))
        self.post(other, 'changes.patch is not the one that is stated', *asked)
        (other / 'run.sigstore.json').unlink()
        self.post(other, 'reading the statement', *asked, expect=66)


class PullRequest(Base):
    """Merge only what was proven."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.report = cls.top / 'job-report'
        made = cls.run_in(cls.work, cls.report, '--attest-key', cls.key)
        assert made.returncode == 0, made.stderr
        cls.runs = cls.top / 'runs'
        cls.runs.mkdir()
        shutil.copytree(cls.report, cls.runs / 'first/agentic-ci-report')

    @classmethod
    def run_in(cls, work, report, *words, command=None, environment=None):
        """In a job of the repository, which somebody has started by hand."""
        event = cls.top / 'dispatch.json'
        event.write_text(json.dumps({'repository': {'full_name': 'acme/site', 'default_branch': 'main'}, 'inputs': {}}))
        job = plain(GITHUB_ACTIONS='true', GITHUB_EVENT_NAME='workflow_dispatch', GITHUB_EVENT_PATH=str(event), GITHUB_RUN_ID='77',
                    GITHUB_REPOSITORY='acme/site', GITHUB_SERVER_URL='https://github.com', GITHUB_API_URL='http://127.0.0.1:9',
                    GITHUB_SHA=git(work, 'rev-parse', 'HEAD'), GITHUB_REF='refs/heads/main')
        return super().run_in(work, report, *words, command=command, environment=environment or job)

    def commit(self, work, report=None, message='Changes by the agent', statement=None):
        """A commit as `agentic-ci post` makes it of a report."""
        if report:
            subprocess.run([*GIT, '-C', work, 'apply', '--index', report / 'changes.patch'], check=True)
        lines = ['', 'Agentic-CI: 0123/4567/' + git(work, 'rev-parse', 'HEAD')]
        if statement is not False:
            bundle = (statement or (report or self.report) / 'run.sigstore.json').read_bytes()
            lines.append('Agentic-CI-Statement: ' + hashlib.sha256(bundle).hexdigest())
        git(work, 'commit', '-q', '--allow-empty', '-m', message + '\n' + '\n'.join(lines))

    def proposal(self):
        """A branch for a pull request, in a clone of its own."""
        work = pathlib.Path(tempfile.mkdtemp(dir=self.top)) / 'clone'
        git(self.top, 'clone', '-q', self.work, work)
        git(work, 'checkout', '-q', '-b', 'topic')
        return work

    def judge(self, work, *words, expect=0, policy=None):
        event = work.parent / 'event.json'
        base, head = git(work, 'rev-parse', 'origin/main'), git(work, 'rev-parse', 'HEAD')
        repository = {'full_name': 'acme/site'}
        event.write_text(json.dumps({'number': 7, 'repository': repository | {'default_branch': 'main'}, 'pull_request': {
            'number': 7, 'base': {'ref': 'main', 'sha': base, 'repo': repository},
            'head': {'ref': 'topic', 'sha': head, 'repo': repository}}}))
        job = plain(GITHUB_ACTIONS='true', GITHUB_EVENT_NAME='pull_request_target', GITHUB_EVENT_PATH=str(event), GITHUB_REPOSITORY='acme/site',
                    GITHUB_SERVER_URL='https://github.com', GITHUB_API_URL='https://api.github.com', GITHUB_RUN_ID='9',
                    GITHUB_REF='refs/heads/main', GITHUB_SHA=base)
        text = self.verify('--pull-request', '--bundles', self.runs, *(['--policy', policy] if policy else []), *words, expect=expect,
                           cwd=work, environment=job, key=policy is None)
        return text

    def test_a_commit_with_a_statement_passes(self):
        work = self.proposal()
        self.commit(work, self.report)
        self.assertIn('proven, signed by key', self.judge(work))
        self.assertIn('proven', self.judge(work, '--tier', 'landlock', '--every-commit'))

    def test_a_commit_without_one_does_not(self):
        work = self.proposal()
        self.commit(work, self.report, statement=False)
        self.assertIn('names no statement', self.judge(work, expect=77))
        work = self.proposal()
        missing = self.top / 'missing.json'
        missing.write_text('{}')
        self.commit(work, self.report, statement=missing)
        self.assertIn('was not found', self.judge(work, expect=77))

    def test_a_person_commits(self):
        work = self.proposal()
        (work / 'person.txt').write_text('x')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'By a person')
        self.assertIn("not an agent's", self.judge(work))
        self.assertIn('names no statement', self.judge(work, '--every-commit', expect=77))

    def test_amended_by_hand(self):
        work = self.proposal()
        self.commit(work, self.report)
        (work / 'app.py').write_text('print(2)\nimport os\n')
        git(work, 'commit', '-q', '-a', '--amend', '--no-edit')
        self.assertIn('unmet: commit', self.judge(work, expect=77))

    def test_a_weaker_tier(self):
        report = self.runs / 'weak/agentic-ci-report'
        made = self.run_in(self.work, report, '--attest-key', self.key, '--isolation', 'landlock')
        self.assertEqual(made.returncode, 0, made.stderr)
        work = self.proposal()
        self.commit(work, report)
        self.judge(work)
        self.assertIn('unmet: tier', self.judge(work, '--tier', 'namespaces', expect=77))

    def test_another_policy(self):
        other = self.top / 'other-policy.yml'
        other.write_text('endpoints: [pkg.example.com:80:read-only]\n')
        report = self.runs / 'policy/agentic-ci-report'
        made = self.run_in(self.work, report, '--attest-key', self.key, '--policy', other)
        self.assertEqual(made.returncode, 0, made.stderr)
        work = self.proposal()
        self.commit(work, report)
        self.assertIn('unmet: base-policy', self.judge(work, expect=77))

    def test_the_policy_of_a_task(self):
        base = self.checkout('tasks')
        (base / '.agentic-ci/wide.yml').write_text('endpoints: [pkg.example.com:80:read-only]\n')
        (base / '.agentic-ci/config.yml').write_text('tasks: {wide: {command: [x], policy: .agentic-ci/wide.yml}}\n')
        git(base, 'add', '-A')
        git(base, 'commit', '-qm', 'a task')
        reports = {}
        # The control is the task's own run. A file that a command line names is no task's, though its bytes are the same.
        for name, words in (('own', ['--task', 'wide']), ('typed', ['--policy', '.agentic-ci/wide.yml'])):
            reports[name] = self.runs / f'task-{name}/agentic-ci-report'
            made = self.run_in(base, reports[name], '--attest-key', self.key, *words)
            self.assertEqual(made.returncode, 0, made.stderr)
        for name, changed, status, said in (('own', None, 0, 'proven'), ('typed', None, 77, 'unmet: base-policy'),
                                            ('own', 'endpoints: []\n', 77, 'unmet: base-policy')):
            with self.subTest(name, changed=changed):
                work = pathlib.Path(tempfile.mkdtemp(dir=self.top)) / 'clone'
                if changed:  # At the base, meanwhile.
                    (base / '.agentic-ci/wide.yml').write_text(changed)
                    git(base, 'commit', '-qam', 'narrower')
                git(self.top, 'clone', '-q', base, work)
                git(work, 'checkout', '-q', '-b', 'topic')
                self.commit(work, reports[name])
                self.assertIn(said, self.judge(work, expect=status))

    def test_the_branch_had_moved(self):
        """The patch is the run's, on another parent."""
        work = self.proposal()
        (work / 'person.txt').write_text('x')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'By a person')
        self.commit(work, self.report)
        self.assertIn('proven', self.judge(work))
        # Without the patch nothing says what that run made of this parent.
        alone = self.top / 'alone'
        shutil.copytree(self.report, alone)
        (alone / 'changes.patch').unlink()
        self.judge(work, '--bundles', alone, expect=64)
        runs, self.runs = self.runs, alone
        self.addCleanup(setattr, self, 'runs', runs)
        self.assertIn('unmet: commit', self.judge(work, expect=77))

    def test_a_persons_work_in_the_same_commit(self):
        """The tree is the one that the run made, on another parent: what is between would be merged unseen."""
        work = self.proposal()
        (work / 'backdoor.py').write_text('x')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'By a person')
        report = self.runs / 'squashed/agentic-ci-report'
        made = self.run_in(work, report, '--attest-key', self.key, '--policy-ref', 'origin/main')
        self.assertEqual(made.returncode, 0, made.stderr)
        subprocess.run([*GIT, '-C', work, 'apply', '--index', report / 'changes.patch'], check=True)
        git(work, 'reset', '-q', '--soft', 'origin/main')
        self.commit(work, statement=report / 'run.sigstore.json')
        for words in ((), ('--every-commit',)):
            self.assertIn('unmet: commit', self.judge(work, *words, expect=77))
        # As a merge that drops one side, too.
        tree = git(work, 'rev-parse', 'HEAD^{tree}')
        message = git(work, 'log', '-1', '--format=%B')
        merge = git(work, 'commit-tree', tree, '-p', 'origin/main', '-p', git(work, 'rev-parse', 'HEAD'), '-m', message)
        git(work, 'reset', '-q', '--hard', merge)
        self.assertIn('other parents', self.judge(work, expect=77))

    def test_a_directorys_patch_elsewhere(self):
        work = self.checkout('below')
        (work / 'docs').mkdir()
        (work / 'docs/a.md').write_text('x\n')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'docs')
        report = self.runs / 'below/agentic-ci-report'
        made = self.run_in(work, report, '--attest-key', self.key, '--workdir', 'docs',
                           command=['sh', '-c', 'mkdir -p .github/workflows && echo "on: push" >.github/workflows/x.yml'])
        self.assertEqual(made.returncode, 0, made.stderr)
        for below, expect in (('.', 77), ('docs', 0)):
            clone = pathlib.Path(tempfile.mkdtemp(dir=self.top)) / 'clone'
            git(self.top, 'clone', '-q', work, clone)
            git(clone, 'checkout', '-q', '-b', 'topic')
            git(clone, 'commit', '-q', '--allow-empty', '-m', 'the branch has moved')
            git(clone, 'apply', '--index', *(['--directory', below] if below != '.' else []), report / 'changes.patch')
            self.commit(clone, statement=report / 'run.sigstore.json')
            self.judge(clone, expect=expect)

    def test_a_checkout_with_other_files(self):
        work = self.checkout('dirty')
        (work / 'generated.py').write_text('x')
        report = self.runs / 'dirty/agentic-ci-report'
        made = self.run_in(work, report, '--attest-key', self.key)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.statement(report / 'run.sigstore.json')['predicate']['changes']['tree'], '')

    def test_another_configuration_and_another_repository(self):
        work = self.checkout('weaker')
        (work / '.agentic-ci/config.yml').write_text('limits: {max_requests: 5}\n')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'configuration')
        report = self.runs / 'configured/agentic-ci-report'
        made = self.run_in(work, report, '--attest-key', self.key)
        self.assertEqual(made.returncode, 0, made.stderr)
        clone = self.proposal()
        self.commit(clone, report)
        self.assertIn('the configuration was not', self.judge(clone, expect=77))
        plain_report = self.runs / 'plain/agentic-ci-report'
        made = Base.run_in(self.work, plain_report, '--attest-key', self.key)
        self.assertEqual(made.returncode, 0, made.stderr)
        clone = self.proposal()
        self.commit(clone, plain_report)
        self.assertIn('unmet: repository', self.judge(clone, expect=77))

    def test_what_strangers_put_beside_the_statements(self):
        work = self.proposal()
        self.commit(work, self.report)
        copy_ = self.runs / 'zz/agentic-ci-report'
        shutil.copytree(self.report, copy_)
        (copy_ / 'changes.patch').write_text('x')
        (self.runs / 'aa').mkdir()
        os.mkfifo(self.runs / 'aa/run.sigstore.json')
        (self.runs / 'bb/run.sigstore.json').mkdir(parents=True)
        (self.runs / 'cc').mkdir()
        (self.runs / 'cc/run.sigstore.json').symlink_to('/dev/zero')
        git(work, 'commit', '-q', '--allow-empty', '-m', 'x')  # The next one is on another parent, so that the patch is needed.
        self.judge(work)
        for name in ('zz', 'aa', 'bb', 'cc'):
            shutil.rmtree(self.runs / name)

    def test_trailers_in_other_forms(self):
        for trailer in ('agentic-ci:x/y/z', 'AGENTIC-CI-STATEMENT:', 'Agentic-CI:'):
            work = self.proposal()
            git(work, 'commit', '-q', '--allow-empty', '-m', f'x\n\n{trailer}')
            self.assertIn('names no statement', self.judge(work, expect=77))

    def test_what_the_pull_request_says_does_not_count(self):
        """Expectations and keys in the checkout are those of the base."""
        work = self.checkout('with-rules')
        shutil.copy(self.public, work / '.agentic-ci/attest.pub')
        (work / '.agentic-ci/merge.yml').write_text('key: .agentic-ci/attest.pub\nagent: codex\n')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'rules')
        clone = self.top / 'with-rules-clone'
        git(self.top, 'clone', '-q', work, clone)
        git(clone, 'checkout', '-q', '-b', 'topic')
        self.commit(clone, self.report)
        self.assertIn('unmet: agent', self.judge(clone, policy='.agentic-ci/merge.yml', expect=77))
        (clone / '.agentic-ci/merge.yml').write_text('key: .agentic-ci/attest.pub\nagent: command\n')
        git(clone, 'commit', '-q', '-a', '-m', 'a wider rule')
        self.assertIn('unmet: agent', self.judge(clone, policy='.agentic-ci/merge.yml', expect=77))


if __name__ == '__main__':
    unittest.main(verbosity=2)
