import os

import uvicorn
from ag_ui_strands import StrandsAgent, StrandsAgentConfig, ToolBehavior, add_strands_fastapi_endpoint
from fastapi import FastAPI
from strands import Agent, tool
from strands.models.openai import OpenAIModel


@tool
def get_order_status(order: str) -> dict[str, str]:
    """Returns the status of an order."""
    return {"order": order, "status": "on its way"}


@tool
def cancel_order(order: str) -> str:
    """Cancels an order."""
    return f"cancelled {order}"


config = StrandsAgentConfig(tool_behaviors={"cancel_order": ToolBehavior(interrupt_on_call=True)})

app = FastAPI()
for path, is_streamed in (("/", True), ("/whole", False)):
    model = OpenAIModel(client_args={"base_url": os.environ["OPENAI_BASE_URL"]}, model_id="gpt-5.2", stream=is_streamed)
    agent = Agent(model=model, tools=[get_order_status, cancel_order], callback_handler=None)
    add_strands_fastapi_endpoint(app, StrandsAgent(agent, "acme", config=config), path)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
