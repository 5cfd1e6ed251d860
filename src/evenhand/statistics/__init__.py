"""How sure a number is, and what may be concluded from it. Pure functions of numbers.

Import from the files, not from here.

* `clusters`      the mean or ratio with a cluster-robust t interval: the default for a result; any
                  function of several means, also one with a kink
* `bootstrap`     the same by resampling whole clusters, as a check and for other statistics
* `sign_flips`    the test that decides, which missing answers cannot help
* `bounded`       the same for the mean of a number with ends; limits by inverting either test; what
                  may be said of one difference: there, small, or not known
* `proportions`   shares of clusters and of independent trials, and what "0 of n" still allows
* `multiplicity`  p-values adjusted for how many were looked at
* `planning`      how many items a question needs, and how long a run that may stop takes
* `sequences`     intervals that hold at every look, to stop when a question is decided
* `selection`     rates by group as ratios; what chance does where everybody is decided on alone
* `agreement`     how far raters agree beyond chance, with jackknife intervals
* `tables`        counts by group, and ranks within a block
* `screening`     cut-offs for a cheap scorer that keep missed harm below a bound
* `change_detection`  has what answers the same questions over time changed, at any look
* `prediction_powered`  a mean from a few labels and many cheap predictions

`Undefined` means that the formula has no value on this data; `UserError` that the call is wrong.
"""
