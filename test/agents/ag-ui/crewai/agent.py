import json

import uvicorn
from ag_ui_crewai import (
    CopilotKitState,
    add_crewai_flow_fastapi_endpoint,
    agui_feedback_provider,
    copilotkit_emit_tool_result,
    copilotkit_stream,
)
from crewai.flow.flow import Flow, listen, start
from crewai.flow.human_feedback import HumanFeedbackResult, human_feedback
from fastapi import FastAPI
from litellm import acompletion

ORDER = {"type": "object", "properties": {"order": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "get_order_status", "parameters": ORDER}}


def chat(streams: bool):
    class Chat(Flow[CopilotKitState]):
        @start()
        async def chat(self):
            while True:
                asked = {"messages": [*self.state.messages], "tools": [TOOL], "stream": streams}
                answer = await acompletion(model="openai/gpt-5.2", **asked)
                message = (await copilotkit_stream(answer) if streams else answer).choices[0].message
                self.state.messages.append(message)
                calls = message.get("tool_calls") or []
                if not calls:
                    return
                for call in calls:
                    order = json.loads(call["function"]["arguments"])["order"]
                    output = json.dumps({"order": order, "status": "on its way"})
                    await copilotkit_emit_tool_result(call["id"], output)
                    self.state.messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})

    return Chat()


class Cancel(Flow[CopilotKitState]):
    @start()
    @human_feedback(message="Which order is it?", provider=agui_feedback_provider)
    def plan(self):
        return "I cancel an order."

    @listen(plan)
    def cancel(self, result: HumanFeedbackResult):
        self.state.messages.append({"role": "assistant", "content": f"cancelled {result.feedback}"})


app = FastAPI()
add_crewai_flow_fastapi_endpoint(app, chat(True), "/")
add_crewai_flow_fastapi_endpoint(app, chat(False), "/whole")
add_crewai_flow_fastapi_endpoint(app, Cancel(), "/asks")

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0)
