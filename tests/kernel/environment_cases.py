# SPDX-License-Identifier: Apache-2.0
"""What of the host's environment, arguments and credentials an agent can see; who it is."""
import os
import subprocess

from harness import ROOT, SCRATCH, TIER, Case, only_in

# In no argument of any process: tier landlock shows those of all.
HIDDEN = 'hidden-' + os.urandom(8).hex()
FAKE = {name: f'{HIDDEN}-{i}' for i, name in enumerate((
    'GITHUB_TOKEN', 'GH_TOKEN', 'ACTIONS_RUNTIME_TOKEN', 'ACTIONS_ID_TOKEN_REQUEST_TOKEN',
    'ACTIONS_ID_TOKEN_REQUEST_URL', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'GOOGLE_API_KEY', 'GEMINI_API_KEY', 'NPM_TOKEN',
    'NODE_AUTH_TOKEN', 'CI_JOB_TOKEN', 'DOCKER_AUTH_CONFIG', 'VAULT_TOKEN', 'DATABASE_URL',
    'SSH_AUTH_SOCK', 'LD_PRELOAD', 'BASH_ENV', 'GIT_ASKPASS'))}
LOOK = 'env; cat /proc/*/environ /proc/*/cmdline /proc/self/auxv 2>/dev/null | tr "\\0" "\\n"; true'


class Environment(Case):
    def test_no_variable_of_the_host_enters(self):
        run = self.shell(LOOK, env=FAKE)
        self.assertIn('OPENSHELL_SANDBOX=1', run.out)
        self.assertNotIn(HIDDEN, run.out)

    def test_a_place_that_the_agent_cannot_come_to_is_not_taken(self):
        closed = self.dir + '/closed/temp'
        os.makedirs(closed)
        os.chmod(self.dir + '/closed', 0o700)
        run = self.shell('echo more >>README.md && touch "$TMPDIR/f" && cat README.md; echo place=$TMPDIR',
                         env={'TMPDIR': closed, 'RUNNER_TEMP': SCRATCH})
        self.assertIn('hello\nmore\n', run.out)
        if TIER == 'landlock':
            self.assertTrue(run.values()['place'].startswith((SCRATCH if ROOT else closed) + '/'), run.out)

    def test_control_sees_what_the_sandbox_hides(self):
        out = subprocess.run(['sh', '-c', 'env'], env=dict(FAKE, PATH='/usr/bin:/bin', LD_PRELOAD=''),
                             capture_output=True, text=True).stdout
        self.assertGreaterEqual(out.count(HIDDEN), 20)

    def test_nothing_of_the_environment_is_in_the_report(self):
        run = self.shell('env', env=FAKE)
        for name in os.listdir(run.report):
            self.assertNotIn(HIDDEN, open(f'{run.report}/{name}', errors='replace').read(), name)

    def test_secret_is_a_placeholder_inside(self):
        run = self.shell(LOOK + '; echo key=$ANTHROPIC_API_KEY', env=FAKE,
                         options=['--secret', 'ANTHROPIC_API_KEY@api.example.com'])
        self.assertNotIn(HIDDEN, run.out)
        self.assertTrue(run.values()['key'])

    @only_in('namespaces')
    def test_arguments_of_the_runner_are_not_visible(self):
        run = self.shell(LOOK, options=['--env', 'PLAIN=given-' + self.marker,
                                        '--prompt', 'prompt-' + self.marker])
        self.assertIn('PLAIN=given-', run.out)
        self.assertNotIn('prompt-' + self.marker, run.out)
        self.assertNotIn('--report-dir', run.out)

    @only_in('namespaces')
    def test_first_process_cannot_be_looked_into(self):
        run = self.shell('cat /proc/1/environ /proc/1/cmdline 2>/dev/null | tr -d "\\0"; ls /proc/1/fd/ 2>/dev/null;'
                         'readlink /proc/1/exe /proc/1/root /proc/1/cwd; cat /proc/1/maps 2>/dev/null; echo end')
        self.assertEqual(run.out.strip(), 'end')

    def test_agent_has_its_streams_and_no_other_descriptor(self):
        run = self.shell('ls /proc/self/fd | grep -v "^[0123]$"; echo end')
        self.assertEqual(run.out.strip(), 'end')

    @only_in('namespaces')
    def test_agent_is_the_sandbox_user_without_groups_or_core_dumps(self):
        run = self.shell('id -un; id -G; ulimit -c; hostname; echo $HOME; grep Cap /proc/self/status')
        lines = run.out.split()
        self.assertEqual(lines[:5], ['sandbox', '1000', '0', 'sandbox', '/sandbox'])
        self.assertEqual(set(lines[6::2]), {'0' * 16})

    @only_in('namespaces')
    def test_policy_names_the_user_inside(self):
        # The second is what an id without a mapping shows as: root's own, before it becomes the agent's.
        for user, group in ((2345, 2346), (65534, 65534)):
            policy = self.policy(f'version: 1\nprocess: {{run_as_user: "{user}", run_as_group: "{group}"}}\n')
            run = self.shell('id -u; id -g; touch f && stat -c %u:%g f', options=['--policy', policy])
            self.assertEqual(run.out.split(), [str(user), str(group), f'{user}:{group}'])

    def test_prompt_reaches_the_command_as_input_only(self):
        run = self.run_agent('cat', options=['--prompt', 'words of the prompt'])
        self.assertIn('words of the prompt', run.out)
