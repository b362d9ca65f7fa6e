"""Evaluates expressions with Google's implementation of CEL.

Reads one JSON array per line: an expression, and the value of the variable `output`. Writes one JSON array per line: the type
and the value of the result, or "error" and the message.
"""

import datetime
import json
import sys

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

EXTENSIONS = [
    ext_bindings.ExtBindings(),
    ext_encoders.ExtEncoders(),
    ext_math.ExtMath(),
    ext_optional.ExtOptional(),
    ext_strings.ExtStrings(),
]


def typed(value):
    """Returns the type and the value of a plain value of Python. Both types of integers are "int"."""
    if value is None:
        return ["null", None]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["double", repr(value)]
    if isinstance(value, str):
        return ["string", value]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", value.hex()]
    if isinstance(value, datetime.datetime):
        return ["timestamp", str((value - EPOCH) // MICROSECOND)]
    if isinstance(value, datetime.timedelta):
        return ["duration", str(value // MICROSECOND)]
    if isinstance(value, (list, tuple)):
        return ["list", [typed(element) for element in value]]
    if isinstance(value, dict):
        return ["map", [[typed(key), typed(item)] for key, item in value.items()]]
    return ["other", str(value)]


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MICROSECOND = datetime.timedelta(microseconds=1)


def evaluate(env, text, output):
    try:
        result = env.compile(text, disable_check=True).eval(data={"output": output})
        kind = result.type().name()
        if kind == "ERROR":
            return ["error", str(result.value())]
        value = typed(result.plain_value())
        return ["uint", value[1]] if kind == "UINT" else value
    except Exception as error:  # The reader of the answer decides what an error means.
        return ["error", str(error)]


def main():
    env = cel.NewEnv(variables={"output": cel.Type.DYN}, extensions=EXTENSIONS)
    for line in sys.stdin:
        text, output = json.loads(line)
        print(json.dumps(evaluate(env, text, output)), flush=True)


main()
