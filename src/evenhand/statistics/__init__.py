"""How sure a number is, and what may be concluded from it. Pure functions of numbers.

Import from the files, not from here: `clusters` needs a tenth of what `multiplicity` loads.

* `clusters`      the mean or ratio with a cluster-robust t interval: the default for a result
* `shares`        shares over clusters: rare events, few clusters, and no spread at all
* `region`        any function of means over clusters, also one with a kink
* `bootstrap`     the same by resampling whole clusters, as a check and for other statistics
* `jackknife`     the same by leaving clusters out one by one, for agreement
* `paired`        before and after on the same items: counts, exact McNemar, sign-flip
* `effects`       how large a difference is, free of its scale
* `proportions`   a share of independent trials, and what "0 of n" still allows
* `selection`     rates by group, each as a ratio to the best of them
* `decided`       what chance does where everybody is decided on alone
* `multiplicity`  p-values adjusted for how many were looked at
* `agreement`     how far raters agree beyond chance
* `tables`        counts by group, and ranks within a block
* `generalizability`  how much of a score is the item, the order, the wording or the seed
* `planning`      how many items a question needs, and what n items can show
* `bounded`       one-sided tests of a mean that more missing values never improve
* `margins`       there, small, or not known: the verdict on one difference
* `pareto`        which of several choices no other one beats in everything
* `marginal`      what it costs to prevent one harm more
* `screening`     cut-offs for a cheap scorer that keep missed harm below a bound
* `sequences`     intervals that hold at every look, to stop when a question is decided
* `change_detection`  has what answers the same questions over time changed, at any look
* `prediction_powered`  a mean from a few labels and many cheap predictions

`Undefined` means that the formula has no value on this data; `UserError` that the call is wrong.
"""
