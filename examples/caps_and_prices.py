"""What will it cost, and how is it kept from costing more?

`forecast` answers up to 50 items and says what all of it will take. A cap stops a run before it
spends more; the same call with a higher cap goes on, and nothing is paid twice.
"""

import sys
from pathlib import Path

from at_hand import a_model
from own_instrument import Titles

import evenhand as eh

out = sys.argv[1] if len(sys.argv) > 1 else "runs/example-caps"
model = a_model()
Path(out).mkdir(parents=True, exist_ok=True)
prices = Path(out) / "prices.toml"  # prices change, so none are built in: write down yours
prices.write_text(
    f'[models."{model.name}"]\n'
    "per_million_prompt_tokens = 2.50\n"
    "per_million_completion_tokens = 10.00\n"
)

expected = eh.forecast(Titles(), model=model, out=f"{out}/forecast", prices=prices)
print(expected.totals["calls"], expected.totals["cost"], expected.currency)

first = eh.measure(Titles(), model=model, out=f"{out}/run", prices=prices, max_calls=10)
print(f"{first.not_run} items are not run, {first.money.cost} {first.money.currency} so far")
whole = eh.measure(Titles(), model=model, out=f"{out}/run", prices=prices, max_cost=5.00)
print(f"{whole.not_run} items are not run, {whole.money.cost} {whole.money.currency} in all")
