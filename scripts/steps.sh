# Sourced by the scripts that train: what they share. The caller names its folder in `out`.

step() { # NAME RESULT COMMAND…: once, timed
  local name=$1 result=$2 began=$SECONDS
  shift 2
  [ -e "$result" ] && return
  echo "== $name"
  "$@" || return
  printf '%s\t%d\n' "$name" $((SECONDS - began)) >> "$out/times.tsv"
}

worth_a_look() { # COMMAND…: code 2 says that too little came of it, which is a result
  "$@" || [ $? -eq 2 ]
}

trained() { # COMMAND…: code 4: the loss or reward is not shown to improve; 2: nothing was trained
  "$@" || [ $? -eq 4 ]
}

weights() { [ "$1" = base ] && echo "$out/base" || echo "$out/$1/model"; }

serve_weights() { # NAME: the weights of that name, as 16 bits
  [ -e "$out/$1.gguf" ] ||
    evenhand train to-gguf "$(weights "$1")" --like smollm2 --out "$out/$1.gguf"
  serve "$out/$1.gguf"
}

short=(--full --set batch=16 --set micro_batch=8 --set save_every=10)
rl=(--full --set batch="${RL_BATCH:-8}" --set micro_batch="${RL_BATCH:-8}" --set max_new_tokens=40 --set save_every=8)
