#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GitLab's component in pipelines of consumer repositories, run by gitlab-ci-local on this host.

usage: component_test.py NODE GITLAB_CI_LOCAL BINARY [TEST...]

The component is a repository of its own, as it is published; its templates pin the built binary, which a server on loopback
has as a release. The agent's program and the jobs' images have stand-ins.
"""
import functools
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/credentials'))
from identity_service import ASK, AUDIENCES, Services, fill  # noqa: E402
from upstream import Upstream  # noqa: E402

NODE, PROGRAM, BINARY = (os.path.abspath(argument) for argument in sys.argv[1:4])
del sys.argv[1:4]
VERSION = re.search(r'kVersion = "([^"]+)"', (ROOT / 'runner/base/version.h').read_text())[1]
ASSET = f'agentic-ci-{VERSION}-linux-{os.uname().machine}'
KEY, JOB_TOKEN = 'sk-test-0123456789', 'job-token-0123456789'
HOST = 'gitlab.example.com'
POLICY = 'endpoints: []\n'
AGENT = r'''#!/bin/sh
[ "$1" = --version ] && exec echo '0.0.0 (stand-in)'
env >environment.seen
printf '{"findings":[{"rule":"typo","severity":"warning","message":"A typo.","path":"notes.txt","line":2,"suggestion":"right"}]}' >agentic-ci-findings.json
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","num_turns":1,"session_id":"s","usage":{"input_tokens":3,"output_tokens":4}}'
'''


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Component(unittest.TestCase):
    def setUp(self):
        # Not below /tmp or /var/tmp, wherever this checkout lies: a sandbox has its own, and the programs on the PATH are shown.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix='component-test-', dir='/srv' if os.geteuid() == 0 else ROOT / 'build'))
        self.addCleanup(shutil.rmtree, self.root)
        # In tier landlock, root's agent is another user, who may not be able to enter this checkout.
        self.root.chmod(0o755)
        self.write('home/.gitconfig', '[user]\nname = a\nemail = a@example.com\n[init]\ndefaultBranch = main\n'
                   f'[url "file://{self.root}/remotes/"]\ninsteadOf = ssh://git@{HOST}:22/\n'
                   '[uploadarchive]\nallowUnreachable = true\n[receive]\nadvertisePushOptions = false\n')
        self.write('bin/claude', AGENT).chmod(0o755)
        self.environment = {'PATH': f'{self.root}/bin:{os.path.dirname(NODE)}:{os.environ["PATH"]}',
                            'HOME': f'{self.root}/home', 'GIT_CONFIG_NOSYSTEM': '1'}
        self.component = self.publish()
        self.gitlab = 'http://127.0.0.1:9'
        self.state_url = None

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, *arguments, cwd):
        return subprocess.run(['git', *arguments], cwd=cwd, env=self.environment, check=True, capture_output=True,
                              text=True).stdout.strip()

    def commit_all(self, cwd, project):
        """Commits what is in `cwd`, as the project's main branch on the server."""
        self.git('init', '-q', cwd=cwd)
        self.git('add', '-A', cwd=cwd)
        self.git('commit', '-qm', 'x', cwd=cwd)
        (self.root / 'remotes' / project).parent.mkdir(parents=True, exist_ok=True)
        self.git('clone', '-q', '--bare', '.', str(self.root / 'remotes' / f'{project}.git'), cwd=cwd)
        (self.root / 'remotes' / project).symlink_to(f'{project.split("/")[1]}.git')
        self.git('remote', 'add', 'origin', f'git@{HOST}:{project}.git', cwd=cwd)
        self.git('update-ref', 'refs/remotes/origin/main', 'main', cwd=cwd)
        self.git('remote', 'set-head', 'origin', 'main', cwd=cwd)
        return self.git('rev-parse', 'HEAD', cwd=cwd)

    def publish(self):
        release = self.root / 'release' / f'v{VERSION}'
        release.mkdir(parents=True)
        shutil.copy(BINARY, release / ASSET)
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=release.parent))
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        digest = hashlib.sha256((release / ASSET).read_bytes()).hexdigest()
        shutil.copytree(ROOT / 'gitlab-component', self.root / 'component')
        for template in (self.root / 'component').glob('templates/*/template.yml'):
            text = template.read_text()
            self.assertIn("checksums='\n", text)
            text = text.replace("checksums='\n", f"checksums='\n      {digest}  {ASSET}\n")
            template.write_text(re.sub(r'default: "https://[^"]*/releases/download"',
                                       f'default: "http://127.0.0.1:{server.server_port}"', text))
        return self.commit_all(self.root / 'component', 'platform/agentic-ci')

    def consumer(self, pipeline, **files):
        """A repository whose branch `fix` changes notes.txt; `pipeline` is an example's name, or the text of the file."""
        self.site = self.root / 'site'
        if '\n' in pipeline:
            self.site.mkdir()
            (self.site / '.agentic-ci').mkdir()
            (self.site / '.agentic-ci/openshell-policy.yml').write_text(POLICY)
        else:
            shutil.copytree(ROOT / 'examples' / pipeline, self.site)
            pipeline = (self.site / '.gitlab-ci.yml').read_text()
        pipeline = pipeline.replace('GROUP/', 'platform/').replace('@COMMIT', f'@{self.component}')
        (self.site / '.gitlab-ci.yml').write_text(pipeline)
        (self.site / 'notes.txt').write_text('first\n')
        for name, text in files.items():
            (self.site / name).write_text(text)
        self.base = self.commit_all(self.site, 'acme/site')
        self.git('checkout', '-qb', 'fix', cwd=self.site)
        (self.site / 'notes.txt').write_text('first\nwrong\n')
        # What the merge request says about the policy does not count.
        (self.site / '.agentic-ci/openshell-policy.yml').write_text('endpoints: [evil.example:443]\n')
        self.git('commit', '-qam', 'change', cwd=self.site)
        self.head = self.git('rev-parse', 'HEAD', cwd=self.site)

    def serve_gitlab(self, files=None, **options):
        files = files or json.dumps([{'new_path': 'notes.txt', 'diff': '@@ -1 +1,2 @@\n first\n+wrong\n'}])
        service = subprocess.Popen([NODE, pathlib.Path(__file__).with_name('gitlab.mjs'), self.head, files,
                                    json.dumps(options)],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(service.stdout.close)
        self.addCleanup(service.wait)
        self.addCleanup(service.terminate)
        self.gitlab, self.state_url = (service.stdout.readline().strip() for _ in range(2))

    def state(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.state_url, timeout=60) as answer:
            state = json.load(answer)
        self.assertEqual(state['violations'], [])
        return state

    def notes(self):
        """The first notes of all discussions; what is not a discussion beside a line has no position."""
        state = self.state()
        return [discussion['notes'][0] for discussion in state['discussions']]

    def id_token(self, variables):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.state_url, json.dumps(variables).encode(), timeout=60) as answer:
            return answer.read().decode()

    def pipeline(self, *arguments, source='merge_request_event', cwd=None, **variables):
        variables = {'GITLAB_CI': 'true', 'CI_PIPELINE_SOURCE': source, 'CI_PROJECT_ID': '1217', 'CI_JOB_TOKEN': JOB_TOKEN,
                     'CI_REPOSITORY_URL': f'file://{self.root}/remotes/acme/site.git', 'CI_DEFAULT_BRANCH': 'main',
                     'CI_COMMIT_SHA': self.git('rev-parse', 'HEAD', cwd=cwd or self.site), 'CI_PROJECT_PATH': 'acme/site',
                     'CI_API_V4_URL': f'{self.gitlab}/api/v4', 'CI_SERVER_URL': self.gitlab, 'GITLAB_USER_LOGIN': 'jo',
                     **variables}
        if source == 'merge_request_event':
            variables = {'CI_MERGE_REQUEST_IID': '7', 'CI_MERGE_REQUEST_TARGET_BRANCH_NAME': 'main',
                         'CI_MERGE_REQUEST_PROJECT_ID': '1217', 'CI_MERGE_REQUEST_SOURCE_PROJECT_ID': '1217',
                         'CI_MERGE_REQUEST_PROJECT_PATH': 'acme/site', 'CI_MERGE_REQUEST_SOURCE_BRANCH_NAME': 'fix',
                         'CI_MERGE_REQUEST_SOURCE_PROJECT_PATH': 'acme/site', **variables}
        if self.state_url:  # gitlab-ci-local makes none for `id_tokens:`.
            variables.setdefault('AGENTIC_CI_ID_TOKEN', self.id_token(variables))
        command = [NODE, PROGRAM, '--force-shell-executor', '--shell-isolation', *arguments]
        for name, value in variables.items():
            command += ['--variable', f'{name}={value}']
        environment = {**self.environment, 'GCL_IGNORE_PREDEFINED_VARS': ','.join(variables)}
        run = subprocess.run(command, cwd=cwd or self.site, env=environment, capture_output=True, text=True, timeout=600)
        self.output = re.sub(r'\x1b\[[0-9;]*m', '', run.stdout + run.stderr)
        return run.returncode

    def report(self, job='agentic-ci'):
        return self.site / '.gitlab-ci-local/artifacts' / job / 'agentic-ci-report'

    def record(self, job='agentic-ci'):
        return json.loads((self.report(job) / 'run.json').read_text())

    def include(self, component='run', **inputs):
        """A pipeline that includes the component with `inputs`, each a value of YAML."""
        given = {'job-image': '"x"', **{name.replace('_', '-'): value for name, value in inputs.items()}}
        lines = ''.join(f'      {name}: {value}\n' for name, value in given.items())
        return f'include:\n  - component: $CI_SERVER_FQDN/GROUP/agentic-ci/{component}@COMMIT\n    inputs:\n{lines}'

    def test_the_release_is_verified_and_inputs_arrive_as_they_are(self):
        prompt = 'a $(id) `id` $CI_JOB_TOKEN ${HOME} "q" \'q\' \\\\ end'
        self.consumer(self.include(prompt=json.dumps(prompt), isolation='landlock', pids='512', plan_only='false',
                                   command='"sh\\n-c\\ncat >prompt.seen; env >environment.seen; cat .git/config >config.seen"'))
        self.assertEqual(self.pipeline(), 0, self.output)
        self.assertIn('json schema validated', self.output)
        patch = (self.report() / 'changes.patch').read_text()
        self.assertIn('+' + prompt + '\n', patch)
        for secret in (JOB_TOKEN, 'CI_JOB', 'CI_PROJECT', 'GITLAB', 'AGENTIC_CI_INPUT'):
            self.assertNotIn(secret, patch.replace(prompt, ''))
        record = self.record()
        self.assertEqual(record['isolation']['tier'], 'landlock')
        self.assertEqual(record['policy']['commit'], self.base)
        self.assertEqual([limit['limit'] for limit in record['limits'] if limit['name'] == 'pids'], [512])
        for name in ('gl-code-quality-report.json', 'report.html'):
            self.assertTrue((self.report() / name).exists())

    def test_a_binary_that_is_not_the_pinned_one_is_not_run(self):
        self.consumer(self.include(command='"true"'))
        release = self.root / 'release' / f'v{VERSION}' / ASSET
        release.write_text('#!/bin/sh\necho changed and run\n')
        self.assertNotEqual(self.pipeline(), 0)
        self.assertIn('is not what this commit of the component pins', self.output)
        self.assertIn('FAIL 77', self.output)
        self.assertNotIn('changed and run', self.output)

    def test_a_version_without_a_checksum_is_refused_and_a_path_needs_none(self):
        self.consumer(self.include(command='"true"', version='9.9.9'))
        self.assertNotEqual(self.pipeline(), 0)
        self.assertIn('has no checksum in this commit of the component', self.output)
        path = self.site / '.gitlab-ci.yml'
        path.write_text(path.read_text() + f'      path: {BINARY}\n')
        self.assertEqual(self.pipeline(), 0, self.output)
        path.write_text(path.read_text().replace(BINARY, '/nowhere/agentic-ci'))
        self.assertNotEqual(self.pipeline(), 0)
        self.assertIn('no executable file /nowhere/agentic-ci', self.output)

    def test_a_host_that_gives_too_little_is_explained(self):
        binary = self.write('bin/too-little', '#!/bin/sh\n[ "$1" = action ] && exit 69\necho "asked: $*"\n')
        binary.chmod(0o755)
        self.consumer(self.include(path=binary))
        self.assertNotEqual(self.pipeline(), 0)
        self.assertIn('asked: doctor --workdir .', self.output)
        self.assertIn('FAIL 69', self.output)

    def test_inputs_are_checked_when_the_pipeline_is_made(self):
        self.consumer(self.include(command='"true"'))
        path = self.site / '.gitlab-ci.yml'
        text = path.read_text()
        self.assertEqual(self.pipeline('--list'), 0, self.output)
        for line in ('isolation: none', 'timeout: soon', 'memory: 4GB', 'pids: many', 'apply: perhaps', 'version: latest',
                     'max-cost: free', 'report-dir: "a b"', 'job-name: "$(id)"'):
            path.write_text(f'{text}      {line}\n')
            self.assertNotEqual(self.pipeline('--list'), 0, line)
            self.assertIn(line.split(':')[0], self.output)
        path.write_text(text.replace('job-image', 'tmp').replace('      tmp: "x"\n', ''))
        self.assertNotEqual(self.pipeline('--list'), 0)
        self.assertIn('job-image', self.output)

    def test_two_of_them_share_a_pipeline(self):
        other = self.include(job_name='"second"', command='"false"', allow_failure='true').split('\n', 1)[1]
        self.consumer(self.include(job_name='"first"', command='"true"') + other)
        self.assertEqual(self.pipeline(), 0, self.output)
        self.assertEqual(self.record('first')['outcome']['kind'], 'success')
        self.assertEqual(self.record('second')['outcome']['kind'], 'agent-failed')

    def test_no_input_is_part_of_a_script(self):
        for name in ('run', 'post', 'forks'):
            text = (ROOT / 'gitlab-component/templates' / name / 'template.yml').read_text()
            script = text[text.index('\n  script:'):].split('\n  artifacts:')[0]
            self.assertNotIn('$[[', script)
            for value in re.findall(r'\$\[\[ inputs\.[a-z-]+ \]\].*', text[text.index('\n  variables:'):text.index('\n  script:')]):
                self.assertIn('expand: false', value)

    def test_the_components_own_pipeline_passes_and_releases_only_tags(self):
        self.site = self.root / 'component'
        self.assertEqual(self.pipeline(source='push', TEST_IMAGE='x', RELEASE_IMAGE='x', CI_COMMIT_BRANCH='main',
                                       CI_PROJECT_PATH='platform/agentic-ci'), 0, self.output)
        for job in ('test-run', 'check-report'):
            self.assertRegex(self.output, rf'PASS +{job}')
        self.assertNotIn('Releasing', self.output)
        self.assertRegex(self.output, 'test-post')

    def test_a_merge_request_is_reviewed_once_by_a_job_that_never_ran_the_agent(self):
        self.consumer('gitlab-merge-request')
        self.serve_gitlab(pipeline=31)
        self.assertEqual(self.pipeline('--list', source='push', CI_COMMIT_BRANCH='fix'), 0, self.output)
        self.assertNotRegex(self.output, r'(?m)^agentic-ci')
        for _ in range(2):
            status = self.pipeline(ANTHROPIC_API_KEY=KEY, GITLAB_TOKEN='glpat-bot', CI_PIPELINE_ID='31')
            self.assertEqual((status, self.record()['outcome']['kind']), (0, 'success'), self.output)
            self.assertRegex(self.output, 'PASS +agentic-ci-post')
            # Where the report's page is. The note links to addresses with https alone, which the service here has none of.
            self.assertTrue(any('/pipelines/31/jobs' in request for request in self.state()['requests']), self.state()['requests'])
            notes = self.notes()
            self.assertEqual(len([note for note in notes if not note.get('position')]), 1, notes)
            beside = [note['body'] for note in notes if note.get('position')]
            self.assertEqual(len(beside), 1)
            self.assertIn('suggestion:-0+0\nright', beside[0])
        self.assertEqual(self.record()['policy']['commit'], self.base)
        seen = (self.report() / 'changes.patch').read_text()
        self.assertIn('environment.seen', seen)
        for secret in (KEY, JOB_TOKEN, 'glpat-bot'):
            self.assertNotIn(secret, seen + self.output)

    def test_a_review_without_a_key_exchanges_the_jobs_identity(self):
        services = Services()
        at = f'https://host.openshell.internal:{Upstream(str(self.root)).listen(services.answer)}'
        example = ROOT / 'examples/gitlab-keyless'
        pipeline = (example / '.gitlab-ci.yml').read_text()
        self.assertIn(f'ANTHROPIC_ID_TOKEN:\n      aud: {AUDIENCES["anthropic"]}\n', pipeline)
        self.consumer('gitlab-keyless', **{'.agentic-ci/config.yml': fill((example / '.agentic-ci/config.yml').read_text(), at)})
        path = self.site / '.gitlab-ci.yml'
        path.write_text(path.read_text().replace('provider: anthropic ', f'ca-file: {self.root}/ca.pem\n      provider: anthropic '))
        self.write('bin/claude', AGENT.replace('printf', ASK + 'printf')).chmod(0o755)
        self.serve_gitlab()
        job = {'GITLAB_TOKEN': 'glpat-bot', 'ANTHROPIC_BASE_URL': at}
        self.assertNotEqual(self.pipeline(**job), 0, self.output)
        outcome = self.record()['outcome']
        self.assertEqual((outcome['exit_code'], services.exchanges, services.api), (78, [], []))
        self.assertIn('ANTHROPIC_ID_TOKEN', outcome['reason'])
        # The job still has the token that says who started it.
        self.assertEqual(self.pipeline('--preview'), 0, self.output)
        self.assertRegex(self.output, r'AGENTIC_CI_ID_TOKEN:\s+aud: agentic-ci\s+SIGSTORE_ID_TOKEN:\s+aud: sigstore\s+ANTHROPIC_ID_TOKEN:\s+aud: ')
        # gitlab-ci-local makes none for `id_tokens:`.
        job['ANTHROPIC_ID_TOKEN'] = services.mint(AUDIENCES['anthropic'], seconds=3600)
        status = self.pipeline(**job)
        self.assertEqual((status, self.record()['outcome']['kind']), (0, 'success'), self.output)
        self.assertEqual((services.exchanges, [target for target, _ in services.api]), (['anthropic'], ['/v1/messages']))
        self.assertEqual(len([note for note in self.notes() if note.get('position')]), 1)
        seen = (self.report() / 'changes.patch').read_text()
        self.assertIn('+the model: 200', seen)
        for secret in ('5ecret', job['ANTHROPIC_ID_TOKEN']):
            self.assertNotIn(secret, seen + self.output)

    def test_a_newcomer_gets_a_review_with_what_config_init_writes(self):
        """The README's four steps, but for the release, which is pinned by hand here."""
        fresh = self.root / 'fresh'
        fresh.mkdir()
        self.git('init', '-q', cwd=fresh)
        self.git('remote', 'add', 'origin', f'git@{HOST}:acme/site.git', cwd=fresh)
        subprocess.run([BINARY, 'config', 'init', '--forge', 'gitlab'], cwd=fresh, env=self.environment, check=True, capture_output=True)
        shutil.rmtree(fresh / '.git')
        self.consumer(str(fresh))
        self.serve_gitlab()
        status = self.pipeline(ANTHROPIC_API_KEY=KEY, GITLAB_TOKEN='glpat-bot')
        self.assertEqual((status, self.record()['outcome']['kind']), (0, 'success'), self.output)
        self.assertEqual(len([note for note in self.notes() if note.get('position')]), 1)

    def test_without_a_token_findings_are_in_the_log_and_the_pipeline_passes(self):
        self.consumer('gitlab-merge-request')
        self.serve_gitlab()
        self.assertEqual(self.pipeline(ANTHROPIC_API_KEY=KEY), 0, self.output)
        self.assertRegex(self.output, 'WARN +agentic-ci-post')
        self.assertIn('notes.txt:2: warning: A typo.', self.output)
        self.assertEqual(self.notes(), [])
        self.assertEqual(len(json.loads((self.report() / 'gl-code-quality-report.json').read_text())), 1)

    def test_a_merge_request_from_a_fork_gets_no_secret(self):
        self.consumer('gitlab-merge-request')
        self.assertNotEqual(self.pipeline(ANTHROPIC_API_KEY=KEY, CI_MERGE_REQUEST_SOURCE_PROJECT_ID='99'), 0)
        self.assertEqual(self.record()['outcome']['kind'], 'untrusted')
        self.assertIn('from a fork', self.record()['outcome']['reason'])

    def test_what_a_fork_found_is_posted_by_a_pipeline_of_the_target_project(self):
        self.consumer('gitlab-forks')
        (self.site / 'notes.txt').write_text('first\nwrong\there \n')
        self.git('commit', '-qam', 'more', cwd=self.site)
        self.head = self.git('rev-parse', 'HEAD', cwd=self.site)
        artifacts = self.site / '.gitlab-ci-local/artifacts/check'
        self.serve_gitlab(source=99, artifacts=str(artifacts))
        fork = {'CI_PROJECT_ID': '99', 'CI_PROJECT_PATH': 'eve/site', 'CI_MERGE_REQUEST_SOURCE_PROJECT_ID': '99',
                'CI_MERGE_REQUEST_SOURCE_PROJECT_PATH': 'eve/site',
                'CI_MERGE_REQUEST_PROJECT_URL': f'file://{self.root}/remotes/acme/site'}
        self.assertEqual(self.pipeline(**fork), 0, self.output)
        self.assertNotRegex(self.output, r'(?m)^post ')
        record = self.record('check')
        self.assertEqual((record['trust']['level'], record['policy']['commit']), ('untrusted', self.base))
        kept = self.root / 'kept'
        artifacts.rename(kept)  # The target project's pipeline has nothing of the fork's.
        self.git('checkout', '-q', 'main', cwd=self.site)
        schedule = {'source': 'schedule', 'CI_COMMIT_BRANCH': 'main', 'CI_COMMIT_REF_PROTECTED': 'true'}
        self.assertNotEqual(self.pipeline('post', **schedule), 0)
        self.assertIn('GITLAB_TOKEN is not set', self.output)
        self.assertEqual(self.pipeline('post', **schedule, GITLAB_TOKEN='glpat-bot'), 0, self.output)
        self.assertIn('!7: the report cannot be had', self.output)
        self.assertEqual(self.notes(), [])
        kept.rename(artifacts)
        for _ in range(2):
            self.assertEqual(self.pipeline('post', **schedule, GITLAB_TOKEN='glpat-bot'), 0, self.output)
            self.assertIn('!7: the report of job 41', self.output)
            self.assertNotIn('glpat-bot', self.output)
            notes = self.notes()
            self.assertEqual(len(notes), 2, notes)
            beside, = [note['body'] for note in notes if note.get('position')]
            self.assertIn('A tab.', beside)

    def test_forks_neither_fill_the_disk_nor_crowd_each_other_out(self):
        """The script of the component `forks`, with a stand-in for GitLab whose answers have no length."""
        merge_requests = [{'iid': iid, 'sha': f'sha{iid}', 'source_project_id': 9 if iid >= 2020 else 1, 'target_project_id': 1}
                          for iid in range(2000, 2023)]
        large = b'{"large": "' + b'x' * (4 << 20) + b'"}'

        class GitLab(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path, _, query = self.path.partition('?')
                iid = int((re.search(r'/(20\d\d)(/|$)', path) or [0, 0])[1])
                if path.endswith('/merge_requests'):
                    size, page = (int(re.search(rf'\b{name}=(\d+)', query)[1]) for name in ('per_page', 'page'))
                    answer = merge_requests[size * (page - 1):size * page]
                elif path.endswith('/pipelines'):
                    answer = [{'id': iid, 'sha': f'sha{iid}', 'project_id': 9}]
                elif path.endswith('/jobs'):
                    answer = [{'id': iid, 'name': 'agentic-ci', 'artifacts_file': {}}]
                else:
                    answer = iid
                self.send_response(200)
                self.end_headers()
                try:
                    self.wfile.write(large if (iid, path.split('/')[-1]) in ((2020, 'run.json'), (2021, 'changes.patch'))
                                     else json.dumps(answer).encode())
                except OSError:
                    pass  # The other side has had enough.

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), GitLab)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        text = (ROOT / 'gitlab-component/templates/forks/template.yml').read_text()
        script = text[text.index('      # agentic-ci: looks for the reports'):]
        self.assertRegex(script, r'blocks=204800\b(?s:.*)blocks=102400\b')
        poster = self.write('poster', '#!/bin/sh\necho "posted $AGENTIC_CI_INPUT_NUMBER:" $(cat "$AGENTIC_CI_INPUT_REPORT_DIR"/*)\n'
                            f'ls {self.root}/temporary/*\n')
        poster.chmod(0o755)
        (self.root / 'temporary').mkdir()
        for blocks, had in ((2048, ['2022']), (204800, ['2020', '2021', '2022'])):
            bounded = script.replace('204800', str(blocks)).replace('102400', str(blocks // 2))
            for shell in (['sh'], ['bash'], ['bash', '--posix']):
                run = subprocess.run(
                    [*shell, '-euc', f'fail() {{ echo "$2"; exit "$1"; }}\nbinary={poster}\n' + bounded],
                    env={**self.environment, 'TMPDIR': f'{self.root}/temporary', 'CI_PROJECT_ID': '1', 'GITLAB_TOKEN': 't',
                         'CI_API_V4_URL': f'http://127.0.0.1:{server.server_port}', 'AGENTIC_CI_RUN_JOB': 'agentic-ci',
                         'AGENTIC_CI_INPUT_REPORT_DIR': 'report'}, cwd=self.root, capture_output=True, text=True)
                self.assertEqual(run.returncode, 0, run.stdout[-500:] + run.stderr)
                self.assertEqual(re.findall(r'(?m)^posted (\d+):', run.stdout), had, run.stderr)
                self.assertEqual(re.findall(r'(?m)^!(\d+): the report cannot be had', run.stdout),
                                 [iid for iid in ('2020', '2021') if iid not in had])
                self.assertEqual(re.findall(r'(?m)^(20\d\d)$', run.stdout), had)  # Reports of others are not kept.

    def test_the_example_of_a_schedule_runs_for_it_alone(self):
        self.consumer('gitlab-scheduled')
        self.git('push', '-q', f'{self.root}/remotes/acme/site.git', 'fix', cwd=self.site)
        self.git('checkout', '-q', 'main', cwd=self.site)
        self.serve_gitlab(git=f'{self.root}/remotes/acme/site.git')
        self.assertEqual(self.pipeline('--list', source='push', CI_COMMIT_BRANCH='main'), 0, self.output)
        self.assertNotRegex(self.output, r'(?m)^(maintenance|propose) ')
        for _ in range(2):  # The second time it is the same merge request.
            status = self.pipeline(source='schedule', CI_COMMIT_BRANCH='main', ANTHROPIC_API_KEY=KEY, GITLAB_TOKEN='glpat-bot')
            self.assertEqual((status, self.record('maintenance')['outcome']['kind']), (0, 'success'), self.output)
            proposal, = self.state()['proposals']
            self.assertEqual((proposal['title'], proposal['target_branch'], proposal['labels'], proposal['state']),
                             ('Mend a slow or flaky test', 'main', ['maintenance'], 'opened'))
            changed = self.git('diff', '--name-only', 'main', proposal['source_branch'],
                               cwd=f'{self.root}/remotes/acme/site.git').split()
            self.assertIn('environment.seen', changed)

    def test_the_example_of_a_fleet_asks_its_gateway_with_the_certificate(self):
        """OpenShell's command line has a stand-in, whose gateway is down; tests/openshell has the real one."""
        self.consumer('gitlab-fleet')
        place = pathlib.Path(tempfile.mkdtemp(prefix='component-tls-'))
        self.addCleanup(shutil.rmtree, place)
        pipeline = self.site / '.gitlab-ci.yml'
        pipeline.write_text(pipeline.read_text().replace('/tmp/openshell-tls', str(place / 'tls')))
        self.write('bin/openshell', f'''#!/bin/sh
[ "$1" = --version ] && exec echo openshell 0.0.112
echo "$@" >>{place}/asked
cat "$XDG_CONFIG_HOME"/openshell/gateways/*/metadata.json "$XDG_CONFIG_HOME"/openshell/gateways/*/mtls/* >>{place}/given
echo 'Error: tcp connect error' >&2
exit 1
''').chmod(0o755)
        files = {name: str(self.write(f'variables/{name}', f'the {name}\n')) for name in ('ca', 'certificate', 'key')}
        self.serve_gitlab()
        status = self.pipeline(ANTHROPIC_API_KEY=KEY, OPENSHELL_CA=files['ca'], OPENSHELL_CERTIFICATE=files['certificate'],
                               OPENSHELL_KEY=files['key'])
        self.assertEqual((status != 0, self.record()['outcome']['exit_code']), (True, 75), self.output)
        self.assertIn("hint: openshell --gateway-endpoint 'https://openshell.example.com:443' status", self.output)
        given = (place / 'given').read_text()
        for text in ('https://openshell.example.com:443', 'the ca', 'the certificate', 'the key'):
            self.assertIn(text, given)
        self.assertIn('status -o json', (place / 'asked').read_text())
        self.assertNotIn(KEY, given + (place / 'asked').read_text())


if __name__ == '__main__':
    unittest.main(verbosity=2)
