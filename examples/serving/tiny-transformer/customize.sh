#!/bin/sh
# Read by tools/mkimage/install.sh: $root is the new root, and inside runs a command in it.
inside useradd --create-home --uid 1000 --shell /bin/bash work
install -D -m 755 "$MKIMAGE_DIR/train.py" "$root/opt/serving/train.py"
install -D -m 755 "$MKIMAGE_DIR/../check.py" "$root/opt/serving/check.py"
install -D -m 644 "$MKIMAGE_DIR/minilm.txt" "$root/opt/serving/minilm.txt"
# The converter from Hugging Face's format to GGUF, which needs torch, and so is not in the image llama.cpp.
mkdir -p "$root$temp/llama" "$root/opt/llama.cpp"
cp "$MKIMAGE_DIR"/../llama.cpp/source.sh "$MKIMAGE_DIR"/../llama.cpp/*.txt "$root$temp/llama/"
inside sh $temp/llama/source.sh $temp/llama/source
cp -r "$root$temp/llama/source/convert_hf_to_gguf.py" "$root$temp/llama/source/conversion" "$root$temp/llama/source/gguf-py" "$root/opt/llama.cpp/"
