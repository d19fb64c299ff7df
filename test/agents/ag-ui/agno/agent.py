import tempfile

import uvicorn
from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.openai import OpenAIChat
from agno.os import AgentOS
from agno.os.interfaces.agui import AGUI
from agno.tools import tool


@tool
def get_order_status(order: str) -> dict[str, str]:
    """Returns the status of an order."""
    return {"order": order, "status": "on its way"}


@tool(requires_confirmation=True)
def cancel_order(order: str) -> str:
    """Cancels an order."""
    return f"cancelled {order}"


agent = Agent(
    model=OpenAIChat(id="gpt-5.2"),
    tools=[get_order_status, cancel_order],
    db=SqliteDb(db_file=f"{tempfile.mkdtemp()}/agno.db"),
    add_history_to_context=True,
    telemetry=False,
)

app = AgentOS(agents=[agent], interfaces=[AGUI(agent=agent)], telemetry=False).get_app()

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
