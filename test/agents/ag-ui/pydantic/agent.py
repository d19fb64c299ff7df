import uvicorn
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

agent = Agent("openai-chat:gpt-5.2", output_type=[str, DeferredToolRequests])


@agent.tool_plain
def get_order_status(order: str) -> dict[str, str]:
    return {"order": order, "status": "on its way"}


@agent.tool_plain(requires_approval=True)
def cancel_order(order: str) -> str:
    return f"cancelled {order}"


async def run(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


app = Starlette(routes=[Route("/", run, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
