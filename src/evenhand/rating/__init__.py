"""People rate texts: sheets that do not say where a text came from, and the way back from them.

* `rubric`   the three questions and what their marks mean, as data
* `texts`    which texts of which runs are rated, drawn and given names that say nothing
* `key`      which text is which, in a file that raters never get
* `sheets`   a folder for each rater: a table, a page and the rubric
* `tables`   a CSV as people's programs save it
* `filled`   sheets that came back, read strictly
* `judges`   what a judge said of the same texts
* `rater`    a model that rates by the same rubric
* `within`   the folder in a run where a judge's verdicts on its texts lie
"""
