"""A support agent of pydantic-ai. A function of rules takes the place of the model."""

import json
import os
import re
import sys

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

# The fault of the new version: ten times too much, and a text as before.
FACTOR = 10 if os.environ.get("SHOP_FAULT") == "refund" else 1


def shop_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Looks the order up, refunds it if asked to, and answers."""
    question, last = messages[0].parts[-1].content, messages[-1].parts[-1]
    order_id = re.search(r"A-\d+", question)[0]
    wants_refund = "money back" in question
    if not isinstance(last, ToolReturnPart):
        part = ToolCallPart("get_order", {"order_id": order_id})
    elif last.tool_name == "get_order" and wants_refund:
        part = ToolCallPart("issue_refund", {"order_id": order_id, "amount": last.content["total"] * FACTOR})
    elif wants_refund:
        part = TextPart(f"Your refund for order {order_id} is on its way.")
    else:
        part = TextPart(f"Your order {order_id} is {last.content['status']}.")
    return ModelResponse([part])


agent = Agent(FunctionModel(shop_model), instructions="You are the support agent of a shop.")


@agent.tool_plain
def get_order(order_id: str) -> dict:
    """Return an order."""
    return {"order_id": order_id, "status": "delivered", "total": 50}


@agent.tool_plain
def issue_refund(order_id: str, amount: int) -> dict:
    """Refund an order."""
    return {"order_id": order_id, "refunded": amount}


if __name__ == "__main__":
    # What was added for Counterproof.
    for line in sys.stdin:
        result = agent.run_sync(json.loads(line)["message"])
        print(result.all_messages_json().decode())
