"""Trainings of public networks on one GPU: their memory and step time, as JSON.

    python trainings.py SETUPS.json > MEASURED.json

SETUPS.json has ``setups`` with their names: a function of this module, the samples of a step, and how it is
trained (pure bf16, fp32, autocast to bf16). Each runs in a process of its own, with torch's default allocator
and AdamW, so that nothing of another one is left. A function is a network with the inputs of one sample:
``hpclaunch predict --from-torch``.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

WARM_UP, STEPS = 4, 8
GIB = 1 << 30


def _text(config: str, network: str, tokens: int, **sizes: Any) -> Any:
    """Return a language model and one text with its labels."""
    import transformers

    configuration = getattr(transformers, config)(**sizes)
    ids = torch.randint(configuration.vocab_size, (1, tokens))
    return getattr(transformers, network)(configuration), {"input_ids": ids, "labels": ids.clone()}


def _image(config: str, network: str, **sizes: Any) -> Any:
    """Return a classifier of 1,000 classes and one image with its label."""
    import transformers

    model = getattr(transformers, network)(getattr(transformers, config)(num_labels=1000, **sizes))
    return model, {"pixel_values": torch.randn(1, 3, 224, 224), "labels": torch.zeros(1, dtype=torch.long)}


def gpt2() -> Any:
    """GPT-2, 124 M."""
    return _text("GPT2Config", "GPT2LMHeadModel", 1024)


def gpt2_medium() -> Any:
    """GPT-2, 355 M."""
    return _text("GPT2Config", "GPT2LMHeadModel", 1024, n_embd=1024, n_layer=24, n_head=16)


def gpt2_xl() -> Any:
    """GPT-2, 1.6 B."""
    return _text("GPT2Config", "GPT2LMHeadModel", 1024, n_embd=1600, n_layer=48, n_head=25)


_LLAMA_1B = {
    **{"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": True},
}


def llama_1b() -> Any:
    """Llama 3.2, 1.2 B."""
    return _text("LlamaConfig", "LlamaForCausalLM", 2048, **_LLAMA_1B)


def llama_8_of_32() -> Any:
    """Eight of the 32 blocks of Llama 3 8B."""
    sizes = {"hidden_size": 4096, "num_hidden_layers": 8, "num_key_value_heads": 8}
    return _text("LlamaConfig", "LlamaForCausalLM", 4096, **sizes, intermediate_size=14336, vocab_size=128256)


def qwen2() -> Any:
    """Qwen 2, 0.5 B."""
    sizes = {"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2}
    more = {"intermediate_size": 4864, "tie_word_embeddings": True}
    return _text("Qwen2Config", "Qwen2ForCausalLM", 2048, **sizes, **more)


def pythia() -> Any:
    """Pythia (GPT-NeoX), 410 M."""
    sizes = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    return _text(
        "GPTNeoXConfig", "GPTNeoXForCausalLM", 2048, **sizes, intermediate_size=4096, vocab_size=50304
    )


def opt() -> Any:
    """OPT, 1.3 B."""
    sizes = {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "ffn_dim": 8192}
    return _text("OPTConfig", "OPTForCausalLM", 2048, **sizes, word_embed_proj_dim=2048)


def bloom() -> Any:
    """BLOOM, 560 M."""
    return _text("BloomConfig", "BloomForCausalLM", 1024, hidden_size=1024, n_layer=24, n_head=16)


def bert_large() -> Any:
    """BERT, 340 M."""
    sizes = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    return _text("BertConfig", "BertForMaskedLM", 512, **sizes, intermediate_size=4096)


def roberta() -> Any:
    """RoBERTa, 125 M."""
    return _text("RobertaConfig", "RobertaForMaskedLM", 512, vocab_size=50265, max_position_embeddings=514)


def t5() -> Any:
    """T5, 220 M."""
    sizes = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
    return _text("T5Config", "T5ForConditionalGeneration", 512, **sizes, decoder_start_token_id=0)


def vit_base() -> Any:
    """ViT-B/16."""
    return _image("ViTConfig", "ViTForImageClassification")


def vit_large() -> Any:
    """ViT-L/16."""
    sizes = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    return _image("ViTConfig", "ViTForImageClassification", **sizes, intermediate_size=4096)


def swin() -> Any:
    """Swin-B."""
    sizes = {"embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32]}
    return _image("SwinConfig", "SwinForImageClassification", **sizes)


def convnext() -> Any:
    """ConvNeXt-B."""
    return _image("ConvNextConfig", "ConvNextForImageClassification", hidden_sizes=[128, 256, 512, 1024],
                  depths=[3, 3, 27, 3])  # fmt: skip


def resnet50() -> Any:
    """ResNet-50."""
    return _image("ResNetConfig", "ResNetForImageClassification")


def mistral() -> Any:
    """Eight of the 32 blocks of Mistral 7B."""
    sizes = {"hidden_size": 4096, "num_hidden_layers": 8, "num_key_value_heads": 8}
    return _text("MistralConfig", "MistralForCausalLM", 2048, **sizes, intermediate_size=14336)


def gemma() -> Any:
    """Six of the 18 blocks of Gemma 2B."""
    sizes = {"hidden_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 1}
    return _text("GemmaConfig", "GemmaForCausalLM", 2048, **sizes, intermediate_size=16384, head_dim=256)


def phi3() -> Any:
    """Ten of the 32 blocks of Phi-3-mini."""
    return _text("Phi3Config", "Phi3ForCausalLM", 2048, num_hidden_layers=10)


def falcon() -> Any:
    """Falcon-RW-1B with rotary positions."""
    sizes = {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32}
    return _text("FalconConfig", "FalconForCausalLM", 1024, **sizes, alibi=False)


def gpt_neo() -> Any:
    """GPT-Neo, 125 M."""
    sizes = {"hidden_size": 768, "num_layers": 12, "num_heads": 12}
    return _text(
        "GPTNeoConfig", "GPTNeoForCausalLM", 1024, **sizes, attention_types=[[["global", "local"], 6]]
    )


def bart_large() -> Any:
    """BART-large."""
    return _text("BartConfig", "BartForConditionalGeneration", 512)


def electra_large() -> Any:
    """ELECTRA-large, the discriminator's sizes, as a masked model."""
    sizes = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "embedding_size": 1024}
    return _text("ElectraConfig", "ElectraForMaskedLM", 512, **sizes, intermediate_size=4096)


