import json
import os

from openai import APIStatusError, OpenAI

retries = int(os.environ.get("RETRIES", "2"))
client = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"], max_retries=retries)
model = os.environ.get("MODEL") or client.models.list().data[0].id


def asked(content):
    before = [{"role": "user", "content": "My dog is Rex."}, {"role": "assistant", "content": "Noted."}]
    return {"model": model, "messages": [*before, {"role": "user", "content": content}]}


whole = client.chat.completions.create(**asked("Who is Rex?"))
streamed, thoughts = "", ""
with client.chat.completions.stream(**asked("Look."), stream_options={"include_usage": True}) as stream:
    for event in stream:
        if event.type == "content.delta":
            streamed += event.delta
        if event.type == "chunk" and event.chunk.choices:
            thoughts += getattr(event.chunk.choices[0].delta, "reasoning_content", None) or ""
    usage = stream.get_final_completion().usage
own = {"type": "function", "function": {"name": "own", "parameters": {"type": "object", "properties": {}}}}
loop = client.chat.completions.create(**asked("Now."), tools=[own]).choices[0].message
try:
    client.chat.completions.create(**asked("Fail."))
    failure = None
except APIStatusError as error:
    failure = error.status_code
print(
    json.dumps(
        {
            "whole": whole.choices[0].message.content,
            "streamed": streamed,
            "thoughts": thoughts,
            "tokens": usage and usage.total_tokens,
            "loop": loop.content,
            "calls": len(loop.tool_calls or []),
            "failure": failure,
        }
    )
)
