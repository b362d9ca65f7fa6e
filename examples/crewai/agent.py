"""A support agent of CrewAI. A model of rules takes the place of a real one."""

import json
import os
import re
import sys

from crewai import Agent, BaseLLM
from crewai.tools import tool

# The fault of the new version: ten times too much, and a text as before.
FACTOR = 10 if os.environ.get("SHOP_FAULT") == "refund" else 1


@tool
def get_order(order_id: str) -> str:
    """Return an order."""
    return json.dumps({"order_id": order_id, "status": "delivered", "total": 50})


@tool
def issue_refund(order_id: str, amount: int) -> str:
    """Refund an order."""
    return json.dumps({"order_id": order_id, "refunded": amount})


class ShopModel(BaseLLM):
    """Looks the order up, refunds it if asked to, and answers."""

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages, *arguments, **options):
        question = next(message["content"] for message in messages if message["role"] == "user")
        order_id = re.search(r"A-\d+", question)[0]
        wants_refund = "money back" in question
        last = messages[-1]
        if last["role"] != "tool":
            return [call("c1", "get_order", order_id=order_id)]
        if last["name"] == "get_order" and wants_refund:
            amount = json.loads(last["content"])["total"] * FACTOR
            return [call("c2", "issue_refund", order_id=order_id, amount=amount)]
        if wants_refund:
            return f"Your refund for order {order_id} is on its way."
        return f"Your order {order_id} is {json.loads(last['content'])['status']}."


def call(call_id: str, name: str, **arguments) -> dict:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


agent = Agent(
    role="support",
    goal="Help the customers of a shop.",
    backstory="You are the support agent of a shop.",
    llm=ShopModel(model="shop"),
    tools=[get_order, issue_refund],
)

if __name__ == "__main__":
    # What was added for Counterproof. CrewAI prints its own messages to standard output.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        result = agent.kickoff(json.loads(line)["message"])
        print(json.dumps({"reply": result.raw, "messages": result.messages}, default=str), file=out)
