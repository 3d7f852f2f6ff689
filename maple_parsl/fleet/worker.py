"""What answers at a site: sent as source text, run by the workers of an endpoint. JSON text in, JSON text out.

Needs torch, transformers and xgrammar there; nothing of Maple. A worker process loads a model once and keeps it.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import types
from typing import Any

KEPT = "maple_models_of_this_worker"


def kept() -> dict[str, Any]:
    """What this worker process holds between calls: modules outlive the functions sent to it."""
    if KEPT not in sys.modules:
        module = types.ModuleType(KEPT)
        module.models, module.loads = {}, 0  # type: ignore[attr-defined]
        sys.modules[KEPT] = module
    return vars(sys.modules[KEPT])


def versions() -> dict[str, str]:
    """The packages that count, without importing them."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("torch", "transformers", "xgrammar"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def device_of(torch: Any) -> Any:
    """The accelerator torch drives (cuda, xpu, ...), else the processor."""
    found = torch.accelerator.current_accelerator(check_available=True) if hasattr(torch, "accelerator") else None
    if found is None and torch.cuda.is_available():
        return torch.device("cuda")
    return found if found is not None else torch.device("cpu")


def probe(asked: dict[str, Any]) -> dict[str, Any]:
    """What this worker has; nothing is loaded."""
    said: dict[str, Any] = {"host": platform.node(), "python": platform.python_version(), "pid": os.getpid()}
    said["versions"] = versions()
    said["loaded"] = sorted(kept()["models"])
    model = str(asked.get("model", ""))
    said["model"] = os.path.isdir(os.path.expanduser(model)) if model.startswith(("/", "~")) else None
    if said["versions"]["torch"]:
        import torch

        device = device_of(torch)
        said["device"] = device.type
        said["memory"] = None
        if device.type in ("cuda", "xpu"):
            said["memory"] = getattr(torch, device.type).get_device_properties(device).total_memory
    return said


def loaded(name: str) -> tuple[Any, Any, Any, Any]:
    """Model, tokenizer, grammar compiler and device: loaded at the first call of this worker process."""
    held = kept()
    if name not in held["models"]:
        import torch
        import xgrammar
        from transformers import AutoModelForCausalLM, AutoTokenizer

        path = os.path.expanduser(name)
        options = {"local_files_only": os.path.isdir(path)}
        tokenizer = AutoTokenizer.from_pretrained(path, **options)
        device = device_of(torch)
        kind = torch.float32 if device.type == "cpu" else torch.bfloat16
        model = AutoModelForCausalLM.from_pretrained(path, dtype=kind, **options).to(device).eval()
        told = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=model.config.vocab_size)
        held["models"][name] = model, tokenizer, xgrammar.GrammarCompiler(told, max_threads=1), device
        held["loads"] += 1
    found: tuple[Any, Any, Any, Any] = held["models"][name]
    return found


def generate(name: str, messages: list[dict[str, str]], schema: dict[str, Any], most: int, limit: float) -> str:
    """One answer, which the grammar holds to the schema token by token."""
    import torch
    import xgrammar

    model, tokenizer, compiler, device = loaded(name)
    grammar = compiler.compile_json_schema(json.dumps(schema, sort_keys=True), any_whitespace=False)
    inputs = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    ).to(device)
    length = int(inputs["input_ids"].shape[1])
    with torch.inference_mode():
        out = model.generate(
            **inputs,
            max_new_tokens=most,
            max_time=limit,
            do_sample=False,
            logits_processor=[xgrammar.contrib.hf.LogitsProcessor(grammar)],
            pad_token_id=tokenizer.eos_token_id,
        )
    return str(tokenizer.decode(out[0][length:], skip_special_tokens=True))


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Answers to many prompts in one call; one that goes wrong does not spoil the others."""
    began, rows = time.monotonic(), []
    for messages in asked["prompts"]:
        left = float(asked["seconds"]) - (time.monotonic() - began)
        if left <= 0:
            rows.append({"error": "no time left"})
            continue
        try:
            rows.append({"text": generate(asked["model"], messages, asked["schema"], int(asked["most"]), left)})
        except Exception as error:
            rows.append({"error": f"{type(error).__name__}: {error}"[:500]})
    return {"answers": rows, "seconds": time.monotonic() - began, "loads": kept()["loads"], "pid": os.getpid()}


def entry(text: str) -> str:
    """Do one operation."""
    asked = json.loads(text)
    try:
        return json.dumps({"ok": True, "value": {"probe": probe, "answer": answer}[asked["op"]](asked)})
    except ImportError as error:
        return json.dumps({"ok": False, "why": f"the package {error.name} is missing there"})
    except Exception as error:
        return json.dumps({"ok": False, "why": f"{type(error).__name__}: {error}"[:500]})
