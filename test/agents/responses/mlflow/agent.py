import json

import mlflow
import uvicorn
from mlflow.genai.agent_server import AgentServer, stream
from mlflow.types.responses import (
    create_function_call_item,
    create_function_call_output_item,
    create_mcp_approval_request_item,
    create_text_delta,
    create_text_output_item,
    to_chat_completions_input,
)
from openai import AsyncOpenAI

mlflow.tracing.disable()
client = AsyncOpenAI()

ORDER = {"type": "object", "properties": {"order": {"type": "string"}}}
NAMES = ["get_order_status", "cancel_order"]
TOOLS = [{"type": "function", "function": {"name": name, "parameters": ORDER}} for name in NAMES]


def use(name: str, arguments: str) -> str:
    order = json.loads(arguments)["order"]
    return f"cancelled {order}" if name == "cancel_order" else json.dumps({"order": order, "status": "on its way"})


def done(item: dict) -> dict:
    return {"type": "response.output_item.done", "item": item}


def message_of(item: dict) -> list[dict]:
    """MLflow's own function knows no pictures."""
    if not isinstance(item.get("content"), list) or item["role"] != "user":
        return to_chat_completions_input([item])
    parts = [
        {"type": "image_url", "image_url": {"url": part["image_url"]}}
        if part["type"] == "input_image"
        else {"type": "text", "text": part["text"]}
        for part in item["content"]
    ]
    return [{"role": "user", "content": parts}]


async def pieces(messages: list[dict], is_streamed: bool):
    asked = {"model": "gpt-5.2", "messages": messages, "tools": TOOLS}
    answer = await client.chat.completions.create(**asked, stream=is_streamed)
    if not is_streamed:
        yield answer.id, answer.choices[0].message
        return
    async for chunk in answer:
        yield chunk.id, chunk.choices[0].delta


@stream()
async def run(request):
    items = [one.model_dump(exclude_none=True) for one in request.input]
    answers = {one["approval_request_id"]: one for one in items if one["type"] == "mcp_approval_response"}
    messages = []
    for item in items:
        if item["type"] == "mcp_approval_request":
            answer, call = answers[item["id"]], (item["id"], item["name"], item["arguments"])
            output = use(*call[1:]) if answer["approve"] else answer.get("reason", "It was declined.")
            pair = [create_function_call_item(item["id"], *call), create_function_call_output_item(item["id"], output)]
            messages += to_chat_completions_input(pair)
            for one in pair:
                yield done(one)
        elif item["type"] != "mcp_approval_response":
            messages += message_of(item)
    is_streamed = "in one piece" not in str(items[-1])
    is_asking = False
    while not is_asking:
        text, calls, id = "", {}, ""
        async for id, delta in pieces(messages, is_streamed):
            if delta.content:
                text += delta.content
                if is_streamed:
                    yield create_text_delta(delta.content, item_id=id)
            for index, piece in enumerate(delta.tool_calls or []):
                index = getattr(piece, "index", index)
                call = calls.setdefault(index, {"id": piece.id, "name": piece.function.name, "arguments": ""})
                call["arguments"] += piece.function.arguments or ""
        if text:
            yield done(create_text_output_item(text, id))
        if not calls:
            return
        for call in calls.values():
            given = (call["id"], call["name"], call["arguments"])
            if call["name"] == "cancel_order":
                is_asking = True
                yield done(create_mcp_approval_request_item(call["id"], call["arguments"], call["name"], "acme"))
                continue
            pair = [
                create_function_call_item(id, *given),
                create_function_call_output_item(call["id"], use(*given[1:])),
            ]
            messages += to_chat_completions_input(pair)
            for one in pair:
                yield done(one)


app = AgentServer("ResponsesAgent").app

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
