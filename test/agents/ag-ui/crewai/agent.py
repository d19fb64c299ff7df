import json

import uvicorn
from ag_ui_crewai import CopilotKitState, add_crewai_flow_fastapi_endpoint, copilotkit_emit_tool_result, copilotkit_stream
from crewai.flow.flow import Flow, start
from fastapi import FastAPI
from litellm import acompletion

ORDER = {"type": "object", "properties": {"order": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "get_order_status", "parameters": ORDER}}


class Chat(Flow[CopilotKitState]):
    @start()
    async def chat(self):
        while True:
            asked = acompletion(model="openai/gpt-5.2", messages=[*self.state.messages], tools=[TOOL], stream=True)
            message = (await copilotkit_stream(await asked)).choices[0].message
            self.state.messages.append(message)
            calls = message.get("tool_calls") or []
            if not calls:
                return
            for call in calls:
                order = json.loads(call["function"]["arguments"])["order"]
                output = json.dumps({"order": order, "status": "on its way"})
                await copilotkit_emit_tool_result(call["id"], output)
                self.state.messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


app = FastAPI()
add_crewai_flow_fastapi_endpoint(app, Chat(), "/")

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
