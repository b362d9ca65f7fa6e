"""A support agent behind FastAPI, with an answer of a shape of its own. A function of rules takes the place of the model."""

import os
import re

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Question(BaseModel):
    text: str
    customer: str | None = None


def get_order(order_id: str) -> dict:
    return {"order_id": order_id, "status": "delivered", "total": 50}


def issue_refund(order_id: str, amount: int) -> dict:
    return {"order_id": order_id, "refunded": amount}


# The fault of the new version: ten times too much, and a text as before.
FACTOR = 10 if os.environ.get("SHOP_FAULT") == "refund" else 1


@app.get("/health")
def health() -> dict:
    return {"ok": True}


@app.post("/ask")
def ask(question: Question) -> dict:
    order_id = re.search(r"A-\d+", question.text)
    if order_id is None:
        return {"result": {"say": "Which order is it about?", "did": []}, "tok": {"in": 20, "out": 6}}
    order = get_order(order_id[0])
    did = [{"fn": "get_order", "input": {"order_id": order_id[0]}, "out": order}]
    say = f"Your order {order_id[0]} is {order['status']}."
    if "money back" in question.text:
        wanted = {"order_id": order_id[0], "amount": order["total"] * FACTOR}
        did.append({"fn": "issue_refund", "input": wanted, "out": issue_refund(**wanted)})
        say = f"Your refund for order {order_id[0]} is on its way."
    return {"result": {"say": say, "did": did}, "tok": {"in": 60, "out": 20}}
