"""A support agent of the OpenAI Agents SDK. A model of rules takes the place of a real one."""

import json
import os
import re
import sys

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)

# The fault of the new version: ten times too much, and a text as before.
FACTOR = 10 if os.environ.get("SHOP_FAULT") == "refund" else 1


@function_tool
def get_order(order_id: str) -> str:
    """Return an order."""
    return json.dumps({"order_id": order_id, "status": "delivered", "total": 50})


@function_tool
def issue_refund(order_id: str, amount: int) -> str:
    """Refund an order."""
    return json.dumps({"order_id": order_id, "refunded": amount})


class ShopModel(Model):
    """Looks the order up, refunds it if asked to, and answers."""

    async def get_response(self, system_instructions, input, *arguments, **options) -> ModelResponse:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        question, last = items[0]["content"], items[-1]
        order_id = re.search(r"A-\d+", question)[0]
        wants_refund = "money back" in question
        if last.get("type") != "function_call_output":
            item = call("c1", "get_order", order_id=order_id)
        elif last["call_id"] == "c1" and wants_refund:
            item = call("c2", "issue_refund", order_id=order_id, amount=json.loads(last["output"])["total"] * FACTOR)
        elif wants_refund:
            item = message(f"Your refund for order {order_id} is on its way.")
        else:
            item = message(f"Your order {order_id} is {json.loads(last['output'])['status']}.")
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *arguments, **options):
        raise NotImplementedError


def call(call_id: str, name: str, **arguments) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=name, arguments=json.dumps(arguments))


def message(text: str) -> ResponseOutputMessage:
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(type="message", id="m1", role="assistant", status="completed", content=content)


agent = Agent(
    name="shop",
    instructions="You are the support agent of a shop.",
    model=ShopModel(),
    tools=[get_order, issue_refund],
)

if __name__ == "__main__":
    # What was added for Counterproof.
    for line in sys.stdin:
        result = Runner.run_sync(agent, json.loads(line)["message"])
        print(json.dumps(result.to_input_list()))
