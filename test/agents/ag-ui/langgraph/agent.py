import uvicorn
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from fastapi import FastAPI
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import interrupt


@tool
def get_order_status(order: str) -> dict[str, str]:
    """Returns the status of an order."""
    return {"order": order, "status": "on its way"}


@tool
def cancel_order(order: str) -> str:
    """Cancels an order."""
    decision = interrupt({"question": f"Cancel order {order}?", "order": order})
    return f"cancelled {order}" if decision["approved"] else f"declined: {decision.get('reason')}"


app = FastAPI()
for path, in_one_piece in (("/", False), ("/whole", True)):
    model = ChatOpenAI(model="gpt-5.2", disable_streaming=in_one_piece)
    graph = create_agent(model, [get_order_status, cancel_order], checkpointer=MemorySaver())
    add_langgraph_fastapi_endpoint(app, LangGraphAgent(name="acme", graph=graph), path)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
