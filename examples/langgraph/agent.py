"""A support agent of LangGraph. A chat model of rules takes the place of a real one."""

import json
import os
import re
import sys

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def get_order(order_id: str) -> dict:
    """Return an order."""
    return {"order_id": order_id, "status": "delivered", "total": 50}


@tool
def issue_refund(order_id: str, amount: int) -> dict:
    """Refund an order."""
    return {"order_id": order_id, "refunded": amount}


# The fault of the new version: ten times too much, and a text as before.
FACTOR = 10 if os.environ.get("SHOP_FAULT") == "refund" else 1


class ShopModel(BaseChatModel):
    """Looks the order up, refunds it if asked to, and answers."""

    @property
    def _llm_type(self) -> str:
        return "shop"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        question, last = messages[0].content, messages[-1]
        order_id = re.search(r"A-\d+", question)[0]
        wants_refund = "money back" in question
        calls, text = [], ""
        if last.type == "human":
            calls = [{"id": "c1", "name": "get_order", "args": {"order_id": order_id}}]
        elif last.name == "get_order" and wants_refund:
            amount = json.loads(last.content)["total"] * FACTOR
            calls = [{"id": "c2", "name": "issue_refund", "args": {"order_id": order_id, "amount": amount}}]
        elif wants_refund:
            text = f"Your refund for order {order_id} is on its way."
        else:
            text = f"Your order {order_id} is {json.loads(last.content)['status']}."
        usage = {"input_tokens": 60, "output_tokens": 20, "total_tokens": 80}
        message = AIMessage(text, tool_calls=calls, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


model = ShopModel()
builder = StateGraph(MessagesState)
builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
builder.add_node("tools", ToolNode([get_order, issue_refund]))
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", tools_condition)
builder.add_edge("tools", "agent")
graph = builder.compile()

if __name__ == "__main__":
    # What was added for Counterproof.
    for line in sys.stdin:
        state = graph.invoke(json.loads(line))
        print(json.dumps([message.model_dump() for message in state["messages"]]))
