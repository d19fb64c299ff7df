import uvicorn
from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient
from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint
from fastapi import FastAPI


@tool(approval_mode="never_require")
def get_order_status(order: str) -> dict[str, str]:
    """Returns the status of an order."""
    return {"order": order, "status": "on its way"}


@tool(approval_mode="always_require")
def cancel_order(order: str) -> str:
    """Cancels an order."""
    return f"cancelled {order}"


client = OpenAIChatCompletionClient(model="gpt-5.2")
agent = Agent(client=client, name="acme", instructions="Be brief.", tools=[get_order_status, cancel_order])

app = FastAPI()
add_agent_framework_fastapi_endpoint(app, agent, "/", single_user=True)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
