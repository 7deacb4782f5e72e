"""Typed models of the files in a results folder, and their items as the bridge compares them."""
