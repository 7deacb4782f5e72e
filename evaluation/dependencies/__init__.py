"""What each output of the workflow depends on, written down once as a key."""
