"""People rate texts: sheets that do not say where a text came from, and the way back from them.

* `rubric`   the three questions and what their marks mean, as data
* `texts`    which texts of which runs are rated under which names; the key that says so
* `sheets`   a folder for each rater, and the sheets that came back
* `judges`   what a judge said of the same texts; a model that rates by the same rubric
* `findings` how far people agree, and what they think of each run
"""
