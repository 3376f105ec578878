"""Public architectures by their configurations, without weights, and what torch itself counts for them.

Run with a Python that has torch and transformers; prints JSON by name. The networks are small, of each
architecture's layers; the counts do not depend on that. Not named test_*: it is no test.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch import nn

from tests.scaling.programs.count_in_torch import counted

BATCH, TOKENS = 2, 96
_TEXT = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 512}
_GATED = {**_TEXT, "intermediate_size": 320, "num_key_value_heads": 2, "pad_token_id": 0}
_BERT = {**_TEXT, "intermediate_size": 512}
_LOT = {**_BERT, "max_position_embeddings": 512}
_IMAGE = {"image_size": 64, "num_labels": 10}
CONFIGURATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", {"n_embd": 128, "n_layer": 2, "n_head": 4, "vocab_size": 512}),
    "llama": ("LlamaConfig", "LlamaForCausalLM", _GATED),
    "mistral": ("MistralConfig", "MistralForCausalLM", _GATED),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", _GATED),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {**_GATED, "head_dim": 32}),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", {**_GATED, "original_max_position_embeddings": 4096}),
    "gpt-neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", {**_TEXT, "intermediate_size": 512}),
    "opt": ("OPTConfig", "OPTForCausalLM", {**_TEXT, "ffn_dim": 512, "word_embed_proj_dim": 128}),
    "bloom": (
        "BloomConfig",
        "BloomForCausalLM",
        {"hidden_size": 128, "n_layer": 2, "n_head": 4, "vocab_size": 512},
    ),
    "falcon": ("FalconConfig", "FalconForCausalLM", {**_TEXT, "alibi": False}),
    "bert": ("BertConfig", "BertForMaskedLM", _BERT),
    "roberta": ("RobertaConfig", "RobertaForMaskedLM", _BERT),
    "electra": ("ElectraConfig", "ElectraForMaskedLM", {**_BERT, "embedding_size": 64}),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        {"dim": 128, "n_layers": 2, "n_heads": 4, "hidden_dim": 512, "vocab_size": 512},
    ),
    "t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        {"d_model": 128, "d_kv": 32, "d_ff": 512, "num_layers": 2, "num_heads": 4, "vocab_size": 512},
    ),
    "vit": (
        "ViTConfig",
        "ViTForImageClassification",
        {
            **_IMAGE,
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 512,
        },
    ),
    "deit": (
        "DeiTConfig",
        "DeiTForImageClassification",
        {
            **_IMAGE,
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 512,
        },
    ),
    "swin": (
        "SwinConfig",
        "SwinForImageClassification",
        {**_IMAGE, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    ),
    "convnext": (
        "ConvNextConfig",
        "ConvNextForImageClassification",
        {**_IMAGE, "hidden_sizes": [32, 64, 96, 128], "depths": [1, 1, 2, 1]},
    ),
    "resnet": (
        "ResNetConfig",
        "ResNetForImageClassification",
        {**_IMAGE, "embedding_size": 32, "hidden_sizes": [64, 128], "depths": [2, 2]},
    ),
    # The first four that can be built, of 266 of transformers 5.24 by lot (random.Random(20261125)).
    "roformer": ("RoFormerConfig", "RoFormerForCausalLM", _LOT),
    "rwkv": ("RwkvConfig", "RwkvForCausalLM", _LOT),
    "bigbird-pegasus": ("BigBirdPegasusConfig", "BigBirdPegasusForCausalLM", _LOT),
    "mvp": ("MvpConfig", "MvpForConditionalGeneration", _LOT),
}


def built(name: str, attention: str) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return the network and the inputs of a step; the labels make it compute its loss."""
    import transformers

    configuration, network, sizes = CONFIGURATIONS[name]
    config = getattr(transformers, configuration)(**sizes, attn_implementation=attention)
    config.use_cache = False
    if name == "t5":
        config.decoder_start_token_id = 0
    made: nn.Module = getattr(transformers, network)(config)
    if "ImageClassification" in network:
        pixels = torch.zeros(BATCH, 3, 64, 64)
        return made, {"pixel_values": pixels, "labels": torch.zeros(BATCH, dtype=torch.long)}
    words = torch.zeros(BATCH, TOKENS, dtype=torch.long)
    return made, {"input_ids": words, "labels": words.clone()}


def __getattr__(name: str) -> Any:
    """Return a function for ``--from-torch``, such as ``gpt2_eager``."""
    model, _, attention = name.rpartition("_")
    if model.replace("_", "-") not in CONFIGURATIONS:
        raise AttributeError(name)
    return lambda: built(model.replace("_", "-"), attention)


def of_step(network: nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, int]:
    """Return what torch counts in a real step on this processor."""
    network.train()
    return counted(network, lambda: network(**inputs).loss)


if __name__ == "__main__":
    torch.manual_seed(1)
    found = {
        f"{name}_{kind}": of_step(*built(name, kind))
        for name in sys.argv[2:]
        for kind in sys.argv[1].split(",")
    }
    print(json.dumps(found))
