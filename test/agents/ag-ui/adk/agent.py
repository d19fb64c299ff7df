import uvicorn
from ag_ui_adk import ADKAgent, add_adk_fastapi_endpoint
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.tools import FunctionTool


def get_order_status(order: str) -> dict[str, str]:
    """Returns the status of an order."""
    return {"order": order, "status": "on its way"}


def cancel_order(order: str) -> str:
    """Cancels an order."""
    return f"cancelled {order}"


agent = LlmAgent(
    name="acme",
    model=LiteLlm(model="openai/gpt-5.2"),
    tools=[get_order_status, FunctionTool(cancel_order, require_confirmation=True)],
)

app = FastAPI()
for path, mode in (("/", StreamingMode.SSE), ("/whole", StreamingMode.NONE)):
    served = ADKAgent(
        adk_agent=agent,
        app_name="acme",
        user_id="anyone",
        max_concurrent_executions=100,
        run_config_factory=lambda _, mode=mode: RunConfig(streaming_mode=mode),
    )
    add_adk_fastapi_endpoint(app, served, path=path)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
