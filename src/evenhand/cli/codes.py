"""How a command ends: the one table of exit codes. `docs/gate.md` has it in words.

| code | every command                                          | `gate` and `monitor`       |
| ---- | ------------------------------------------------------ | -------------------------- |
| 0    | done                                                   | every check passed         |
| 1    | an error, said in words                                | a check failed             |
| 2    | done, but too much is missing or not run; or a command | the command was mistyped   |
|      | that cannot be read; `train`: nothing was trained      |                            |
| 3    | stopped at a cap, resumable                            | the same                   |
| 4    | `scorers screen apply`: drift, or a promise is open    | open: neither is shown     |
|      | `train`: the loss or reward is not shown to improve    |                            |
|      | `mitigate`, `answer`: too few answers were accepted    |                            |
| 5    |                                                        | broken: nothing was judged |
| 130  | stopped by a signal, resumable                         | the same                   |
"""

ERROR = 1
FAILED = 1  # of gate and monitor alone; an error of theirs is BROKEN
BELOW_FLOOR = 2
UNFINISHED = 2  # a run that was read is not finished
NOTHING = 2  # a training that changed no weight
CAPPED = 3
INCONCLUSIVE = 4
NOT_ACCEPTED = 4  # of mitigate and answer: the evaluators accept too few answers
BROKEN = 5
STOPPED = 130
