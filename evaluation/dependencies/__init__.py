"""The dependencies of each output of the workflow, described once as a key."""
