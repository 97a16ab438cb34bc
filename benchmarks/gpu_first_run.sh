#!/usr/bin/env bash
# All that a fresh machine with an NVIDIA GPU is to answer, in under ten minutes: install, look, test on CUDA, time.
#   bash benchmarks/gpu_first_run.sh [cuda12|cuda13] [FOLDER FOR THE OUTCOME]
# Every part has a time limit, and the next one runs whatever the one before said; the outcome lies in the folder, each part's in a file.
# What is installed already is not fetched; PyTorch with CUDA, which is compared with, is taken where it is there.
set -uo pipefail
cd "$(dirname "$0")/.."
cuda=${1:-cuda13}
folder=${2:-benchmarks/results/$(date +%F)-gpu}
mkdir -p "$folder"

part() {  # part NAME SECONDS COMMAND...
    local name=$1 limit=$2
    shift 2
    printf '== %s (at most %s s)\n' "$name" "$limit"
    timeout "$limit" "$@" > "$folder/$name.txt" 2>&1
    printf 'exit %s\n' "$?" | tee -a "$folder/$name.txt"
    tail -n 3 "$folder/$name.txt"
}

export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
part install 150 bash -c "python3 -c 'import cupy, ml_dtypes, pytest, scipy, jinja2, networkx' || python3 -m pip install -q -e '.[$cuda,test,bfloat16]'"
part doctor 30 python3 -m symconv doctor
part device-layer 60 python3 -m pytest -m gpu -q tests/gpu/test_device_layer.py
part programs 90 python3 -m pytest -m gpu -q -x tests/gpu/test_programs.py
part elementwise-tensor 60 python3 benchmarks/gpu.py --only elementwise,tensor,depthwise --rounds 3 --selection heuristic \
    --output "$folder/kernels.md"
part networks 100 python3 benchmarks/gpu.py --only lenet,resnet --rounds 3 --selection heuristic \
    --without "torch.compile max-autotune" --output "$folder/networks.md"
part layers 100 python3 benchmarks/gpu.py --only layers --rounds 2 --selection heuristic --output "$folder/layers.md"
printf '\nWith more time: python3 -m pytest -m gpu, and python3 benchmarks/gpu.py (kernels chosen by measurement, all contenders)\n'
