#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of GitLab's component in pods like those of GitLab Runner's Kubernetes executor: as root, as its pods are by default, and under
Pod Security's `restricted`.

usage: gitlab_test.py BINARY TESTBED CACHE [unittest arguments]
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import gitlab
import pods
from cluster import Cluster, every, make_root, require, use_programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE = 'localhost/job-image:1'
CONTEXTS = {'baseline': {'capabilities': {'drop': ['NET_RAW']}}, 'restricted': {**pods.RESTRICTED, 'runAsUser': 1000}}
CI = {'CI': 'true', 'GITLAB_CI': 'true', 'CI_SERVER_URL': 'https://gitlab.example.com', 'CI_PIPELINE_SOURCE': 'push',
      'CI_API_V4_URL': 'https://gitlab.example.com/api/v4', 'CI_PROJECT_URL': 'https://gitlab.example.com/group/site', 'CI_JOB_ID': '1',
      'CI_PIPELINE_ID': '1', 'CI_COMMIT_BEFORE_SHA': '0' * 40,
      'CI_PROJECT_ID': '1', 'CI_PROJECT_PATH': 'group/site', 'CI_PROJECT_DIR': gitlab.CHECKOUT, 'CI_DEFAULT_BRANCH': 'main',
      'CI_COMMIT_BRANCH': 'main', 'CI_COMMIT_REF_NAME': 'main', 'CI_COMMIT_REF_PROTECTED': 'true', 'HOME': '/builds',
      'CI_REPOSITORY_URL': '/builds/remotes/site.git', 'CI_JOB_TOKEN': 'job-token-0123456789'}
# What a merge request's pipeline has in place of a branch.
MERGE_REQUEST = {'CI_PIPELINE_SOURCE': 'merge_request_event', 'CI_MERGE_REQUEST_IID': '7', 'CI_MERGE_REQUEST_PROJECT_ID': '1',
                 'CI_MERGE_REQUEST_PROJECT_PATH': 'group/site', 'CI_MERGE_REQUEST_SOURCE_PROJECT_ID': '1',
                 'CI_MERGE_REQUEST_SOURCE_PROJECT_PATH': 'group/site', 'CI_MERGE_REQUEST_SOURCE_BRANCH_NAME': 'fix',
                 'CI_MERGE_REQUEST_TARGET_BRANCH_NAME': 'main', 'CI_COMMIT_REF_NAME': 'fix', 'CI_COMMIT_REF_PROTECTED': 'false'}
CLUSTER = None


def make_site(directory):
    """The project's repository, with the branch of a merge request that changes the policy."""
    site = pathlib.Path(directory)

    def git(*words):
        return subprocess.run(['git', '-c', 'init.defaultBranch=main', '-c', 'user.name=t', '-c', 'user.email=t@localhost', *words],
                              cwd=site, check=True, capture_output=True, text=True).stdout.strip()

    (site / '.agentic-ci').mkdir(parents=True)
    (site / '.agentic-ci/openshell-policy.yml').write_text('endpoints: []\n')
    (site / 'notes.txt').write_text('first\n')
    git('init', '-q')
    git('add', '-A')
    git('commit', '-qm', 'first')
    CI['CI_COMMIT_SHA'] = git('rev-parse', 'HEAD')
    git('checkout', '-qb', 'fix')
    (site / '.agentic-ci/openshell-policy.yml').write_text('not: a policy\n')
    (site / 'notes.txt').write_text('first\nchanged\n')
    git('commit', '-qam', 'second')
    MERGE_REQUEST['CI_COMMIT_SHA'] = git('rev-parse', 'HEAD')
    git('checkout', '-q', 'main')
    return site


