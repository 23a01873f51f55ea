# SPDX-License-Identifier: Apache-2.0
"""A user's program, in Python. usage: scenario.py AGENTIC-CI [COMMAND]   In a checkout; with COMMAND it starts that and waits to be killed."""
import asyncio
import sys

import agentic_ci


async def main():
    async with agentic_ci.Server(sys.argv[1]) as server:
        async with await server.create(name='one') as box:
            if sys.argv[2:]:
                await box.start(sys.argv[2])
                print('holds', flush=True)
                await asyncio.sleep(1000)
            # Output comes as it is written, and input goes to it.
            echo = await box.start('while read -r x; do echo "got $x"; done; echo end >&2; exit 3', stdin=True)
            await echo.write(b'first\n')
            async for stream, data in echo:
                assert (stream, data) == ('stdout', b'got first\n'), (stream, data)
                break
            await echo.write(b'second\n', end=True)
            result = await echo.wait()
            assert (result.status, result.reason, result.stdout, result.stderr) == (3, 'exit', b'got second\n', b'end\n'), result
            # More than any window.
            result = await box.exec(['cat'], input=b'\xff' * 5_000_000)
            assert result.stdout == b'\xff' * 5_000_000
            result = await box.exec('echo "$x $PWD"', env={'x': "it's"}, directory='/tmp')
            assert result.stdout == b"it's /tmp\n", result
            # Ends by others.
            assert (await box.exec('sleep 1000', timeout='1s')).reason == 'timeout'
            command = await box.start('echo runs; sleep 1000')
            async for _ in command:
                break
            await command.cancel()
            assert (await command.wait()).reason == 'cancelled'
            waiting = asyncio.ensure_future(box.exec('echo runs; sleep 1000', on_output=lambda *_: waiting.cancel()))
            try:
                await waiting
                raise AssertionError('was not cancelled')
            except asyncio.CancelledError:
                pass
            # Files.
            for size in (3, 20_000_000):
                await box.put(f'/tmp/new/{size}', b'\xff\0\n' + b'x' * (size - 3), executable=True)
                assert len(await box.get(f'/tmp/new/{size}')) == size
            result = await box.exec('ls -l /tmp/new')
            assert result.stdout.count(b'-rwx') == 2, result
            result = await box.exec('echo changed > a.txt')
            assert [dict(one) for one in result.changes] == [{'kind': 'modified', 'path': 'a.txt'}], result
            changes, patch = await box.diff()
            assert changes == result.changes and b'+changed' in patch
            await box.snapshot(tag='scenario')
            await box.reset()
            assert (await box.diff()) == ([], b'')
            await box.restore('scenario')
            assert (await box.get('a.txt')) == b'changed\n'
            # Requests.
            events = box.events()
            first = asyncio.ensure_future(anext(events))
            while not first.done():  # The first may be earlier than the server sends them.
                result = await box.exec('curl -s -m 20 http://refused.invalid/')
                assert [one['host'] for one in result.refused] == ['refused.invalid'], result
            assert 'refused.invalid' in str(await first)
            await events.aclose()
            # Errors.
            try:
                await server.sandbox('none').exec('true')
                raise AssertionError('there is one')
            except agentic_ci.Error as error:
                assert (error.exit_code, error.kind, error.hint) == (66, 'not_found', 'agentic-ci sandbox list'), vars(error)
            assert (await box.apply())['files'] == 1
            assert [one['name'] for one in await server.list()] == ['one']
        assert await server.list() == []
    try:
        await server.list()
        raise AssertionError('the server goes on')
    except agentic_ci.ServerEnded:
        pass
    print('done')


asyncio.run(main())
