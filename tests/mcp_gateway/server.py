# SPDX-License-Identifier: Apache-2.0
"""A server of the public SDK, which speaks all revisions. usage: server.py PORT   It writes a line for each call of a tool."""
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field

server = MCPServer('fixture')


@server.tool()
def echo(text: str, region: Annotated[str, Field(json_schema_extra={'x-mcp-header': 'Region'})] = 'eu') -> str:
    print('echo', text, region, flush=True)
    return f'{text} in {region}'


@server.tool()
def drop(table: str) -> str:
    print('drop', table, flush=True)
    return f'{table} is gone'


app = server.streamable_http_app(
    json_response=True, transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False))
uvicorn.run(app, host='127.0.0.1', port=int(sys.argv[1]), log_level='warning', ws='none')
