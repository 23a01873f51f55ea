# SPDX-License-Identifier: Apache-2.0
"""The agent's standard streams, as programs use and abuse them."""
import os
import subprocess

from harness import PROBE, Case, read

PYTHON = '/usr/bin/python3'
# Takes what it has written out of its own pipe, a little later each time. Once its errors are not read either, it is
# silent for good: a supervisor that waits for that output now waits forever. On some machines the supervisor reads each
# single byte sooner; of a MiB, which it reads in sixteen parts, there is always something left to take.
TAKE_BACK = '''
import array, fcntl, os, sys, termios, time
def waiting(fd):
    count = array.array('i', [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]
pipe = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)
size = fcntl.fcntl(1, 1031, 1 << 20)  # F_SETPIPE_SZ
writes, taken, end = 0, 0, time.monotonic() + 14
while time.monotonic() < end:
    os.write(1, b'x' * (1 if taken or writes > 40 else size))
    writes += 1
    time.sleep(taken % 40 * 5e-6)
    try: os.read(pipe, size)
    except BlockingIOError: continue
    taken += 1
    os.write(2, b'taken\\n' if taken == 1 else b'.')
    patience = time.monotonic() + 1
    while waiting(2) and time.monotonic() < patience: time.sleep(0.001)
    if waiting(2): break
time.sleep(1000)
'''


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

    def test_agent_that_takes_its_own_output_reaches_its_limits(self):
        self.feature('python3', os.path.exists(PYTHON), 'it reads the pipe')
        run = self.run_agent(PYTHON, '-c', TAKE_BACK, options=['--timeout', '20s'], code=124, kind='timed-out')
        self.assertIn('taken\n', read(run.report + '/agent.log'))

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
