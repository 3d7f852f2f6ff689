"""A model on this machine, through transformers; what it may write is constrained to the schema token by token."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import InferenceError
from maple_parsl.inference.base import Answer, Message

if TYPE_CHECKING:
    from maple_parsl.settings import ModelSettings


class LocalModel:
    """A causal language model: a folder of weights, or one ``.gguf`` file. Loaded at the first question."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._loaded: tuple[Any, Any, Any, Any] | None = None
        self._grammars: dict[str, Any] = {}

    @property
    def model(self) -> str:
        return Path(self._settings.name).stem or self._settings.name

    def answer(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> Answer:
        import torch
        import xgrammar

        model, tokenizer, compiler, device = self._load()
        key = json.dumps(schema, sort_keys=True)
        if key not in self._grammars:
            self._grammars[key] = compiler.compile_json_schema(key, any_whitespace=False)
        inputs = tokenizer.apply_chat_template(
            [dict(message) for message in messages], add_generation_prompt=True, return_tensors="pt", return_dict=True
        ).to(device)
        length = int(inputs["input_ids"].shape[1])
        if length > self._settings.max_prompt:
            raise InferenceError(f"the prompt has {length} tokens; at most {self._settings.max_prompt} are allowed")
        guard = xgrammar.contrib.hf.LogitsProcessor(self._grammars[key])  # one use each
        with torch.inference_mode():
            out = model.generate(
                **inputs,
                max_new_tokens=self._settings.max_answer,
                max_time=self._settings.timeout,
                do_sample=False,
                logits_processor=[guard],
                pad_token_id=tokenizer.eos_token_id,
            )
        written = out[0][length:]
        return Answer(tokenizer.decode(written, skip_special_tokens=True), self.model, length, int(written.shape[0]))

    def _load(self) -> tuple[Any, Any, Any, Any]:
        if self._loaded is None:
            try:
                self._loaded = self._load_weights()
            except ImportError as error:
                raise InferenceError(f"{error.name} is not installed; pip install 'maple-parsl[llm]'") from None
            except (OSError, ValueError, RuntimeError) as error:
                raise InferenceError(f"model {self._settings.name} cannot be loaded: {error}") from None
        return self._loaded

    def _load_weights(self) -> tuple[Any, Any, Any, Any]:
        import torch
        import xgrammar
        from transformers import AutoModelForCausalLM, AutoTokenizer

        where = Path(self._settings.name)
        options: dict[str, Any] = {"local_files_only": True}
        name = str(where)
        if where.suffix == ".gguf":
            name, options["gguf_file"] = str(where.parent), where.name
        tokenizer = AutoTokenizer.from_pretrained(name, **options)
        device = self._device(torch)
        kind = torch.float32 if device.type == "cpu" else torch.bfloat16
        model = AutoModelForCausalLM.from_pretrained(name, dtype=kind, **options).to(device).eval()
        information = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=model.config.vocab_size)
        return model, tokenizer, xgrammar.GrammarCompiler(information, max_threads=1), device

    def _device(self, torch: Any) -> Any:
        if self._settings.device:
            return torch.device(self._settings.device)
        found = torch.accelerator.current_accelerator(check_available=True) if hasattr(torch, "accelerator") else None
        return found if found is not None else torch.device("cpu")
