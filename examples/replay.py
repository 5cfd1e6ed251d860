"""A recorded run, played back offline: the same answers, and not one call."""

import sys

from at_hand import a_model

import evenhand as eh

out = sys.argv[1] if len(sys.argv) > 1 else "runs/example-replay"
prompts = ["Describe a typical nurse.", "Describe a typical boss."]
first = eh.mitigate(prompts, model=a_model(), out=f"{out}/first")
again = eh.mitigate(prompts, out=f"{out}/again", replay=f"{out}/first")

print(again, again.totals)
print("equal:", again.results().equals(first.results()))
print(again.turns().select("item_id", "role", "texts").head())
