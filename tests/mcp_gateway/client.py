# SPDX-License-Identifier: Apache-2.0
"""A session of the public SDK for Python. usage: client.py URL MODE   MODE: auto, legacy or a revision"""
import asyncio
import json
import sys

from mcp import Client


async def main():
    said = {}
    async with Client(sys.argv[1], mode=sys.argv[2]) as client:
        said['tools'] = sorted(tool.name for tool in (await client.list_tools()).tools)
        said['echo'] = (await client.call_tool('echo', {'text': 'grün', 'region': 'Größe'})).content[0].text
        try:
            said['drop'] = (await client.call_tool('drop', {'table': 'users'})).content[0].text
        except Exception as refused:  # pylint: disable=broad-except
            said['refused'] = str(refused)
    return said


def reason(failed):
    """The innermost error of a group."""
    while getattr(failed, 'exceptions', None):
        failed = failed.exceptions[0]
    return str(failed)


try:
    print(json.dumps(asyncio.run(main())))
except BaseException as failed:  # pylint: disable=broad-except
    print(json.dumps({'failed': reason(failed)}))