class Jobs:
    numbers = iter(range(1, 1000))

    def job(self, script, event=None):
        """A job whose agent is this shell script, with its sources; and the script of its one stage."""
        variables, text = gitlab.component_job(ROOT / 'gitlab-component/templates/run/template.yml', {
            'path': '/usr/bin/agentic-ci', 'isolation': 'landlock', 'command': 'sh\n-c\n' + script})
        job = gitlab.Job(CLUSTER, self.level, next(Jobs.numbers), IMAGE, CONTEXTS[self.level], {**(event or CI), **variables})
        self.addCleanup(job.delete)
        self.assertEqual(job.sources(), 0, job.log())
        return job, f'cd {gitlab.CHECKOUT}\n{text}'

    def test_job(self):
        """Log and artifacts are as on other executors; the checkout, which all may write, is as it was."""
        job, text = self.job('echo "said by the agent: ${CI_JOB_TOKEN:-no token}"; echo more >>notes.txt')
        self.assertEqual(job.stage('step_script', text), 0, job.log())
        self.assertIn('said by the agent: no token\n', job.log())
        record = job.record()
        self.assertEqual((record['outcome']['kind'], record['isolation']['tier']), ('success', 'landlock'))
        self.assertIn('+more', job.artifact('agentic-ci-report/changes.patch'))
        self.assertEqual(job.artifact('notes.txt'), 'first\n')
        mode = CLUSTER.execute(self.level, job.name, 'stat', '-c', '%a', gitlab.CHECKOUT + '/notes.txt', container='helper').stdout
        self.assertEqual(mode, '666\n')  # By the runner's umask.

    @every
    def test_merge_request(self):
        """Its change is what the agent works on; the policy is the target branch's."""
        event = {name: value for name, value in CI.items() if name != 'CI_COMMIT_BRANCH'}
        job, text = self.job('cat notes.txt; echo more >>notes.txt', {**event, **MERGE_REQUEST})
        self.assertEqual(job.stage('step_script', text), 0, job.log())
        self.assertIn('\nfirst\nchanged\n', job.log())
        record = job.record()
        self.assertEqual((record['outcome']['kind'], record['isolation']['tier']), ('success', 'landlock'))
        self.assertEqual((record['policy']['commit'], record['event']['head_sha'], record['event']['number']),
                         (CI['CI_COMMIT_SHA'], MERGE_REQUEST['CI_COMMIT_SHA'], 7))

    @every
    def test_failure(self):
        job, text = self.job('exit 3')
        self.assertEqual(job.stage('step_script', text), 3, job.log())
        self.assertEqual(job.record()['outcome']['kind'], 'agent-failed')

    def test_cancelled(self):
        job, text = self.job('echo begun; sleep 600')
        script = job.start('step_script', text)
        CLUSTER.until(lambda: '\nbegun\n' in job.log(), 60)
        self.assertIn('sleep 600', job.processes())  # The control.
        job.cancel(script)
        self.assertEqual(job.ended(script), 143, job.log())
        self.assertNotIn('sleep 600', job.processes())
        outcome = job.record()['outcome']
        self.assertEqual((outcome['kind'], outcome['exit_code']), ('terminated', 143))
        left = CLUSTER.execute(self.level, job.name, 'find', '/tmp', '/builds', '-name', 'agentic-ci-scratch*', container='build')
        self.assertEqual(left.stdout, '')

    @every
    def test_two_jobs_share_nothing(self):
        marks = ('first-of-two', 'second-of-two')
        look = 'echo mark-%s; cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "; ls -R /builds; sleep 3'
        jobs = [self.job(look % mark) for mark in marks]
        scripts = [job.start('step_script', text) for job, text in jobs]
        for (job, _), script, mark, other in zip(jobs, scripts, marks, reversed(marks)):
            self.assertEqual(job.ended(script), 0, job.log())
            self.assertIn('mark-' + mark, job.log())
            self.assertNotIn(other, job.log())


@every
class AsRoot(Jobs, unittest.TestCase):
    level = 'baseline'


class Restricted(Jobs, unittest.TestCase):
    level = 'restricted'


class Main(unittest.TestProgram):
    """Starts the cluster before the first case."""

    def runTests(self):
        global CLUSTER
        if self.testLoader.errors:  # A name that is unknown: unittest says so without a cluster.
            return super().runTests()
        require(TESTBED)
        base = tempfile.mkdtemp(prefix='gitlab-')
        try:
            root = make_root(base + '/root', programs=['/usr/bin/bash', '/usr/bin/git'], files={
                '/usr/bin/agentic-ci': BINARY, '/srv/site': make_site(base + '/site'),
                '/usr/share/git-core': '/usr/share/git-core'}, links={'/usr/bin/git-upload-pack': 'git'})
            with Cluster(TESTBED, CACHE) as CLUSTER:
                CLUSTER.load(IMAGE, root)
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    list(pool.map(lambda level: CLUSTER.namespace(level, level), CONTEXTS))
                super().runTests()
        finally:
            shutil.rmtree(base, ignore_errors=True)


if __name__ == '__main__':
    BINARY, TESTBED, CACHE = (os.path.abspath(path) for path in sys.argv[1:4])
    use_programs(CACHE)
    Main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
