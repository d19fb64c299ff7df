import mlflow
import uvicorn
from agents import Agent, Runner, RunState, function_tool, set_default_openai_api, set_tracing_disabled
from mlflow.genai.agent_server import AgentServer, stream

mlflow.tracing.disable()
set_tracing_disabled(True)
set_default_openai_api("chat_completions")


@function_tool
def get_order_status(order: str) -> str:
    """Returns the status of an order."""
    return f'{{"order": "{order}", "status": "on its way"}}'


@function_tool(needs_approval=True)
def cancel_order(order: str) -> str:
    """Cancels an order."""
    return f"cancelled {order}"


agent = Agent(name="acme", model="gpt-5.2", tools=[get_order_status, cancel_order])

# What waits for decisions, by the ids of its calls.
waiting: dict[str, RunState] = {}


def decided(answers: dict[str, dict]) -> RunState:
    """The state in which the run goes on."""
    state = waiting[next(iter(answers))]
    for asked in state.get_interruptions():
        answer = answers[asked.call_id]
        if answer["approve"]:
            state.approve(asked)
        else:
            state.reject(asked, rejection_message=answer.get("reason"))
    return state


@stream()
async def run(request):
    items = [one.model_dump(exclude_none=True) for one in request.input]
    answers = {one["approval_request_id"]: one for one in items if one["type"] == "mcp_approval_response"}
    given = decided(answers) if answers else items
    if "in one piece" in str(items[-1]):
        whole = await Runner.run(agent, given)
        for one in whole.new_items:
            yield {"type": "response.output_item.done", "item": one.to_input_item()}
        return
    result = Runner.run_streamed(agent, given)
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            yield event.data.model_dump()
        elif event.type == "run_item_stream_event" and event.item.type == "tool_call_output_item":
            yield {"type": "response.output_item.done", "item": event.item.to_input_item()}
    for asked in result.interruptions:
        waiting[asked.call_id] = result.to_state()
        item = {"id": asked.call_id, "name": asked.name, "arguments": asked.arguments, "server_label": "acme"}
        yield {"type": "response.output_item.done", "item": {"type": "mcp_approval_request", **item}}


app = AgentServer("ResponsesAgent").app

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
