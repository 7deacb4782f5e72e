"""Bad inputs by kind, as a table, and what plays them: each must end in a sentence, or be right.

`tables/*.yaml` hold the cases, `values.yaml` what is tried for every key of one type. A case changes
a copy of one tiny world, runs one command there, and says how that has to end.
"""
