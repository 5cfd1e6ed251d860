"""Does a remedy help? The plain prompt and one that asks for fairness, on the same questions."""

import sys

from at_hand import a_model

import evenhand as eh

out = sys.argv[1] if len(sys.argv) > 1 else "runs/example-compare"
model = a_model()
before = eh.measure("bbq", model=model, out=f"{out}/before", options={"per_category": 4})
after = eh.measure(
    "bbq", model=model, method="fairness", out=f"{out}/after", options={"per_category": 4}
)

diff = eh.compare(before, after)  # or by their folders: eh.compare("runs/a", "runs/b")
print(*diff.verdict.says, sep="\n")
for line in diff.guardrails:
    print(line.state, line.says)
print(diff.frame().filter(role="primary"))
diff.save(f"{out}/comparison.html")

# In a pipeline: fail where something is shown to have got worse.
crossed = [line.name for line in diff.guardrails if line.state == "crossed"]
print("crossed:", crossed)
