"""Any history of edits and accidents gives what a fresh run gives: the test, and how it runs fast.

server, client, warm   a warm process that runs Snakemake and the command line in forks of itself
standin    an engine that answers in milliseconds and counts each question that it is asked
world      the folder in which one is played, as `beginning` builds it
edits      what a user changes, `accidents` what befalls the disk
economy    what need not be asked or prefilled again
oracle     what two runs must agree on
history    plays one; `drawing` draws them
fixed      small ones in files, one kind of edit each; `fixed/chains` has several kinds in each, and
           `fixed/regressions` what once went wrong
"""
