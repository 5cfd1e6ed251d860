"""These numbers were recorded, and must stay what they are.

    kept/        run folders of format 2 and inputs of audits, over texts made up for them
    recorded/    what measure, compare, frontier, plan and the audits said of them, flat: one JSON
                 file per instrument
    adapter.py   how the code of today is asked for these numbers
    flat.py      a nested report as flat entries

The folders were made with evenhand 0.1 at commit 6c1384d. No record of a data set is in them: the
items have the tags that the sources of the benchmarks write, over sentences of our own. They are
not made again: that an old folder is still read is part of the test.

A number that is meant to change is recorded anew, and the difference is read line by line:

    python -m tests.same_numbers.record [INSTRUMENT ...] && git diff tests/same_numbers/recorded
"""
