"""Findings in the shape that the recorded reports had, so that every number can be held against it.

What was changed on purpose is undone here, and nowhere else:

- a number without spread had an interval of no width; it now has what its clusters still allow and
  says "no_spread";
- shares had t intervals, which are too short for rare events and few clusters, and ICAT a resampled
  one, which fails at its kink and with few clusters (`intervals`);
- a change without spread had no p-value, and took part in Holm with p = 1 (defect D1); of harm in a
  frontier alone it had that of sign flips;
- p-values of changes were those of t, and of items that became right or wrong McNemar's; they are
  now those of clustered sign flips, and what is claimed counts the missing answers;
- the Pareto front of a frontier left missing answers out; it now counts them as the worst
  (`frontier_by_t`);
- red lines were sentences about point estimates; they now have three states (`WITHOUT`);
- `s_dis` was not compared, and bias scores had no p-value against 0;
- what a run cost was not in `runs show`, nor whether it is open (`WITHOUT`), and how a dry run was
  run not in its forecast;
- new are notes: that a model hardly ever names anybody (friction 4 of the first hour), that a
  scorer steered the method (it was a flag alone), that there are too few bases to certify anything
  (two checks of a judge did not say so);
- p-values, verdicts and states of a judge's audit were those of t over what could be read; they now
  count what is missing at its worst, and hold for few bases and rare effects; readability is a new
  check;
- the kappa of a judge with people's marks had no interval;
- an open check of a reward model did not keep it from passing;
- how many calls of a method were scores was not in a frontier;
- labels of measures changed, so a frontier's sentences have other words around the same numbers;
- of over-corrected texts three examples of each kind stood in the report; there is now one, and all
  in the table of outcomes;
- BBQ's masked records were left out of every number, its `s_dis` was not by alignment, its default
  sample had one block a template, and stored answers had the name of a sample (`bbq_before`);
- of a scorer, AUC, kappa, calibration error, Spearman and what is kept in disguise had no interval,
  and a text that only the disguise revealed counted as kept (`scorers.py`);
- the slope of Winogender counted all items of the set, and not those that it rests on.
"""

WITHOUT = ("guardrails", "open")
