"""Any history of edits and accidents gives what a fresh run gives: the test, and how it runs fast.

server     a warm process that runs Snakemake and the command line in forks of itself
client     what stands for `python` in the jobs of those runs
runner     starts the server and runs things in it
standin    an engine that answers in milliseconds, and the counts of what it was asked
world      a tiny world, its edits and its accidents
oracle     what two runs must agree on
"""
