"""Frozen numbers of a checkout, compared with those of another: a redesign must keep them.

    python -m tests.frozen compare FOLDER --from CHECKOUT    # run one on the frozen inputs; 1 if any differs

The commit b4c76400 (tag `frozen`) has the program that makes FOLDER:
`python -m tests.frozen write FOLDER --from CHECKOUT`.
Nothing here imports the package. `checkout.py` is all that knows where a checkout has what.
"""
