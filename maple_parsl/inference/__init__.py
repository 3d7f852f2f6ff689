"""Where a language model answers: nowhere (the default), on this machine, or on an OpenAI-compatible server."""

from maple_parsl.inference.base import Answer, Backend, InferenceError, Message
from maple_parsl.inference.choose import backend

__all__ = ["Answer", "Backend", "InferenceError", "Message", "backend"]
