"""Mistakes in what users give: changes drawn from right files, and a table of what no drawing finds."""
