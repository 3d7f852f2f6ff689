"""Where a language model answers: nowhere (the default), here, on an OpenAI-compatible server, or on an endpoint."""

from maple_parsl.inference.base import Answer, Backend, InferenceError, Message
from maple_parsl.inference.choose import backend

__all__ = ["Answer", "Backend", "InferenceError", "Message", "backend"]
