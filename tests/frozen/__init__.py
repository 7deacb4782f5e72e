"""Numbers of a checkout, frozen, and compared with those of another: a redesign must keep them.

    python -m tests.frozen write FOLDER --from CHECKOUT      # make inputs, and keep the numbers of a checkout
    python -m tests.frozen compare FOLDER --from CHECKOUT    # run another on them; 1 if any differs

Nothing here imports the package. `checkout.py` is all that knows where a checkout has what.
"""