def distilbert() -> Any:
    """DistilBERT."""
    return _text("DistilBertConfig", "DistilBertForMaskedLM", 512)


def albert() -> Any:
    """ALBERT-xlarge, whose blocks share their weights."""
    sizes = {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16}
    return _text("AlbertConfig", "AlbertForMaskedLM", 512, **sizes, intermediate_size=8192)


def deberta() -> Any:
    """DeBERTa-v2 with the sizes of base."""
    return _text("DebertaV2Config", "DebertaV2ForMaskedLM", 512, hidden_size=768, num_hidden_layers=12,
                 num_attention_heads=12, intermediate_size=3072, relative_attention=True,
                 pos_att_type=["p2c", "c2p"])  # fmt: skip


def deit() -> Any:
    """DeiT-base."""
    return _image("DeiTConfig", "DeiTForImageClassification")


def dinov2() -> Any:
    """DINOv2-large with patches of 14."""
    sizes = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    return _image("Dinov2Config", "Dinov2ForImageClassification", **sizes, patch_size=14)


def beit() -> Any:
    """BEiT-base."""
    return _image("BeitConfig", "BeitForImageClassification")


def regnet() -> Any:
    """RegNetY-040's default sizes."""
    return _image("RegNetConfig", "RegNetForImageClassification")


def mobilenet() -> Any:
    """MobileNetV2."""
    return _image("MobileNetV2Config", "MobileNetV2ForImageClassification")


def poolformer() -> Any:
    """PoolFormer-S12."""
    return _image("PoolFormerConfig", "PoolFormerForImageClassification")


def measured(setup: str) -> dict[str, Any]:
    """Train for some steps; return GiB at most and seconds of a step (the median)."""
    factory, samples, mode = setup.split()
    with torch.device("cuda"):
        model, inputs = globals()[factory]()
    if mode == "pure":
        model.bfloat16()
        inputs = {key: x.bfloat16() if x.is_floating_point() else x for key, x in inputs.items()}
    batch = {key: x.repeat(int(samples), *[1] * (x.dim() - 1)) for key, x in inputs.items()}
    optimizer = torch.optim.AdamW(model.parameters())
    model.train()
    times = []
    for _ in range(WARM_UP + STEPS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=mode == "autocast"):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    free, whole = torch.cuda.mem_get_info()
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "allocated_gib": torch.cuda.max_memory_allocated() / GIB,
        "reserved_gib": torch.cuda.max_memory_reserved() / GIB,
        "used_gib": (whole - free) / GIB,
        "step_s": statistics.median(times[WARM_UP:]),
        "deviation_s": statistics.stdev(times[WARM_UP:]),
    }


def _answer(setup: str, answers: Any) -> None:
    try:
        answers.put(measured(setup))
    except Exception as error:  # such as a GPU that is full: the next set-up is measured all the same
        answers.put({"error": f"{type(error).__name__}: {error}"[:300]})


def main() -> None:
    """Measure each set-up in a process of its own, forked before CUDA starts; print all as JSON."""
    import transformers  # noqa: F401  # once for all processes

    found: dict[str, Any] = {}
    processes = multiprocessing.get_context("fork")
    for setup in [row["name"] for row in json.loads(Path(sys.argv[1]).read_text())["setups"]]:
        answers = processes.SimpleQueue()
        process = processes.Process(target=_answer, args=(setup, answers))
        process.start()
        process.join()
        found[setup] = {"error": "no answer"} if answers.empty() else answers.get()
        print(setup, found[setup], file=sys.stderr, flush=True)
    gpu = torch.cuda.get_device_name()
    print(json.dumps({"gpu": gpu, "torch": torch.__version__, "setups": found}, indent=1))


if __name__ == "__main__":
    main()
