"""Is a model biased, against whom, and how sure is that? One measurement, on BBQ.

Without an endpoint (EVENHAND_BASE_URL, EVENHAND_MODEL) a scripted model answers at random, so that
you see what comes out before you spend anything. BBQ is read from the folder that EVENHAND_DATA
names, or downloaded once.
"""

import sys

from at_hand import a_model

import evenhand as eh

out = sys.argv[1] if len(sys.argv) > 1 else "runs/example-measure"
report = eh.measure("bbq", model=a_model(), out=out, options={"per_category": 8})

print(*report.verdict.says, sep="\n")
print(report["s_amb"])  # one estimate: value, interval, n, clusters
print(report.frame())  # all of them, as Polars
print(report.frame().to_pandas().describe())  # or as pandas, if you have it
report.save(f"{out}/report.html")  # a page that opens without a network
