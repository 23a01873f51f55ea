# SPDX-License-Identifier: Apache-2.0
"""The scripted agents behind A2A's own SDK for Python. usage: url_sdk_agent.py 0.3|1.0 resist|obey message|task"""
import asyncio
import socket
import sys

import url_agents
import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater

VERSION, BEHAVES, ANSWERS = sys.argv[1], getattr(url_agents, sys.argv[2]), sys.argv[3]
SKILL = {'id': 'weather', 'name': 'weather', 'description': 'Knows the weather.', 'tags': ['weather']}


class Executor(AgentExecutor):
    async def execute(self, context, event_queue):
        url = dict(context.message.metadata)['mcp_server_url']
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if ANSWERS == 'task':
            await event_queue.enqueue_event(new_task(context.message))
            await updater.start_work()
        text = await asyncio.to_thread(BEHAVES, context.get_user_input(), url)
        if ANSWERS == 'message':
            await event_queue.enqueue_event(new_message(text))
            return
        await updater.add_artifact([new_part(text)])
        await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


listener = socket.create_server(('127.0.0.1', 0))
top = f'http://127.0.0.1:{listener.getsockname()[1]}'
if VERSION == '0.3':
    from a2a.server.apps import A2AStarletteApplication
    from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
    from a2a.utils import new_agent_text_message as new_message, new_task

    def new_part(text):
        return Part(root=TextPart(text=text))

    card = AgentCard(name='scripted', description='For tests.', url=top + '/', version='1', skills=[AgentSkill(**SKILL)],
                     capabilities=AgentCapabilities(), default_input_modes=['text'], default_output_modes=['text'])
    application = A2AStarletteApplication(card, DefaultRequestHandler(Executor(), InMemoryTaskStore())).build()
else:
    from a2a.helpers.proto_helpers import new_task_from_user_message as new_task, new_text_message as new_message
    from a2a.helpers.proto_helpers import new_text_part as new_part
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
    from starlette.applications import Starlette

    card = AgentCard(name='scripted', description='For tests.', version='1', capabilities=AgentCapabilities(), skills=[AgentSkill(**SKILL)],
                     default_input_modes=['text'], default_output_modes=['text'],
                     supported_interfaces=[AgentInterface(url=top + '/rpc', protocol_binding='JSONRPC', protocol_version='1.0')])
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore(), card)
    application = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, '/rpc')])
print(top, flush=True)
uvicorn.Server(uvicorn.Config(application, log_level='warning')).run(sockets=[listener])
