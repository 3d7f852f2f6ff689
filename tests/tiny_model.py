"""A language model of a few thousand weights, from a seed: it knows nothing, loads in a moment, and writes a schema."""

from __future__ import annotations

from pathlib import Path


def write(folder: Path) -> Path:
    """Its weights and tokenizer, below ``folder``."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(
        models.BPE(vocab={letter: number for number, letter in enumerate([*letters, "<end>"])}, merges=[])
    )
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(7)
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=8192, n_embd=32, n_layer=2, n_head=2, eos_token_id=256)
    GPT2LMHeadModel(config).save_pretrained(folder)
    for path in folder.iterdir():  # safetensors writes for its owner alone
        path.chmod(0o644)
    return folder
