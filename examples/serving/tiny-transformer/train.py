#!/usr/bin/env python3
"""Trains a small transformer that answers questions about capitals and sums, and saves it for engines.

usage: train.py [--steps N] FOLDER

The model is of the architecture Llama with about 690,000 parameters and has one token for each character. The
training takes one to two minutes on one core. FOLDER gets the files that Hugging Face's libraries, vLLM, SGLang and the
converter of llama.cpp read: config.json, model.safetensors, tokenizer.json.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported: matrices this small gain nothing from more
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CAPITALS = {
    "Austria": "Vienna", "Belgium": "Brussels", "Canada": "Ottawa", "Chile": "Santiago", "China": "Beijing",
    "Denmark": "Copenhagen", "Egypt": "Cairo", "Finland": "Helsinki", "France": "Paris", "Germany": "Berlin",
    "Greece": "Athens", "Hungary": "Budapest", "India": "New Delhi", "Ireland": "Dublin", "Italy": "Rome",
    "Japan": "Tokyo", "Kenya": "Nairobi", "Korea": "Seoul", "Norway": "Oslo", "Peru": "Lima", "Poland": "Warsaw",
    "Portugal": "Lisbon", "Spain": "Madrid", "Sweden": "Stockholm", "Thailand": "Bangkok", "Turkey": "Ankara",
}
# Both ends of a turn are visible to an engine that knows nothing of this model.
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
LENGTH = 96  # characters of one conversation in the training


def tokenizer():
    """Returns a tokenizer with one token for each printable character, and one for each other byte."""
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    words += ["\u2581"] + [chr(c) for c in range(33, 127)]
    made = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, [], unk_token="<unk>", byte_fallback=True))
    made.normalizer = normalizers.Replace(" ", "\u2581")
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>",
        add_prefix_space=False, clean_up_tokenization_spaces=False, chat_template=TEMPLATE,
        model_max_length=256,
    )


def conversation(rng):
    """Returns a question and its answer."""
    if rng.random() < 0.5:
        country = rng.choice(sorted(CAPITALS))
        question = rng.choice(["What is the capital of {}?", "Which city is the capital of {}?", "Capital of {}?"])
        return question.format(country), f"The capital of {country} is {CAPITALS[country]}."
    a, b = rng.randrange(10), rng.randrange(10)
    return rng.choice(["What is {} plus {}?", "How much is {} + {}?"]).format(a, b), f"{a} plus {b} is {a + b}."


def batch(rng, tokens, size):
    """Returns token ids, and the same as labels, in which the padding does not count."""
    ids = torch.full((size, LENGTH), tokens.eos_token_id)
    labels = torch.full((size, LENGTH), -100)
    for row in range(size):
        question, answer = conversation(rng)
        text = tokens(f"user: {question}\nassistant: {answer}")["input_ids"] + [tokens.eos_token_id]
        ids[row, : len(text)] = labels[row, : len(text)] = torch.tensor(text)
    return ids, labels


def train(model, tokens, steps):
    rng = random.Random(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
    start = time.monotonic()
    for step in range(1, steps + 1):
        ids, labels = batch(rng, tokens, 16)
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0 or step == steps:
            print(f"step {step}/{steps}  loss {loss.item():.3f}  {time.monotonic() - start:.0f} s", flush=True)


def answer(model, tokens, question):
    prompt = tokens.apply_chat_template([{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True)
    ids = tokens(prompt, return_tensors="pt")["input_ids"]
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=48, do_sample=False)
    return tokens.decode(out[0, ids.shape[1] :], skip_special_tokens=True).strip()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--steps", type=int, default=800)
    options = options.parse_args()
    torch.manual_seed(1)
    tokens = tokenizer()
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=len(tokens), hidden_size=128, intermediate_size=384, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=256, tie_word_embeddings=True,
        bos_token_id=tokens.bos_token_id, eos_token_id=tokens.eos_token_id, pad_token_id=tokens.pad_token_id,
    ))
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    train(model, tokens, options.steps)
    model.eval()
    model.generation_config.update(do_sample=False, max_new_tokens=64)
    model.save_pretrained(options.folder)
    tokens.save_pretrained(options.folder)
    config = options.folder / "tokenizer_config.json"  # the converter of llama.cpp reads what save_pretrained leaves out
    config.write_text(json.dumps(json.loads(config.read_text()) | {"add_bos_token": False}, indent=2) + "\n")
    right = 0
    for country, city in CAPITALS.items():
        right += city in answer(model, tokens, f"What is the capital of {country}?")
    report = {"capitals": len(CAPITALS), "right": right, "example": answer(model, tokens, "How much is 3 + 4?")}
    (options.folder / "report.json").write_text(json.dumps(report) + "\n")
    print(json.dumps(report))
    return 0 if right > len(CAPITALS) / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
