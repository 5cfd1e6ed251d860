# Sourced by the scripts that need a model server: `serve [GGUF]` starts one and waits until it
# answers, `unserve` ends it. The caller names the folder of its log in `out`. PORT, THREADS, SLOTS.
port=${PORT:-8080}
export EVENHAND_BASE_URL=http://127.0.0.1:$port/v1
server=

serve() { # [GGUF]: SmolLM2-135M without it
  evenhand serve-local ${1:+--gguf "$1"} --port "$port" --threads "${THREADS:-2}" \
    --slots "${SLOTS:-8}" 2> "$out/server.log" &
  server=$!
  until curl -sf "$EVENHAND_BASE_URL/models" > "$out/served.json"; do
    kill -0 $server 2> /dev/null || { cat "$out/server.log" >&2; exit 1; }
    sleep 1
  done
  [ -z "${1:-}" ] || sha256sum "$1" | cut -d' ' -f1 > "$out/model.sha256"
}

unserve() { kill $server && wait $server || true; server=; }

trap '[ -z "$server" ] || kill $server' EXIT
