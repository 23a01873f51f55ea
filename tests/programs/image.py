# SPDX-License-Identifier: Apache-2.0
"""Harbor's environment of agentic-ci in an image of busybox. usage: image.py AGENTIC-CI OPTIONS"""
import asyncio
import json
import sys

from environment import PLACE, construct


async def main(program, options):
    environment = construct(program, 'FROM a\nENV A=b\nWORKDIR /app\nCOPY file /app/\nRUN echo "$A" >run\n', files={'file': 'text'}, **options)
    await environment.start(False)
    try:
        done = await environment.exec('cat file run; /opt/tool; ls /usr/bin/python3')
        assert done.stdout == 'textb\ntool of the image\n' and done.return_code == 1, done
        await environment.download_dir('/app', PLACE / 'app')
        assert sorted(path.name for path in (PLACE / 'app').iterdir()) == ['file', 'run']
    finally:
        await environment.stop(True)


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
print('done')
