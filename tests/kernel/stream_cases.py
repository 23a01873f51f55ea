# SPDX-License-Identifier: Apache-2.0
"""The agent's standard streams, as programs use and abuse them."""
import os
import subprocess

from harness import PROBE, Case


class Streams(Case):
    def test_output_and_errors_arrive_in_the_log(self):
        run = self.shell('echo to-output; echo to-errors >&2')
        log = open(run.report + '/agent.log').read()
        self.assertIn('to-output', log)
        self.assertIn('to-errors', log)

    def test_last_words_are_kept(self):
        for _ in range(5):
            run = self.shell('printf "no newline at the end"')
            self.assertIn('no newline at the end', run.out)

    def test_bytes_that_are_no_text_do_no_harm(self):
        run = self.shell(r'printf "\377\376 caf\351 \000 \033[31mred\033[0m\n"; exit 0')
        self.assertIn('red', run.out)
        open(run.report + '/run.json', encoding='utf-8').read()
        open(run.report + '/report.html', encoding='utf-8').read()

    def test_64_mib_of_output_pass(self):
        run = self.run_agent(PROBE, 'write', '60', checkout=os.path.dirname(PROBE))
        output = [limit for limit in run.record['limits'] if limit['name'] == 'output'][0]
        self.assertEqual((output['used'], output['fired']), (60 << 20, False))
        self.assertLess(len(run.raw), 61 << 20)

    def test_output_written_after_a_background_child_kept_it_open(self):
        run = self.shell('sleep 1000 & echo done')  # A run of the tests ends long before that.
        self.assertIn('done', run.out)

    def test_program_that_closes_its_streams_runs_on(self):
        run = self.shell('exec >&- 2>&- <&-; sleep 0.3; touch made; exit 5', code=5)
        self.assertIn('made', open(run.report + '/changes.json').read())

    def test_input_is_empty_and_never_the_runners(self):
        process = self.start(['cat'], stdin=subprocess.PIPE)
        process.stdin.write(b'of the runner\n')
        process.stdin.flush()
        run = self.finish(process)
        self.assertEqual((run.code, run.out), (0, ''))

    def test_agent_that_never_reads_its_prompt_ends(self):
        self.run_agent('true', options=['--prompt', 'x' * 100_000])

    def test_reader_that_went_away_does_not_end_the_run(self):
        line, report = self.command(['sh', '-c', 'for i in $(seq 3000); do echo $i line; done; exit 4'])
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.close()
        self.assertEqual(process.wait(60), 4)
        self.assertIn('3000 line', open(report + '/agent.log').read())

    def test_workflow_commands_of_the_agent_are_harmless_in_the_log_of_a_job(self):
        script = 'echo "::set-env name=X::y"; echo "##[error]no"; echo "::add-mask::z" >&2'
        commands = lambda run: [line for line in (run.out + run.err).splitlines() if line.startswith(('::', '##['))]
        self.assertEqual(len(commands(self.shell(script))), 3)  # Control: nothing reads commands there.
        policy = self.policy('endpoints: []\n')
        job = self.shell(script, env={'CI': 'true'}, options=['--policy', policy, '--policy-ref', 'main'])
        self.assertIn('set-env', job.out)
        self.assertEqual(commands(job), [])

    def test_json_prints_the_record_alone_on_standard_output(self):
        import json
        run = self.run_agent('echo', 'agent says', options=['--json'])
        self.assertEqual(json.loads(run.out)['outcome']['kind'], 'success')
        self.assertIn('agent says', run.err)
