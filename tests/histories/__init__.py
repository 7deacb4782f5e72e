"""Any history of edits and accidents gives what a fresh run gives: the test, and how it runs fast.

server     a warm process that runs Snakemake and the command line in forks of itself
client     what stands for `python` in the jobs of those runs
runner     starts the server and runs things in it
standin    an engine that answers in milliseconds; `counting` counts each question that it is asked
model      what a user has, as plain data; `world` brings a folder to what it says
edits      what a user changes (keys in `edits.yaml`, the rest in `edits_of_*`), `accidents` what befalls
           the disk, and `commands` what a user types but for a plain run; `beginning.yaml` is before all
economy    what need not be asked or prefilled again
oracle     what two runs must agree on
history    plays one; `drawing` draws them
fixed      small ones in files, one kind of edit each; `fixed/chains` has several kinds in each,
           `fixed/regressions` what once went wrong, and `fixed/real` what is played with the real engine
"""
